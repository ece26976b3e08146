# SPDX-License-Identifier: GPL-2.0
"""A trace: double faults by site, and how many of them each remedy would remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firsttouch.finder.fault_places import (
    FaultPlace,
    ProcessFaults,
    ProgramFaults,
    ThreadFaults,
)
from firsttouch.finder.locations import Location
from firsttouch.finder.totals import KINDS

# What removes a double, in the order of the tables.
RMW, POPULATE, HUGE, SOURCE = REMEDIES = ("rmw", "populate", "huge pages", "source")


@dataclass(frozen=True)
class Site:
    """The doubles between two places of the source; `removable` counts them by remedy."""

    kind: str
    memory: str
    read: Location
    write: Location
    reading: str
    writing: str
    doubles: int
    removable: Mapping[str, int]


@dataclass(frozen=True)
class Price:
    """What the second faults cost: ns each, measured on this host, or instructions in the lab.

    `source` names where the figure is from.
    """

    each: float
    unit: str
    source: str


@dataclass(frozen=True)
class Cost:
    """What the faults of a kind take: ns each, and the width of the samples' middle half."""

    kind: str
    faults: int
    each: float
    spread: float


@dataclass(frozen=True)
class Remedy:
    """What a remedy would do by simulation: `saved` faults for `memory` in bytes at a time.

    `ns` is the processor time that it saves; None if a survey has no basis for it.
    """

    name: str
    saved: int
    memory: int
    ns: float | None = None


@dataclass(frozen=True)
class Trace:
    """What a trace found, without its faults.

    `status` is that of waitpid(2), None if the program goes on or the recorder
    was killed (then `complete` is false). `lost` faults were counted and not
    recorded. `unseen` were taken in the kernel, which may not be recorded
    without privileges; None if that is not known. `seconds` is the time from
    start to end. `untouched` counts pages of anonymous memory that were read
    and never written.
    `resident` is the most memory in bytes that a process of the command had at
    a time; 0 if that is not known. `unnamed` says why files have faults without names, a clause
    each. `exact` is false if the kernel did not tell whether a page was mapped at its
    faults, so that some doubles may be none. `detached` names programs that were not
    traced, with their children, since they have other rights than the tracer.
    `fault_kinds` counts all `faults`, `fault_places`, `programs`, `threads` and
    `processes` say whose they are.
    `allocator` is that of the processes with most first touches of anonymous memory.
    `no_huge` are first touches of processes that forbid huge pages for themselves.
    `costs` are by the survey in the file `basis`; `unpriced` is why one gives none.
    `calls` tells whether the system calls that give memory back were recorded.
    `system` is the system time in seconds, None if it is not known, `processor` the CPU,
    "" if it is not known.
    """

    command: tuple[str, ...]
    machine: str
    kernel: str
    page_size: int
    complete: bool
    status: int | None
    seconds: float
    faults: int
    in_kernel: int
    anonymous: int
    lost: int
    unseen: int | None
    major: int
    undecoded: int
    untouched: int
    sites: tuple[Site, ...]
    resident: int = 0
    prices: tuple[Price, ...] = ()
    unnamed: tuple[str, ...] = ()
    exact: bool = True
    detached: tuple[str, ...] = ()
    fault_kinds: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[ProgramFaults, ...] = ()
    threads: tuple[ThreadFaults, ...] = ()
    processes: tuple[ProcessFaults, ...] = ()
    fault_places: tuple[FaultPlace, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    allocator: str = ""
    no_huge: int = 0
    costs: tuple[Cost, ...] = ()
    basis: str = ""
    unpriced: str = ""
    system: float | None = None
    processor: str = ""
    calls: bool = False

    @property
    def doubles(self) -> int:
        """The number of double faults."""
        return sum(site.doubles for site in self.sites)

    @property
    def lower_bound(self) -> bool:
        """Whether so much was not recorded, such as 0.1 % of the faults, that more are double."""
        lost = self.lost > (self.faults + self.lost) / 1000
        return lost or not self.complete or bool(self.detached)

    def of_kind(self, kind: str) -> int:
        """Return the number of doubles of a kind."""
        return sum(site.doubles for site in self.sites if site.kind == kind)

    def of_memory(self, memory: str) -> int:
        """Return the number of doubles in a kind of memory."""
        return sum(site.doubles for site in self.sites if site.memory == memory)

    def removable(self, remedy: str) -> int:
        """Return the number of doubles that a remedy would remove."""
        return sum(site.removable[remedy] for site in self.sites)


def kinds_of(trace: Trace) -> dict[str, int]:
    """Return the number of doubles of each kind that there is."""
    return {kind: count for kind in KINDS if (count := trace.of_kind(kind))}
