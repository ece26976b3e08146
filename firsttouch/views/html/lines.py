# SPDX-License-Identifier: GPL-2.0
"""Line charts: the values of each arm against a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from firsttouch.quantities import format_compact
from firsttouch.views.html.scales import Scale, round_up, scale_for, tick_label
from firsttouch.views.html.svg import CHARACTER, Drawing, Symbols, shorten

_HEIGHT, _TOP, _LEFT, _RIGHT, _BOTTOM = 300.0, 52.0, 44.0, 12.0, 46.0

Points = Sequence[tuple[float, float]]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def draw_lines(
    width: float,
    series: Mapping[str, Points],
    symbols: Symbols,
    axes: tuple[str, str],
    *,
    mark: tuple[str, float] | None = None,
    joined: bool = True,
    tick_of: Callable[[float], str] = _whole,
) -> Drawing:
    """Return the chart of each arm's values; `axes` are the titles of the x and the y axis.

    A line is at the number of `mark`, with its words.
    If `joined`, a line joins an arm's values along the x axis. Otherwise the
    numbers are names, and a line joins the arms at each of them. `tick_of`
    formats a number on the x axis.
    """
    drawing = Drawing(width, _HEIGHT)
    more = drawing.legend(0, 16, symbols)
    drawing.height += more
    bottom, head = _HEIGHT + more - _BOTTOM, _TOP + more
    drawing.text(0, 38 + more, shorten(f"↑ {axes[1]}", width), "t dim")
    highest = max(y for points in series.values() for _, y in points)
    # A value just above a round number may exceed the axis a little.
    up = Scale(0, round_up(highest * 0.98), bottom, head + 22)
    labels = {tick: tick_label(tick) for tick in up.ticks(5)}
    left = max(_LEFT, 12 + CHARACTER * max(map(len, labels.values())))
    for tick, label in labels.items():
        drawing.line(left, up.at(tick), width - _RIGHT, up.at(tick), "grid")
        drawing.text(left - 6, up.at(tick) + 4, label, "t dim", "end")
    numbers = sorted({x for points in series.values() for x, _ in points})
    across = _across(numbers, left + 10, width - _RIGHT - 10)
    free = 0.0
    for tick in numbers if across.logarithmic else across.ticks(14 if width > 500 else 8):
        label = tick_of(tick)
        half = CHARACTER * len(label) / 2
        x = across.at(tick)
        if tick == round(tick) and x - half >= free and x + half <= width:
            drawing.text(x, bottom + 18, label, "t dim", "middle")
            free = x + half + CHARACTER / 2
    drawing.text(width - _RIGHT, bottom + 38, shorten(axes[0], width), "t dim", "end")
    if mark is not None and numbers[0] <= mark[1] <= numbers[-1]:
        _draw_mark(drawing, mark[0], across.at(mark[1]), (head, bottom))
    _join(drawing, series, symbols, across, up, joined=joined)
    room = (across.end - across.start) / max(len(numbers) - 1, 1)
    for arm, symbol in symbols.items():
        for x, y in series.get(arm, ()):
            tip = f"{arm}, {tick_of(x)}: {format_compact(y)}"
            drawing.mark(symbol, across.at(x), up.at(y), tip, room)
    return drawing


def _across(numbers: Sequence[float], start: float, end: float) -> Scale:
    """Return the x axis: logarithmic if the numbers are far apart."""
    low, high = numbers[0], numbers[-1]
    if low > 0 and scale_for(numbers, start, end).logarithmic:
        return Scale(low, high, start, end, True)
    return Scale(low, max(high, low + 1), start, end)


def _draw_mark(drawing: Drawing, words: str, x: float, extent: tuple[float, float]) -> None:
    head, bottom = extent
    drawing.line(x, head - 6, x, bottom, "limit")
    right = x + 6 + CHARACTER * len(words) < drawing.width
    drawing.text(x + 6 if right else x - 6, head + 2, words, "t", "start" if right else "end")


def _join(
    drawing: Drawing,
    series: Mapping[str, Points],
    symbols: Symbols,
    across: Scale,
    up: Scale,
    *,
    joined: bool,
) -> None:
    if joined:
        for index, arm in enumerate(symbols):
            points = [(across.at(x), up.at(y)) for x, y in sorted(series.get(arm, ()))]
            if points:
                drawing.curve(points, f"curve c{index % 4}")
        return
    values: dict[float, list[float]] = {}
    for points_of in series.values():
        for x, y in points_of:
            values.setdefault(x, []).append(y)
    for x, values_at in sorted(values.items()):
        at = across.at(x)
        drawing.line(at, up.at(min(values_at)), at, up.at(max(values_at)), "join")
