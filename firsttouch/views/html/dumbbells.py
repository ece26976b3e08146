# SPDX-License-Identifier: GPL-2.0
"""Dumbbell charts: each row has a mark for each arm's value on one axis, joined by a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firsttouch.quantities import format_compact
from firsttouch.views.html.scales import Scale, scale_for, tick_label
from firsttouch.views.html.svg import CHARACTER, Drawing, Symbols, shorten

_ROW, _GROUP, _LABEL = 23.0, 30.0, 17.0
_TOP, _BOTTOM = 34.0, 44.0
# Largest share of the width for labels beside the rows.
_BESIDE = 0.42


@dataclass(frozen=True)
class Bar:
    """One row: its label, and the value of each arm; `note` is shown if no arm has a value."""

    label: str
    values: Mapping[str, float]
    note: str = "not measured"

    def words(self) -> str:
        """Return the row in words."""
        values = " ".join(f"{arm} {format_compact(value)}" for arm, value in self.values.items())
        return f"{self.label} {values or self.note}"


@dataclass(frozen=True)
class Group:
    """Rows under a heading."""

    heading: str
    bars: tuple[Bar, ...]


def describe(groups: Sequence[Group]) -> str:
    """Return the groups in words, for readers who cannot see the picture."""
    return "; ".join(
        (f"{group.heading}: " if group.heading else "")
        + ", ".join(bar.words() for bar in group.bars)
        for group in groups
    )


def draw_dumbbells(width: float, groups: Sequence[Group], symbols: Symbols, axis: str) -> Drawing:
    """Return the picture of `groups`; `axis` says what the values are."""
    bars = [bar for group in groups for bar in group.bars]
    values = [value for bar in bars for value in bar.values.values()]
    longest = max(len(bar.label) for bar in bars) * CHARACTER + 18
    # Labels that are too long for a place beside their rows go above them.
    above = longest > width * _BESIDE
    left = 4.0 if above else longest
    space = 8 + CHARACTER * max((len(format_compact(value)) for value in values), default=1)
    scale = scale_for(values, left + space, width - space - 4)
    drawing = Drawing(width, 0)
    top = _TOP + drawing.legend(left, 16, symbols)
    tall = _ROW + (_LABEL if above else 0)
    headings = sum(bool(group.heading) for group in groups)
    bottom = top + headings * _GROUP + len(bars) * tall
    drawing.height = bottom + _BOTTOM
    _draw_axis(drawing, scale, (top, bottom), axis)
    y = top
    for group in groups:
        if group.heading:
            y += _GROUP
            drawing.text(0, y - 8, shorten(group.heading, width), "t strong")
        for bar in group.bars:
            if above:
                drawing.text(0, y + _LABEL - 3, shorten(bar.label, width), "t")
            else:
                drawing.text(left - 6, y + _ROW / 2 + 4, bar.label, "t", "end")
            _draw_bar(drawing, scale, bar, symbols, y + tall - _ROW / 2)
            y += tall
    return drawing


def _draw_axis(drawing: Drawing, scale: Scale, extent: tuple[float, float], axis: str) -> None:
    top, bottom = extent
    if scale.nil:
        drawing.line(scale.nil, top, scale.nil, bottom, "grid")
        drawing.text(scale.nil, bottom + 17, "0", "t dim", "middle")
    free = scale.nil + CHARACTER
    for tick in scale.ticks(10 if drawing.width > 500 else 6):
        x, label = scale.at(tick), tick_label(tick)
        drawing.line(x, top, x, bottom, "grid")
        # A label that would touch the previous one is left out; its line stays.
        half = CHARACTER * len(label) / 2
        if x - half >= free and x + half <= drawing.width:
            drawing.text(x, bottom + 17, label, "t dim", "middle")
            free = x + half + CHARACTER / 2
    words = f"{axis} (logarithmic)" if scale.logarithmic else axis
    drawing.text(drawing.width, bottom + 36, shorten(words, drawing.width), "t dim", "end")


def _draw_bar(drawing: Drawing, scale: Scale, bar: Bar, symbols: Symbols, y: float) -> None:
    if not bar.values:
        drawing.text(scale.start, y + 4, shorten(bar.note, drawing.width - scale.start), "t dim")
        return
    low, high = min(bar.values.values()), max(bar.values.values())
    drawing.line(scale.at(low), y, scale.at(high), y, "join")
    for arm, value in bar.values.items():
        tip = f"{bar.label}, {arm}: {format_compact(value)}"
        drawing.mark(symbols[arm], scale.at(value), y, tip)
    drawing.text(scale.at(high) + 9, y + 4, format_compact(high), "t number")
    if format_compact(low) != format_compact(high):
        drawing.text(scale.at(low) - 9, y + 4, format_compact(low), "t number", "end")
