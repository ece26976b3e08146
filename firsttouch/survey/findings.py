# SPDX-License-Identifier: GPL-2.0
"""Findings from the samples of a survey: first touches, set conflicts, noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from firsttouch.analysis.figures import Figure
from firsttouch.quantities import format_size
from firsttouch.survey.tasks import (
    FLOOR,
    KINDS,
    PAGES,
    Sample,
    Survey,
    conflict_name,
    kind_name,
    touch_name,
)
from firsttouch.vm.host import LEVELS, Host, HostCache

ATOMICS = ("ldadd", "swp", "cas", "casp", "ldxr")
# A time is noisy if the standard error of its median exceeds this fraction of it.
NOISY = 0.05


@dataclass(frozen=True)
class TouchFinding:
    """First touches of one kind, per page of `page_size` bytes; times in ns.

    `elapsed` is wall-clock time. `busy` is processor time, user and kernel
    together, nearly all of it the kernel's. `against_floor` is `busy` divided by
    that of MADV_POPULATE_WRITE. Without figures, `unavailable` is the reason.
    """

    kind: str
    page: str
    page_size: int
    faults: float
    elapsed: Figure | None
    busy: Figure | None
    against_floor: float | None
    unavailable: str


@dataclass(frozen=True)
class ConflictFinding:
    """Reads of lines of one set of a cache: ns a read if they hit, and with one line too many.

    Without figures, `unavailable` is the reason.
    """

    cache: HostCache
    hit: Figure | None
    conflict: Figure | None
    unavailable: str


@dataclass(frozen=True)
class Findings:
    """All that a survey found.

    `noisy` names the times that are too noisy for a conclusion.
    """

    host: Host
    touches: tuple[TouchFinding, ...]
    conflicts: tuple[ConflictFinding, ...]
    noisy: tuple[str, ...]
    failures: tuple[str, ...]
    interrupted: bool

    def touch(self, kind: str, page: str = "base") -> TouchFinding | None:
        """Return the finding of `kind`; None if it has no figures."""
        return next((t for t in self.touches if (t.kind, t.page) == (kind, page) and t.busy), None)

    @property
    def atomics(self) -> list[TouchFinding]:
        """The findings of atomics and load-exclusives that have figures."""
        return [touch for kind in ATOMICS if (touch := self.touch(kind))]

    @property
    def doubled(self) -> list[TouchFinding]:
        """The findings among `atomics` whose first touch takes two faults per page."""
        return [touch for touch in self.atomics if touch.faults > 1.5]


def examine(survey: Survey) -> Findings:
    """Return what the samples of `survey` show."""
    host = survey.host
    planned = {task.name for task in survey.tasks}
    touches = tuple(
        _touch(survey, kind, page, size or host.page_size)
        for page, size in PAGES.items()
        for kind in KINDS
        if touch_name(kind, page) in planned
    )
    times = {
        f"{kind_name(t.kind, host)} in {format_size(t.page_size)} pages": t.busy for t in touches
    }
    return Findings(
        host,
        touches,
        tuple(_conflicts(survey)),
        tuple(name for name, time in times.items() if time and time.uncertainty > NOISY),
        tuple(sorted({f"{s.task}: {s.error}" for s in survey.samples if s.error})),
        survey.interrupted,
    )


def _figure(values: Iterable[float]) -> Figure | None:
    samples = tuple(values)
    return Figure("ns", samples) if samples else None


def _touch(survey: Survey, kind: str, page: str, page_size: int) -> TouchFinding:
    task = touch_name(kind, page)

    def per_page(metric: Callable[[Sample], float], of: str = task) -> Figure | None:
        samples = survey.measured(of)
        return _figure(metric(sample) * page_size / sample.metrics["size"] for sample in samples)

    faults = per_page(lambda sample: sample.metrics["page_faults"])
    busy = per_page(lambda sample: sample.busy_ns)
    floor = per_page(lambda sample: sample.busy_ns, touch_name(FLOOR, page))
    return TouchFinding(
        kind,
        page,
        page_size,
        faults.median if faults else 0.0,
        per_page(lambda sample: sample.metrics["elapsed_ns"]),
        busy,
        busy.median / floor.median if busy and floor and floor.median else None,
        "" if busy else survey.reason(task),
    )


def _conflicts(survey: Survey) -> Iterable[ConflictFinding]:
    above: HostCache | None = None
    planned = {task.name for task in survey.tasks}

    def read(level: str, lines: int) -> Figure | None:
        samples = survey.measured(conflict_name(level, lines))
        return _figure(sample.busy_ns / sample.metrics["reads"] for sample in samples)

    for level in LEVELS:
        cache = survey.host.cache(level)
        if not cache or conflict_name(level, cache.ways) not in planned:
            continue
        hit, conflict = read(level, cache.ways), read(level, cache.ways + 1)
        if above and cache.ways <= above.ways:
            # So few lines hit in the level above. Lines that conflict there hit in this cache.
            hit = read(above.level, above.ways + 1)
        reason = "" if conflict else survey.reason(conflict_name(level, cache.ways + 1))
        yield ConflictFinding(cache, hit, conflict, reason)
        above = cache
