# SPDX-License-Identifier: GPL-2.0
"""Findings from the samples of a survey: first touches, colours, counters, noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from firsttouch.quantities import format_size
from firsttouch.survey.counters import CounterFinding, counter_findings
from firsttouch.survey.geometry import CacheFinding, examine_caches
from firsttouch.survey.host import Geometry, Host
from firsttouch.survey.samples import Figure, Line, Samples, Survey
from firsttouch.survey.tasks import (
    FLOOR,
    KINDS,
    PAGES,
    ZERO_PAGES,
    color_name,
    hot_colors,
    kind_name,
    operation_of,
    touch_name,
    touch_tasks,
)

ATOMICS = ("ldadd", "swp", "cas", "casp", "ldxr")
# A time is noisy if the standard error of its median exceeds this fraction of it.
NOISY = 0.05


@dataclass(frozen=True)
class TouchFinding:
    """First touches of one kind, per page of `page_size` bytes; times in ns.

    `elapsed` is wall-clock time. `busy` is processor time, user and kernel
    together: the scheduler accounts this sum exactly, and nearly all of it is
    the kernel's. `system` is the kernel's part according to getrusage; it is a
    mean over all samples, because most kernels split the time by ticks.
    `against_floor` is `busy` divided by that of MADV_POPULATE_WRITE. Without
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
class OperationFinding:
    """An operation of mm, such as ``unmap pieces 4k``; times in ns for one operation.

    Without figures, `unavailable` says why.
    """

    name: str
    faults: float | None
    elapsed: Figure | None
    busy: Figure | None
    unavailable: str


@dataclass(frozen=True)
class ColorFinding:
    """One cache: the time of a loop over hot lines and zero pages, in ns per round.

    With a single zero page, `meeting` is for hot lines of its colour, `apart`
    for hot lines of other colours, and `mean` is over all colours. `spread` is
    with one zero page of each colour.
    """

    geometry: Geometry
    colors: int
    meeting: Figure | None
    apart: Figure | None
    spread: Figure | None
    mean: float | None
    unavailable: str


@dataclass(frozen=True)
class Findings:
    """All that a survey found; in `virtual_time` 1 ns is one instruction.

    `zero_pages` is the kernel's number of zero pages; `no_zero_pages` is the
    reason if it is unknown. `noisy` names the figures that are too noisy for a
    conclusion. `seconds_needed` estimates how long a survey must take to make
    them certain, if the noise does not change. `few` is the smallest number of
    samples of a first touch. `operations` are there if the survey was asked for them.
    """

    host: Host
    virtual_time: bool
    caches: tuple[CacheFinding, ...]
    touches: tuple[TouchFinding, ...]
    colors: tuple[ColorFinding, ...]
    zero_pages: int | None
    no_zero_pages: str
    counters: tuple[CounterFinding, ...]
    noisy: tuple[str, ...]
    few: int
    failures: tuple[str, ...]
    seconds_needed: int | None = None
    interrupted: bool = False
    operations: tuple[OperationFinding, ...] = ()

    def touch(self, kind: str, page: str = "base") -> TouchFinding | None:
        """Return the finding of `kind`; None if it has no figures."""
        return next(
            (t for t in self.touches if (t.kind, t.page) == (kind, page) and t.elapsed), None
        )

    @property
    def atomics(self) -> list[TouchFinding]:
        """The findings of atomics and load-exclusives that have figures."""
        return [touch for kind in ATOMICS if (touch := self.touch(kind))]

    @property
    def doubled(self) -> list[TouchFinding]:
        """The findings among `atomics` whose first touch takes two faults per page."""
        return [t for t in self.atomics if t.faults is not None and t.faults > 1.5]


def examine(survey: Survey) -> Findings:
    """Return what the samples of `survey` show."""
    host, virtual_time = survey.host, survey.virtual_time
    samples = Samples(survey.samples)
    if survey.interrupted:
        samples = Samples(survey.samples, "the survey was interrupted before it")
    caches = examine_caches(host, samples, virtual_time=virtual_time)
    planned = {task.name for task in touch_tasks(host, 0)}
    touches = tuple(
        _touch(kind, page, fixed_size or host.page_size, samples)
        for page, fixed_size in PAGES.items()
        for kind in KINDS
        if touch_name(kind, page) in planned
    )
    colors = tuple(
        _colors(cache.used, host, samples, virtual_time) for cache in caches if cache.used
    )
    # If the times do not show a cache, there is no conclusion about its colours.
    shown = {cache.measured for cache in caches}
    zero_pages, no_zero_pages = _zero_pages(samples)
    noisy = _noisy(host, touches, [c for c in colors if c.geometry in shown])
    return Findings(
        host,
        virtual_time,
        tuple(caches),
        touches,
        colors,
        zero_pages,
        no_zero_pages,
        counter_findings(host, samples),
        tuple(noisy),
        min((t.elapsed.samples for t in touches if t.elapsed), default=0),
        tuple(sorted({f"{s.task}: {s.error}" for s in samples.failures()})),
        _seconds_needed(survey.seconds, noisy.values()),
        survey.interrupted,
        tuple(
            _operation(task.name, name, samples)
            for task in survey.tasks
            if (name := operation_of(task))
        ),
    )


def _touch(kind: str, page: str, page_size: int, samples: Samples) -> TouchFinding:
    task = touch_name(kind, page)

    def per_page(metric: Callable[[Line], float]) -> Callable[[Line], float]:
        return lambda line: metric(line) * page_size / line.number("size")

    def busy(of: str) -> Figure | None:
        return samples.figure(of, per_page(lambda line: line.busy_ns))

    faults = samples.figure(task, per_page(lambda line: line.metrics["page_faults"]))
    elapsed = samples.figure(task, per_page(lambda line: line.metrics["elapsed_ns"]))
    of_kernel = per_page(lambda line: line.metrics["sys_ns"])
    system = [of_kernel(line) for line in samples.lines(task)]
    busy_time, floor = busy(task), busy(touch_name(FLOOR, page))
    return TouchFinding(
        kind,
        page,
        page_size,
        faults.median if faults else None,
        elapsed,
        busy_time,
        sum(system) / len(system) if system else None,
        busy_time.median / floor.median if busy_time and floor and floor.median else None,
        "" if faults else samples.reason(task),
    )


def _operation(task: str, name: str, samples: Samples) -> OperationFinding:
    def each(metric: Callable[[Line], float]) -> Figure | None:
        return samples.figure(task, lambda line: metric(line) / line.metrics["operations"])

    faults = each(lambda line: line.metrics["page_faults"])
    return OperationFinding(
        name,
        faults.median if faults else None,
        each(lambda line: line.metrics["elapsed_ns"]),
        each(lambda line: line.busy_ns),
        "" if faults else samples.reason(task),
    )


def _ns_per_round(line: Line) -> float:
    return line.busy_ns / line.number("rounds")


def _colors(geometry: Geometry, host: Host, samples: Samples, virtual_time: bool) -> ColorFinding:
    colors = geometry.colors(host.page_size)
    if colors == 1:
        return ColorFinding(geometry, 1, None, None, None, None, "")
    if virtual_time:
        reason = (
            "the guest's clock counts instructions, not the time of caches; "
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
        # The single zero page has one of the colours.
        mean = (meeting.median + (colors - 1) * apart.median) / colors
    reason = "" if spread else samples.reason(color_name(geometry.level, 1, 0))
    return ColorFinding(geometry, colors, meeting, apart, spread, mean, reason)


def _zero_pages(samples: Samples) -> tuple[int | None, str]:
    for line in samples.lines(ZERO_PAGES):
        if "zero_frames" in line.metrics:
            return int(line.metrics["zero_frames"]), ""
        return None, line.unavailable["zero_frames"]
    return None, samples.reason(ZERO_PAGES)


def _noisy(
    host: Host, touches: Iterable[TouchFinding], colors: Iterable[ColorFinding]
) -> dict[str, Figure]:
    """Return the figures that are too noisy for a conclusion, by name."""
    figures = {
        f"{kind_name(t.kind, host)} in {format_size(t.page_size)} pages": t.busy for t in touches
    }
    for finding in colors:
        level = finding.geometry.level.upper()
        figures[f"{level}, one zero page"] = finding.meeting
        figures[f"{level}, {finding.colors} zero pages"] = finding.spread
    return {name: fig for name, fig in figures.items() if fig and fig.uncertainty > NOISY}


def _seconds_needed(seconds: int | None, noisy: Iterable[Figure]) -> int | None:
    """Return the seconds that a survey must take so that none of these figures is noisy."""
    worst = max((fig.uncertainty for fig in noisy), default=None)
    if seconds is None or worst is None:
        return None
    # The error falls with the square root of the time. Use twice that time, because few
    # samples underestimate the spread.
    return math.ceil(2 * seconds * (worst / NOISY) ** 2 / 10) * 10
