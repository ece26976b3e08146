# SPDX-License-Identifier: GPL-2.0
"""Rows of marks joined by a line: what each arm measured, row by row, on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firsttouch.output.labels import ratio_label
from firsttouch.output.html.scales import Scale, scale_for, tick_label
from firsttouch.output.html.svg import CHARACTER, Drawing

_ROW, _GROUP = 23.0, 30.0
_TOP, _BOTTOM = 34.0, 44.0


@dataclass(frozen=True)
class Row:
    """One row: its label, and the value of each arm."""

    label: str
    values: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Rows under a heading."""

    heading: str
    rows: tuple[Row, ...]


def draw_dumbbells(
    width: float, groups: Sequence[Group], arms: Sequence[str], axis: str
) -> Drawing:
    """Return the picture of `groups`; `axis` says what the values are."""
    values = [value for group in groups for row in group.rows for value in row.values.values()]
    labels = [row.label for group in groups for row in group.rows]
    left = min(max(map(len, labels)) * CHARACTER + 12, width * 0.42)
    space = 8 + CHARACTER * max(len(ratio_label(value)) for value in values)
    scale = scale_for(values, left + space, width - space - 4)
    rows = sum(len(group.rows) for group in groups)
    height = _TOP + len(groups) * _GROUP + rows * _ROW + _BOTTOM
    drawing = Drawing(width, height)
    drawing.legend(left + 4, 16, arms)
    bottom = height - _BOTTOM
    _draw_axis(drawing, scale, bottom, axis, 10 if width > 500 else 6)
    y = _TOP
    for group in groups:
        y += _GROUP
        drawing.text(0, y - 8, group.heading, "t strong")
        for row in group.rows:
            _draw_row(drawing, scale, row, left, y + _ROW / 2)
            y += _ROW
    return drawing


def _draw_axis(drawing: Drawing, scale: Scale, bottom: float, axis: str, most: int) -> None:
    ticks = scale.ticks(most)
    if scale.nil:
        drawing.line(scale.nil, _TOP, scale.nil, bottom, "grid")
        drawing.text(scale.nil, bottom + 17, "0", "t dim", "middle")
    free = scale.nil + CHARACTER
    for tick in ticks:
        x, label = scale.at(tick), tick_label(tick)
        drawing.line(x, _TOP, x, bottom, "grid")
        # A tick whose label would touch the one before keeps its line alone.
        half = CHARACTER * len(label) / 2
        if x - half >= free:
            drawing.text(x, bottom + 17, label, "t dim", "middle")
            free = x + half + CHARACTER / 2
    words = f"{axis} (logarithmic)" if scale.logarithmic else axis
    drawing.text(drawing.width, bottom + 36, words, "t dim", "end")


def _draw_row(drawing: Drawing, scale: Scale, row: Row, left: float, y: float) -> None:
    drawing.text(left - 6, y + 4, row.label, "t", "end")
    if not row.values:
        drawing.text(scale.start, y + 4, "not measured", "t dim")
        return
    low, high = min(row.values.values()), max(row.values.values())
    drawing.line(scale.at(low), y, scale.at(high), y, "join")
    for arm, value in row.values.items():
        drawing.mark(arm, scale.at(value), y, f"{row.label}, {arm}: {ratio_label(value)}")
    drawing.text(scale.at(high) + 9, y + 4, ratio_label(high), "t number")
    if ratio_label(low) != ratio_label(high):
        drawing.text(scale.at(low) - 9, y + 4, ratio_label(low), "t number", "end")
