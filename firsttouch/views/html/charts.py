# SPDX-License-Identifier: GPL-2.0
"""Charts: a row for each cell, or a mark for each point; a narrow screen scrolls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firsttouch.views.html.svg import (
    CHARACTER,
    Drawing,
    Scale,
    Symbols,
    format_compact,
    round_up,
    scale_for,
    shorten,
    tick_label,
)

# Width of a drawing in units.
WIDTH = 720.0
_ROW, _GROUP = 23.0, 30.0
_TOP, _BOTTOM = 34.0, 44.0
# Largest share of the width for labels next to the rows.
_LABELS = 0.5
# Of a chart of points.
_HEIGHT, _HEAD, _LEFT, _RIGHT, _FOOT = 300.0, 52.0, 44.0, 12.0, 46.0

Points = Sequence[tuple[float, float]]
# Rows by their heading: the label of each, and its value on each arm.
Groups = Mapping[str, Sequence[tuple[str, Mapping[str, float]]]]


def describe(groups: Groups) -> str:
    return "; ".join(
        (f"{heading}: " if heading else "")
        + ", ".join(
            " ".join([label, *(f"{arm} {format_compact(value)}" for arm, value in values.items())])
            for label, values in rows
        )
        for heading, rows in groups.items()
    )


def draw_dumbbells(groups: Groups, symbols: Symbols, axis: str) -> Drawing:
    """Return the picture of `groups`; `axis` says what the values are."""
    rows = [row for members in groups.values() for row in members]
    values = [value for _, of in rows for value in of.values()]
    longest = max(len(label) for label, _ in rows) * CHARACTER + 18
    left = min(longest, _LABELS * WIDTH)
    space = 8 + CHARACTER * max(len(format_compact(value)) for value in values)
    scale = scale_for(values, left + space, WIDTH - space - 4)
    drawing = Drawing(WIDTH, 0)
    top = _TOP + drawing.legend(left, 16, symbols)
    bottom = top + sum(map(bool, groups)) * _GROUP + len(rows) * _ROW
    drawing.height = bottom + _BOTTOM
    _draw_axis(drawing, scale, (top, bottom), axis)
    y = top
    for heading, members in groups.items():
        if heading:
            y += _GROUP
            drawing.text(0, y - 8, shorten(heading, WIDTH), "t strong")
        for label, of in members:
            drawing.text(left - 6, y + _ROW / 2 + 4, shorten(label, left - 6), "t", "end")
            _draw_row(drawing, scale, label, of, symbols, y + _ROW / 2)
            y += _ROW
    return drawing


def _draw_axis(drawing: Drawing, scale: Scale, extent: tuple[float, float], axis: str) -> None:
    top, bottom = extent
    free = CHARACTER
    for tick in scale.ticks(10):
        x, label = scale.at(tick), tick_label(tick)
        drawing.line(x, top, x, bottom, "grid")
        # A label that would touch the previous one is left out; its line stays.
        half = CHARACTER * len(label) / 2
        if x - half >= free and x + half <= drawing.width:
            drawing.text(x, bottom + 17, label, "t dim", "middle")
            free = x + half + CHARACTER / 2
    words = f"{axis} (logarithmic)" if scale.logarithmic else axis
    drawing.text(drawing.width, bottom + 36, shorten(words, drawing.width), "t dim", "end")


def _draw_row(
    drawing: Drawing,
    scale: Scale,
    label: str,
    values: Mapping[str, float],
    symbols: Symbols,
    y: float,
) -> None:
    low, high = min(values.values()), max(values.values())
    drawing.line(scale.at(low), y, scale.at(high), y, "join")
    for arm, value in values.items():
        drawing.mark(symbols[arm], scale.at(value), y, f"{label}, {arm}: {format_compact(value)}")
    drawing.text(scale.at(high) + 9, y + 4, format_compact(high), "t number")
    if format_compact(low) != format_compact(high):
        drawing.text(scale.at(low) - 9, y + 4, format_compact(low), "t number", "end")


def draw_scatter(series: Mapping[str, Points], symbols: Symbols, axes: tuple[str, str]) -> Drawing:
    """Return a mark for each point of each arm; `axes` are the titles of the x and the y axis."""
    drawing = Drawing(WIDTH, _HEIGHT)
    more = drawing.legend(0, 16, symbols)
    drawing.height += more
    bottom = _HEIGHT + more - _FOOT
    drawing.text(0, 38 + more, f"↑ {axes[1]}", "t dim")
    points = [point for of in series.values() for point in of]
    up = Scale(0, round_up(max(y for _, y in points)), bottom, _HEAD + more + 22)
    for tick in up.ticks(5):
        drawing.line(_LEFT, up.at(tick), WIDTH - _RIGHT, up.at(tick), "grid")
        drawing.text(_LEFT - 6, up.at(tick) + 4, tick_label(tick), "t dim", "end")
    across = Scale(0, max(x for x, _ in points) or 1, _LEFT, WIDTH - _RIGHT - 10)
    for tick in across.ticks(14):
        drawing.text(across.at(tick), bottom + 18, tick_label(tick), "t dim", "middle")
    drawing.text(WIDTH - _RIGHT, bottom + 38, axes[0], "t dim", "end")
    for arm, symbol in symbols.items():
        for x, y in series[arm]:
            drawing.mark(symbol, across.at(x), up.at(y), f"{arm}, {format_compact(x)}: {y:,.0f}")
    return drawing
