# SPDX-License-Identifier: GPL-2.0
"""A trace: double faults by site, and how many of them each remedy would remove."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from firsttouch.finder.fault_places import (
    FaultPlace,
    ProgramFaults,
    fault_kinds,
    fault_places,
    programs,
)
from firsttouch.finder.found import ATOMIC, BLOCK, KINDS, Found, Pair
from firsttouch.finder.records import Recording
from firsttouch.finder.spaces import ANONYMOUS, Place
from firsttouch.finder.symbols import Location, Symbols

# What removes a double, in the order of the tables.
RMW, POPULATE, HUGE, SOURCE = REMEDIES = ("rmw", "populate", "huge pages", "source")
# Shares of the pages of such a block that the program touches: from the first on it is worth
# while to populate all of it, from the second on a huge page wastes less than it holds.
_POPULATED, _HUGE = 0.9, 0.5


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
class Remedy:
    """What a remedy would do by simulation: `saved` faults for `memory` in bytes at a time."""

    name: str
    saved: int
    memory: int


@dataclass(frozen=True)
class Trace:
    """What a trace found, without its faults.

    `status` is that of waitpid(2), None if the program goes on or the recorder
    was killed (then `complete` is false). `lost` faults were counted and not
    recorded. `unseen` were taken in the kernel, which may not be recorded
    without privileges; None if that is not known. `seconds` is the time from
    start to end. `untouched` counts pages of anonymous memory that were read
    and never written; `zero_pages` those of the command that the kernel still
    maps to the zero page at its end, None if it was not asked or cannot tell.
    `resident` is the most memory in bytes that a process of the command had at
    a time; 0 if that is not known. `unnamed` says why files have doubles without names, a clause
    each. `exact` is false if the kernel did not tell whether a page was mapped at its
    faults, so that some doubles may be none. `detached` names programs that were not
    traced, with their children, since they have other rights than the tracer.
    `fault_kinds` counts all `faults`, `fault_places` and `programs` say whose they are.
    `allocator` is that of the processes with most faults on memory that came again.
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
    zero_pages: int | None = None
    resident: int = 0
    prices: tuple[Price, ...] = ()
    unnamed: tuple[str, ...] = ()
    exact: bool = True
    detached: tuple[str, ...] = ()
    fault_kinds: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[ProgramFaults, ...] = ()
    fault_places: tuple[FaultPlace, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    allocator: str = ""

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


def summarize(recording: Recording, found: Found, symbols: Symbols) -> Trace:
    """Return the trace of a recording whose events were read."""
    ending = recording.ending
    seconds = (ending.time - recording.time if ending else found.timeline.last) / 1e9
    unseen = None
    if ending and not found.detached and ending.minor + ending.major and not recording.attached:
        unseen = max(0, ending.minor + ending.major - ending.faults)
    return Trace(
        command=recording.command,
        machine=recording.machine,
        kernel=recording.kernel_release,
        page_size=recording.page_size,
        complete=ending is not None,
        status=ending.status if ending else None,
        seconds=seconds,
        faults=found.count,
        in_kernel=found.in_kernel,
        anonymous=found.anonymous,
        lost=max(0, ending.faults - found.count) if ending else 0,
        unseen=unseen,
        major=ending.major if ending else 0,
        undecoded=found.undecoded,
        untouched=found.unwritten,
        sites=_sites(found, symbols, recording.page_size),
        zero_pages=_zero_pages(recording),
        resident=ending.resident * 1024 if ending else 0,
        unnamed=symbols.troubles(_places(found)),
        exact=recording.says_mapped,
        detached=tuple(dict.fromkeys(found.detached)),
        fault_kinds=fault_kinds(found),
        programs=programs(found),
        remedies=tuple(
            Remedy(name, outcome.saved, outcome.most * recording.page_size)
            for name, outcome in found.outcomes.items()
        ),
        allocator=max(found.allocators, key=lambda name: found.allocators[name], default=""),
        fault_places=fault_places(found, symbols, recording.page_size),
    )


def _zero_pages(recording: Recording) -> int | None:
    if not recording.zero_pages:
        return None
    ranges = [one for ranges in recording.zero_pages.values() for one in ranges]
    return sum(end - start for start, end in ranges) // recording.page_size


def _places(found: Found) -> list[Place]:
    return [place for pair in found.pairs for place in (pair.read, pair.write)]


def _sites(found: Found, symbols: Symbols, page_size: int) -> tuple[Site, ...]:
    """Return the sites, the one with most doubles first."""
    places = _places(found)
    symbols.ask(places)
    symbols.demangle(places)
    dense = _dense(found, page_size)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, pair in enumerate(found.pairs):
        groups[_key(pair, symbols)].append(index)
    sites = [
        _site(found, sorted(members, key=lambda m: -found.counts[m]), dense, symbols)
        for members in groups.values()
    ]
    return tuple(sorted(sites, key=lambda site: (-site.doubles, str(site.read), str(site.write))))


def _key(pair: Pair, symbols: Symbols) -> tuple[str, ...]:
    """Return what the pairs of one site have in common: lines, or else functions or places."""
    places = (symbols.locate(place) for place in (pair.read, pair.write))
    return (pair.kind, pair.memory, *(f"{place.object} {place}" for place in places))


def _site(
    found: Found, members: list[int], dense: Mapping[int, Counter[str]], symbols: Symbols
) -> Site:
    pair = found.pairs[members[0]]
    removable = dict.fromkeys(REMEDIES, 0)
    for member in members:
        for remedy, count in _removable(found, member, dense).items():
            removable[remedy] += count
    return Site(
        pair.kind,
        pair.memory,
        symbols.locate(pair.read),
        symbols.locate(pair.write),
        pair.reading,
        pair.writing,
        sum(found.counts[member] for member in members),
        removable,
    )


def _removable(found: Found, member: int, dense: Mapping[int, Counter[str]]) -> Mapping[str, int]:
    """Return how many doubles of a pair each remedy removes.

    A kernel upgrades reads of missing anonymous memory alone. To write first is
    possible everywhere, but the program does not write to a file's pages first
    where the loader does.
    """
    pair, count = found.pairs[member], found.counts[member]
    if pair.memory != ANONYMOUS:
        return {}
    upgraded = count if pair.kind == ATOMIC else 0
    return {RMW: upgraded, SOURCE: count, **dense.get(member, {})}


def _dense(found: Found, page_size: int) -> dict[int, Counter[str]]:
    """Return by pair how many of its doubles are in blocks that the program fills."""
    dense: dict[int, Counter[str]] = defaultdict(Counter)
    for pair, counts in found.filled.items():
        for pages, count in counts.items():
            for remedy in _filled(pages * page_size / BLOCK):
                dense[pair][remedy] += count
    return dense


def _filled(share: float) -> Iterable[str]:
    if share >= _POPULATED:
        yield POPULATE
    if share >= _HUGE:
        yield HUGE


def kinds_of(trace: Trace) -> dict[str, int]:
    """Return the number of doubles of each kind that there is."""
    return {kind: count for kind in KINDS if (count := trace.of_kind(kind))}
