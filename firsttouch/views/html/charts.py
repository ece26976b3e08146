# SPDX-License-Identifier: GPL-2.0
"""Charts: dumbbells, lines against a number, and the faults of a first touch over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Case, FaultSample
from firsttouch.quantities import format_compact
from firsttouch.views.html.figure import Chart, cell_table, pictures
from firsttouch.views.html.svg import (
    CHARACTER,
    Drawing,
    Scale,
    Symbols,
    number,
    round_up,
    scale_for,
    shorten,
    tick_label,
)
from firsttouch.views.names import page_label

_ROW, _GROUP, _LABEL = 23.0, 30.0, 17.0
_TOP, _BOTTOM = 34.0, 44.0
# Largest share of the width for labels beside the rows.
_BESIDE = 0.42
# Of a chart of lines.
_HEIGHT, _HEAD, _LEFT, _RIGHT, _FOOT = 300.0, 52.0, 44.0, 12.0, 46.0

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Bar:
    """One row: its label, and the value of each arm; `note` is shown if no arm has a value."""

    label: str
    values: Mapping[str, float]
    note: str = "not measured"

    def words(self) -> str:
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


def draw_lines(
    width: float,
    series: Mapping[str, Points],
    symbols: Symbols,
    axes: tuple[str, str],
    *,
    mark: tuple[str, float] | None = None,
    joined: bool = True,
    tick_of: Callable[[float], str],
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
    bottom, head = _HEIGHT + more - _FOOT, _HEAD + more
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


# The number of pages that a phone can show apart: a page is 14 units high.
_FEW = 16
# The base pages of a huge page; marks of more pages would overlap.
_MOST = 512
_PANEL_LEFT, _PANEL_HEAD, _PANEL_FOOT, _BETWEEN = 40.0, 58.0, 40.0, 24.0


@dataclass(frozen=True)
class Panel:
    """The samples of one arm that are drawn."""

    arm: str
    samples: tuple[FaultSample, ...]

    def count(self, *, write: bool) -> int:
        return sum(sample.write == write for sample in self.samples)

    def words(self) -> str:
        reads, writes = self.count(write=False), self.count(write=True)
        return f"{reads:,} read and {writes:,} write fault{'' if writes == 1 else 's'}"

    def longest(self) -> float:
        """Return the time of the last fault, in microseconds since the first touch began."""
        return max((_time(sample) for sample in self.samples), default=0.0)


def _time(sample: FaultSample) -> float:
    return sample.time / 1000


def timeline(_dataset: Dataset, cases: Sequence[Case], name: str) -> list[Chart]:
    sampled = [case for case in cases if any(arm.timeline.samples for arm in case.arms.values())]
    return [_figure(case, f"{name}-{index}") for index, case in enumerate(sampled)]


def why_not_sampled(cases: Iterable[Case]) -> list[str]:
    """Return the reasons why cells could not sample their faults, each once."""
    reasons = (arm.timeline.absent for case in cases for arm in case.arms.values())
    return list(dict.fromkeys(reason for reason in reasons if reason))


def _figure(case: Case, name: str) -> Chart:
    # With base pages a few of them show how the faults pair up. A fault may map
    # a huge page, so then all of its base pages are shown.
    huge = case.params.get("page") == "2m"
    pages = _MOST if huge else _FEW
    panels = [
        Panel(arm, tuple(sample for sample in measured.timeline.samples if sample.page < pages))
        for arm, measured in case.arms.items()
        if measured.timeline.samples
    ]
    by = case.params.get("by", "")
    page = page_label(case.params.get("page", "4k"))
    shown = f"the first {pages:,} base pages" if not huge else "one huge page, 512 base pages"
    described = "; ".join(
        f"{panel.arm}: {panel.words()}, the last after {panel.longest():,.0f} microseconds"
        for panel in panels
    )
    wide, narrow = pictures(
        name,
        f"Page faults over time, first touch by {by}, {page} pages, {case.platform}",
        f"Pages touched against time, for {shown}. {described}.",
        lambda width: _draw(width, panels, pages),
    )
    lost = sum(measured.timeline.lost for measured in case.arms.values())
    missing = f" {lost:,} samples were lost and are not drawn." if lost else ""
    return Chart(
        f"{page} pages, {case.platform}",
        f"First touch by {by}, in order of address; {shown}. One mark for each fault, from the "
        "samples of perf's page-faults event. The event does not say whether a fault is a read "
        "or a write: the last fault of a page is taken as the write, those before it as reads. "
        "Sampling adds to the cost of each fault, so the times show the order of faults, and "
        f"not their cost.{missing}",
        wide,
        narrow,
        cells=cell_table([case], list(case.arms), "page_faults", "faults"),
    )


def _draw(width: float, panels: Sequence[Panel], pages: int) -> Drawing:
    across = len(panels) if width > 500 else 1
    down = -(-len(panels) // across)
    tall = 220.0
    drawing = Drawing(width, 26 + down * (tall + _PANEL_HEAD + _PANEL_FOOT))
    _draw_legend(drawing)
    room = (width - (across - 1) * _BETWEEN) / across
    # All panels share one scale, so that they show which arm ends first.
    longest = max(panel.longest() for panel in panels) or 1.0
    for index, panel in enumerate(panels):
        left = index % across * (room + _BETWEEN) + _PANEL_LEFT
        top = 26 + index // across * (tall + _PANEL_HEAD + _PANEL_FOOT) + _PANEL_HEAD
        time = Scale(0, longest, left + 6, left - _PANEL_LEFT + room - 8)
        page = Scale(0, pages, top + tall - 4, top + 4)
        _draw_panel(drawing, panel, time, page, (left, top, left - _PANEL_LEFT + room, top + tall))
    return drawing


def _draw_legend(drawing: Drawing) -> None:
    drawing.marks("circle", [(6, 12)], 4, "m fault-read")
    drawing.text(15, 16, "read fault")
    second = 15 + 10 * CHARACTER + 18
    drawing.marks("diamond", [(second, 12)], 3.6, "m fault-write")
    drawing.text(second + 9, 16, "write fault")


def _draw_panel(
    drawing: Drawing,
    panel: Panel,
    time: Scale,
    page: Scale,
    box: tuple[float, float, float, float],
) -> None:
    left, top, right, bottom = box
    drawing.text(left - _PANEL_LEFT, top - 30, shorten(panel.arm, right - left), "t strong")
    drawing.text(left - _PANEL_LEFT, top - 12, panel.words(), "t dim")
    for tick in (0, page.high / 2, page.high):
        drawing.line(left, page.at(tick), right, page.at(tick), "grid")
        drawing.text(left - 6, page.at(tick) + 4, f"{tick:,.0f}", "t dim", "end")
    step = round_up(time.high / 6)
    for index in range(int(time.high / step) + 1):
        x = time.at(index * step)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 16, tick_label(index * step), "t dim", "middle")
    drawing.text(right, bottom + 33, "µs since the first touch", "t dim", "end")
    drawing.text(left - _PANEL_LEFT, bottom + 33, "↑ page", "t dim")
    dense = len(panel.samples) > 4 * _FEW
    reads = [(time.at(_time(s)), page.at(s.page + 0.5)) for s in panel.samples if not s.write]
    writes = [(time.at(_time(s)), page.at(s.page + 0.5)) for s in panel.samples if s.write]
    if dense:
        _draw_dots(drawing, writes)
    else:
        drawing.marks("diamond", writes, 3.0, "m fault-write")
    if reads:
        crowded = len(reads) > 2 * _FEW
        drawing.marks("circle", reads, 1.4 if crowded else 3.4, "m fault-read")


def _draw_dots(drawing: Drawing, points: Sequence[tuple[float, float]]) -> None:
    """Draw marks as dots, because there are too many for shapes; equal points share a dot."""
    places = dict.fromkeys((number(x), number(y)) for x, y in points)
    drawing.marks("square", [(float(x), float(y)) for x, y in places], 1.1, "m fault-write")
