# SPDX-License-Identifier: GPL-2.0
"""Whose the faults of a recording are: by place and kind, program, process and thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from firsttouch.trace.givers import Giver
from firsttouch.trace.kinds import AGAIN, NAMES
from firsttouch.trace.sites import FaultPlace, GiverPlace, Location, Members
from firsttouch.trace.spaces import Place
from firsttouch.trace.totals import Tally, Totals

# The library that reads ELF files takes as long to import as all that reads a result.
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
