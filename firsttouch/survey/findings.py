# SPDX-License-Identifier: GPL-2.0
"""What the samples of a survey come to: first touches, colours, counters, noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firsttouch.quantities import format_size
from firsttouch.survey.host import Facts
from firsttouch.survey.geometry import CacheFinding, examine_caches
from firsttouch.survey.tasks import (
    COUNTER_SETS,
    FLOOR,
    KINDS,
    PAGES,
    ZERO_PAGES,
    Geometry,
    color_name,
    counted_name,
    hot_colors,
    kind_name,
    touch_name,
    touch_tasks,
)
from firsttouch.survey.samples import Figure, Line, Sample, Samples, busy_ns, figure

# A middle half wider than this part of its median says little.
NOISY = 0.15
_COUNTERS = {
    "core": ("cycles_user", "cycles_kernel", "instructions_user", "instructions_kernel"),
    "cache": ("l1d_loads", "l1d_load_misses", "llc_loads", "llc_load_misses"),
    "tlb": ("dtlb_loads", "dtlb_load_misses"),
}
_COUNTED = ("store", "ldadd", "hits", "conflict")


@dataclass(frozen=True)
class TouchFinding:
    """First touches of one kind, per page of `page_size` bytes; times in ns.

    `elapsed` is the clock's time. `busy` is the processor's, user and kernel
    together: all of it but the touching instruction is the kernel's, and the
    scheduler accounts it exactly. `system` is the part that getrusage calls
    the kernel's, a mean over all samples: most kernels split by the tick.
    `against_floor` is `busy` divided by MADV_POPULATE_WRITE's. Without
    figures, `unavailable` says why.
    """

    kind: str
    page: str
    page_size: int
    faults: float | None
    elapsed: Figure | None
    busy: Figure | None
    system: float | None
    against_floor: float | None
    unavailable: str


@dataclass(frozen=True)
class ColorFinding:
    """One cache: a loop of hot lines and zero pages, in ns a round.

    `meeting` has the single zero page of the hot lines' colour, `apart` of
    another; `spread` has one of each colour. `mean` is what a single one
    takes over all hot colours.
    """

    geometry: Geometry
    colors: int
    meeting: Figure | None
    apart: Figure | None
    spread: Figure | None
    mean: float | None
    unavailable: str


@dataclass(frozen=True)
class CounterFinding:
    """One hardware counter: its figure by what was counted (per page, per read), or why not."""

    name: str
    figures: dict[str, Figure]
    unavailable: str


@dataclass(frozen=True)
class Findings:
    """All that a survey found. In `virtual_time` a ns is an instruction.

    `zero_pages` is how many the kernel has, `no_zero_pages` why that is not
    known. `noisy` names what is too unsteady for a sentence to rest on, `few`
    is the least number of samples behind a first touch.
    """

    facts: Facts
    virtual_time: bool
    caches: list[CacheFinding]
    touches: list[TouchFinding]
    colors: list[ColorFinding]
    zero_pages: int | None
    no_zero_pages: str
    counters: list[CounterFinding]
    noisy: list[str]
    few: int
    failures: list[str]

    def touch(self, kind: str, page: str = "base") -> TouchFinding | None:
        """Return the finding of `kind`, if it has figures."""
        return next(
            (t for t in self.touches if (t.kind, t.page) == (kind, page) and t.elapsed), None
        )


def examine(facts: Facts, taken: Sequence[Sample], *, virtual_time: bool = False) -> Findings:
    """Return what the samples `taken` on the machine of `facts` come to."""
    samples = Samples(taken)
    caches = examine_caches(facts, samples, virtual_time=virtual_time)
    planned = {task.name for task in touch_tasks(facts, 0)}
    touches = [
        _touch(kind, page, bytes_ or facts.page_size, samples)
        for page, bytes_ in PAGES.items()
        for kind in KINDS
        if touch_name(kind, page) in planned
    ]
    colors = [_colors(cache.used, facts, samples, virtual_time) for cache in caches if cache.used]
    return Findings(
        facts,
        virtual_time,
        caches,
        touches,
        colors,
        *_zero_pages(facts, samples),
        [_counter(counters, name, facts, samples) for counters in COUNTER_SETS
         for name in _COUNTERS[counters]],
        _noisy(facts, touches, colors),
        min((t.elapsed.samples for t in touches if t.elapsed), default=0),
        sorted({f"{s.task}: {s.error}" for s in samples.failures()}),
    )  # fmt: skip


def _per_page(metric: str, page_size: int) -> Callable[[Line], float]:
    return lambda line: float(line["metrics"][metric]) * page_size / line["params"]["size"]


def _touch(kind: str, page: str, page_size: int, samples: Samples) -> TouchFinding:
    task = touch_name(kind, page)

    def take(metric: str) -> Figure | None:
        return samples.figure(task, _per_page(metric, page_size))

    def busy(of: str) -> Figure | None:
        return samples.figure(of, lambda line: busy_ns(line) * page_size / line["params"]["size"])

    faults, own, floor = take("page_faults"), busy(task), busy(touch_name(FLOOR, page))
    system = [_per_page("sys_ns", page_size)(line) for line in samples.lines(task)]
    return TouchFinding(
        kind,
        page,
        page_size,
        faults.median if faults else None,
        take("elapsed_ns"),
        own,
        sum(system) / len(system) if system else None,
        own.median / floor.median if own and floor and floor.median else None,
        "" if faults else samples.reason(task),
    )


def _ns_per_round(line: Line) -> float:
    return busy_ns(line) / float(line["params"]["rounds"])


def _colors(geometry: Geometry, facts: Facts, samples: Samples, virtual_time: bool) -> ColorFinding:
    colors = geometry.colors(facts.page_size)
    if colors == 1:
        return ColorFinding(geometry, 1, None, None, None, None, "")
    if virtual_time:
        reason = (
            "the guest's clock counts instructions, in which no cache shows; "
            "`firsttouch lab --experiment zero-conflict` counts misses instead"
        )
        return ColorFinding(geometry, colors, None, None, None, None, reason)
    others = hot_colors(colors)[1:]

    def take(zero_pages: int, hot: list[int]) -> Figure | None:
        return samples.figures(
            [color_name(geometry.level, zero_pages, color) for color in hot], _ns_per_round
        )

    meeting, apart, spread = take(1, [0]), take(1, others), take(colors, [0, *others])
    mean = None
    if meeting and apart:
        # One hot colour of all meets the single zero page.
        mean = (meeting.median + (colors - 1) * apart.median) / colors
    reason = "" if spread else samples.reason(color_name(geometry.level, 1, 0))
    return ColorFinding(geometry, colors, meeting, apart, spread, mean, reason)


def _zero_pages(facts: Facts, samples: Samples) -> tuple[int | None, str]:
    if facts.zero_page_colors:
        return facts.zero_page_colors, ""
    for line in samples.lines(ZERO_PAGES):
        if "zero_frames" in line["metrics"]:
            return line["metrics"]["zero_frames"], ""
        return None, line["unavailable"]["zero_frames"]
    return None, samples.reason(ZERO_PAGES)


def _counter(counters: str, name: str, facts: Facts, samples: Samples) -> CounterFinding:
    figures: dict[str, Figure] = {}
    reason = ""
    for what in _COUNTED:
        task = counted_name(counters, what)
        lines = [line for line in samples.lines(task) if name in line["metrics"]]
        taken = figure(_per_unit(name, line, facts.page_size) for line in lines)
        if taken:
            figures[what] = taken
        elif samples.has(task):
            absent = [line["unavailable"][name] for line in samples.lines(task)
                      if name in line["unavailable"]]  # fmt: skip
            reason = reason or (absent[0] if absent else samples.reason(task))
    reason = reason or samples.reason(counted_name(counters, _COUNTED[0]))
    return CounterFinding(name, figures, "" if figures else reason)


def _per_unit(name: str, line: Line, page_size: int) -> float:
    """Return a count per base page touched, or per read."""
    metrics, params = line["metrics"], line["params"]
    if "reads" in metrics:
        return float(metrics[name]) / float(metrics["reads"])
    return float(metrics[name]) * page_size / float(params["size"])


def _noisy(facts: Facts, touches: list[TouchFinding], colors: list[ColorFinding]) -> list[str]:
    """Return what the sentences rest on and is too unsteady to bear them."""
    figures = {
        f"{kind_name(t.kind, facts)} in {format_size(t.page_size)} pages": t.busy for t in touches
    }
    for finding in colors:
        level = finding.geometry.level.upper()
        figures[f"{level}, one zero page"] = finding.meeting
        figures[f"{level}, {finding.colors} zero pages"] = finding.spread
    return [name for name, fig in figures.items() if fig and fig.relative_spread > NOISY]
