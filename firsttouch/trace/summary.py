# SPDX-License-Identifier: GPL-2.0
"""Makes the trace of a recording: its faults by what they are, its doubles by site."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from firsttouch.trace.kinds import AGAIN, NAMES
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import (
    FaultPlace,
    GiverPlace,
    Location,
    Members,
    Remedy,
    Site,
    Trace,
)
from firsttouch.trace.spaces import Place
from firsttouch.trace.totals import Giver, Tally, Totals

if TYPE_CHECKING:
    from firsttouch.trace.symbols import Symbols

# Places, programs and so on that a trace lists, those with most faults; others have few each.
MOST = 100
_CALLERS = 3
_NONE = (0,) * len(NAMES)


def kinds_in(counts: Sequence[int]) -> dict[str, int]:
    """Return the counts of the kinds that there are, by name."""
    return {name: count for name, count in zip(NAMES, counts, strict=True) if count}


def fault_kinds(totals: Totals) -> dict[str, int]:
    """Return the number of faults of each kind that there is. They sum up to all."""
    return kinds_in([sum(counts) for counts in zip(*totals.stack_kinds, strict=True)] or _NONE)


def _members(tallies: Mapping[tuple[int, str], Tally]) -> tuple[Members, ...]:
    """Return those that have faults, the one with most first."""
    entries = [(key, tally) for key, tally in tallies.items() if tally.faults]
    return tuple(
        Members(name, tally.faults, kinds_in(tally.kinds), tally.members, pid)
        for (pid, name), tally in sorted(entries, key=lambda e: (-e[1].faults, e[0]))[:MOST]
    )


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


def summarize(recording: Recording, totals: Totals, symbols: Symbols) -> Trace:
    """Return the trace of a recording whose events were read."""
    ending = recording.ending
    seconds = (ending.time - recording.time if ending else totals.timeline.last) / 1e9
    unseen = None
    if ending and not totals.detached and ending.minor + ending.major and not recording.attached:
        unseen = max(0, ending.minor + ending.major - ending.faults)
    kinds = fault_kinds(totals)
    sites = _sites(totals, symbols)
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
        programs=_members(totals.programs),
        threads=_members(totals.threads),
        processes=_members(totals.processes),
        remedies=tuple(
            Remedy(
                name,
                outcome.saved,
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


def _sites(totals: Totals, symbols: Symbols) -> tuple[Site, ...]:
    """Return the sites, the one with most doubles first; pairs of the same lines are one."""
    locations = symbols.locate(place for pair in totals.pairs for place in (pair.read, pair.write))
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, pair in enumerate(totals.pairs):
        places = (locations[place] for place in (pair.read, pair.write))
        key = (pair.kind, pair.memory, *(f"{place.object} {place}" for place in places))
        groups[key].append(index)
    sites = []
    for members in groups.values():
        pair = totals.pairs[max(members, key=lambda member: totals.counts[member])]
        read, write = locations[pair.read], locations[pair.write]
        doubles = sum(totals.counts[member] for member in members)
        sites.append(Site(pair.kind, pair.memory, read, write, pair.reading, pair.writing, doubles))
    return tuple(sorted(sites, key=lambda site: (-site.doubles, str(site.read), str(site.write))))
