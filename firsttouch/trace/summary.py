# SPDX-License-Identifier: GPL-2.0
"""Makes the trace of a recording: its faults by what they are, its doubles by site."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from firsttouch.trace.kinds import AGAIN, NAMES
from firsttouch.trace.records import Recording
from firsttouch.trace.remedies import AROUND
from firsttouch.trace.sites import (
    HUGE,
    POPULATE,
    REMEDIES,
    RMW,
    SOURCE,
    FaultPlace,
    GiverPlace,
    Location,
    Members,
    Remedy,
    Site,
    Trace,
)
from firsttouch.trace.spaces import ANONYMOUS, Place
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import ATOMIC, BLOCK, Giver, Outcome, Pair, Tally, Totals

if TYPE_CHECKING:
    from firsttouch.trace.symbols import Symbols

# Places, programs and so on that a trace lists, those with most faults; others have few each.
MOST = 100
_CALLERS = 3
_Key = TypeVar("_Key", str, tuple[int, str])


def kinds_in(counts: Sequence[int]) -> dict[str, int]:
    """Return the counts of the kinds that there are, by name."""
    return {name: count for name, count in zip(NAMES, counts, strict=True) if count}


def fault_kinds(totals: Totals) -> dict[str, int]:
    """Return the number of faults of each kind that there is. They sum up to all."""
    return kinds_in([totals.of_kind(kind) for kind in range(len(NAMES))])


def members_of(tallies: Mapping[str, Tally]) -> tuple[Members, ...]:
    """Return the programs or names of threads with faults, the one with most first."""
    return tuple(
        Members(name, tally.faults, kinds_in(tally.kinds), tally.members)
        for name, tally in _most(tallies)
    )


def processes(totals: Totals) -> tuple[Members, ...]:
    """Return the processes with most faults, each by the programs that it ran."""
    return tuple(
        Members(name, tally.faults, kinds_in(tally.kinds), pid=pid)
        for (pid, name), tally in _most(totals.processes)
    )


def _most(tallies: Mapping[_Key, Tally]) -> list[tuple[_Key, Tally]]:
    """Return those that have faults, the one with most first."""
    entries = [(key, tally) for key, tally in tallies.items() if tally.faults]
    return sorted(entries, key=lambda entry: (-entry[1].faults, entry[0]))[:MOST]


def fault_places(totals: Totals, symbols: Symbols, page_size: int) -> tuple[FaultPlace, ...]:
    """Return the places with most faults, by kind; what one line or function has is one place.

    Servers are asked for none of them: almost every file that is mapped has faults.
    """
    chains: dict[tuple[int, Place], list[tuple[int, int]]] = defaultdict(list)
    for stack, counts in enumerate(totals.stack_kinds):
        for kind, count in enumerate(counts):
            if count:
                place = totals.stacks[stack][0]
                if not place.path and not symbols.function(place):
                    # What a JIT compiler made and gave no name is one place.
                    place = Place("", 0, 0)
                chains[kind, place].append((count, stack))
    largest = sorted(chains, key=lambda key: -sum(count for count, _ in chains[key]))[: 2 * MOST]
    locations = symbols.locate((place for _, place in largest), asking=False)
    groups: dict[tuple[int, str, str], list[tuple[Location, Place]]] = defaultdict(list)
    for kind, place in largest:
        location = locations[place]
        groups[kind, location.object, str(location)].append((location, place))
    givers: dict[int, Counter[Giver]] = defaultdict(Counter)
    for (stack, giver), count in totals.givers.items():
        if giver:
            givers[stack][giver] += count
    places = []
    for (kind, _, _), members in groups.items():
        stacks = [entry for _, place in members for entry in chains[kind, place]]
        faults = sum(count for count, _ in stacks)
        callers = totals.stacks[max(stacks)[1]][1 : 1 + _CALLERS]
        symbols.demangle(callers)
        gave: Counter[Giver] = Counter()
        for _, stack in stacks if kind == AGAIN else ():
            gave.update(givers[stack])
        places.append(
            FaultPlace(
                NAMES[kind],
                members[0][0],
                faults,
                faults * page_size,
                tuple(symbols.caller(caller) for caller in callers),
                tuple(_givers(gave, totals, symbols)),
            )
        )
    return tuple(sorted(places, key=lambda place: (-place.faults, str(place.place)))[:MOST])


def _givers(gave: Counter[Giver], totals: Totals, symbols: Symbols) -> Iterator[GiverPlace]:
    """Yield who gave pages back most often."""
    for (stack, call), faults in gave.most_common(_CALLERS):
        functions = totals.stacks[stack][: 1 + _CALLERS]
        symbols.demangle(functions)
        yield GiverPlace(call, tuple(map(symbols.caller, functions)), faults)


# Shares of the pages of such a block that the program touches: from the first on it is worth
# while to populate all of it, from the second on a huge page wastes less than it holds.
_POPULATED, _HUGE = 0.9, 0.5


def summarize(recording: Recording, totals: Totals, symbols: Symbols) -> Trace:
    """Return the trace of a recording whose events were read."""
    ending = recording.ending
    seconds = (ending.time - recording.time if ending else totals.timeline.last) / 1e9
    unseen = None
    if ending and not totals.detached and ending.minor + ending.major and not recording.attached:
        unseen = max(0, ending.minor + ending.major - ending.faults)
    kinds = fault_kinds(totals)
    sites = _sites(totals, symbols, recording.page_size)
    places = fault_places(totals, symbols, recording.page_size)
    return Trace(
        command=recording.command,
        machine=recording.machine,
        kernel=recording.kernel_release,
        page_size=recording.page_size,
        complete=ending is not None,
        status=ending.status if ending else None,
        seconds=seconds,
        faults=sum(kinds.values()),
        in_kernel=totals.in_kernel,
        anonymous=totals.anonymous,
        lost=max(0, ending.faults - totals.count) if ending else 0,
        unseen=unseen,
        major=ending.major if ending else 0,
        undecoded=totals.undecoded,
        untouched=totals.unwritten,
        sites=sites,
        resident=ending.resident * 1024 if ending else 0,
        unnamed=symbols.troubles(),
        exact=recording.says_mapped,
        system=ending.system / 1e9 if ending and ending.system else None,
        detached=tuple(dict.fromkeys(totals.detached)),
        fault_kinds=kinds,
        programs=members_of(totals.programs),
        threads=members_of(totals.threads),
        processes=processes(totals),
        remedies=tuple(
            Remedy(
                name,
                _saved(name, outcome, recording),
                outcome.most * recording.page_size,
                most=outcome.saved + outcome.chance if outcome.chance else 0,
            )
            for name, outcome in totals.outcomes.items()
        ),
        allocator=max(totals.allocators, key=lambda name: totals.allocators[name], default=""),
        no_huge=totals.no_huge,
        fault_places=places,
        calls=recording.says_calls,
        nameless=sum(
            sum(kinds)
            for places, kinds in zip(totals.stacks, totals.stack_kinds, strict=True)
            if not places[0].path and not symbols.function(places[0])
        ),
    )


def _saved(name: str, outcome: Outcome, recording: Recording) -> int:
    """Return the faults that a remedy saves.

    Fault-around maps what is in the page cache. A fault that has to read from a disk stays, and
    so does the next, which finds what that one read.
    """
    if name != AROUND or not recording.ending:
        return outcome.saved
    return max(0, outcome.saved - 2 * recording.ending.major)


def _sites(totals: Totals, symbols: Symbols, page_size: int) -> tuple[Site, ...]:
    """Return the sites, the one with most doubles first."""
    locations = symbols.locate(place for pair in totals.pairs for place in (pair.read, pair.write))
    dense = _dense(totals, page_size)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, pair in enumerate(totals.pairs):
        groups[_key(pair, locations)].append(index)
    sites = [
        _site(totals, sorted(members, key=lambda m: -totals.counts[m]), dense, locations)
        for members in groups.values()
    ]
    return tuple(sorted(sites, key=lambda site: (-site.doubles, str(site.read), str(site.write))))


def _key(pair: Pair, locations: Mapping[Place, Location]) -> tuple[str, ...]:
    """Return what the pairs of one site have in common: lines, or else functions or places."""
    places = (locations[place] for place in (pair.read, pair.write))
    return (pair.kind, pair.memory, *(f"{place.object} {place}" for place in places))


def _site(
    totals: Totals,
    members: list[int],
    dense: Mapping[int, Counter[str]],
    locations: Mapping[Place, Location],
) -> Site:
    pair = totals.pairs[members[0]]
    removable = dict.fromkeys(REMEDIES, 0)
    for member in members:
        for remedy, count in _removable(totals, member, dense).items():
            removable[remedy] += count
    return Site(
        pair.kind,
        pair.memory,
        locations[pair.read],
        locations[pair.write],
        pair.reading,
        pair.writing,
        sum(totals.counts[member] for member in members),
        removable,
    )


def _removable(totals: Totals, member: int, dense: Mapping[int, Counter[str]]) -> Mapping[str, int]:
    """Return how many doubles of a pair each remedy removes.

    A kernel upgrades reads of missing anonymous memory alone. To write first is
    possible everywhere, but the program does not write to a file's pages first
    where the loader does.
    """
    pair, count = totals.pairs[member], totals.counts[member]
    if pair.memory != ANONYMOUS:
        return {}
    upgraded = count if pair.kind == ATOMIC else 0
    return {RMW: upgraded, SOURCE: count, **dense.get(member, {})}


def _dense(totals: Totals, page_size: int) -> dict[int, Counter[str]]:
    """Return by pair how many of its doubles are in blocks that the program fills."""
    dense: dict[int, Counter[str]] = defaultdict(Counter)
    for pair, counts in totals.filled.items():
        for pages, count in counts.items():
            for remedy in _filled(pages * page_size / BLOCK):
                dense[pair][remedy] += count
    return dense


def _filled(share: float) -> Iterable[str]:
    if share >= _POPULATED:
        yield POPULATE
    if share >= _HUGE:
        yield HUGE
