# SPDX-License-Identifier: GPL-2.0
"""Timeline charts: the page, the time and the kind (read or write) of each fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import FaultSample
from firsttouch.views.html.figure import Chart, cell_table, pictures
from firsttouch.views.html.scales import Scale, round_up, tick_label
from firsttouch.views.html.svg import CHARACTER, Drawing, number, shorten
from firsttouch.views.names import page_label

# The number of pages that a phone can show apart: a page is 14 units high.
_FEW = 16
# The base pages of a huge page; marks of more pages would overlap.
_MOST = 512
_LEFT, _HEAD, _FOOT, _BETWEEN = 40.0, 58.0, 40.0, 24.0


@dataclass(frozen=True)
class Panel:
    """The samples of one arm that are drawn."""

    arm: str
    samples: tuple[FaultSample, ...]

    def count(self, *, write: bool) -> int:
        """Return the number of write faults, or of read faults."""
        return sum(sample.write == write for sample in self.samples)

    def words(self) -> str:
        """Return the panel in words."""
        reads, writes = self.count(write=False), self.count(write=True)
        return f"{reads:,} read and {writes:,} write fault{'' if writes == 1 else 's'}"

    def longest(self) -> float:
        """Return the time of the last fault, in microseconds since the first touch began."""
        return max((_time(sample) for sample in self.samples), default=0.0)


def _time(sample: FaultSample) -> float:
    return sample.time / 1000


def timeline(_dataset: Dataset, cases: Sequence[Case], name: str) -> list[Chart]:
    """Return a figure for each case whose faults were sampled."""
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
    drawing = Drawing(width, 26 + down * (tall + _HEAD + _FOOT))
    _draw_legend(drawing)
    room = (width - (across - 1) * _BETWEEN) / across
    # All panels share one scale, so that they show which arm ends first.
    longest = max(panel.longest() for panel in panels) or 1.0
    for index, panel in enumerate(panels):
        left = index % across * (room + _BETWEEN) + _LEFT
        top = 26 + index // across * (tall + _HEAD + _FOOT) + _HEAD
        time = Scale(0, longest, left + 6, left - _LEFT + room - 8)
        page = Scale(0, pages, top + tall - 4, top + 4)
        _draw_panel(drawing, panel, time, page, (left, top, left - _LEFT + room, top + tall))
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
    drawing.text(left - _LEFT, top - 30, shorten(panel.arm, right - left), "t strong")
    drawing.text(left - _LEFT, top - 12, panel.words(), "t dim")
    for tick in (0, page.high / 2, page.high):
        drawing.line(left, page.at(tick), right, page.at(tick), "grid")
        drawing.text(left - 6, page.at(tick) + 4, f"{tick:,.0f}", "t dim", "end")
    step = round_up(time.high / 6)
    for index in range(int(time.high / step) + 1):
        x = time.at(index * step)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 16, tick_label(index * step), "t dim", "middle")
    drawing.text(right, bottom + 33, "µs since the first touch", "t dim", "end")
    drawing.text(left - _LEFT, bottom + 33, "↑ page", "t dim")
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
