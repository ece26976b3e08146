# SPDX-License-Identifier: GPL-2.0
"""Whose the faults of a recording are: by place and kind, and by program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firsttouch.finder.found import Found
from firsttouch.finder.kinds import IN_KERNEL, NAMES
from firsttouch.finder.spaces import Place
from firsttouch.finder.symbols import Location, Symbols, is_nameless

# Places and programs that a trace lists, those with most faults; others have few each.
_MOST = 100
_CALLERS = 3
# exec fills the new program's stack when the code that called it is no longer mapped.
_EXEC = Location("", 0, "execve(2)")


@dataclass(frozen=True)
class FaultPlace:
    """The faults of one kind at one place; `callers` are those of its most frequent chain.

    `memory` is that of so many base pages, in bytes.
    """

    kind: str
    place: Location
    faults: int
    memory: int
    callers: tuple[str, ...]


@dataclass(frozen=True)
class ProgramFaults:
    """The faults of all processes that ran a program."""

    name: str
    processes: int
    faults: int
    kinds: Mapping[str, int]


def kinds_in(counts: Sequence[int]) -> dict[str, int]:
    """Return the counts of the kinds that there are, by name."""
    return {name: count for name, count in zip(NAMES, counts, strict=True) if count}


def fault_kinds(found: Found) -> dict[str, int]:
    """Return the number of faults of each kind that there is. They sum up to all."""
    return kinds_in([found.of_kind(kind) for kind in range(len(NAMES))])


def programs(found: Found) -> tuple[ProgramFaults, ...]:
    """Return the programs with faults, the one with most first."""
    all_of_them = [
        ProgramFaults(name, program.processes, sum(program.kinds), kinds_in(program.kinds))
        for name, program in found.programs.items()
        if any(program.kinds)
    ]
    return tuple(sorted(all_of_them, key=lambda program: (-program.faults, program.name))[:_MOST])


def fault_places(found: Found, symbols: Symbols, page_size: int) -> tuple[FaultPlace, ...]:
    """Return the places with most faults, by kind; what one line or function has is one place.

    Servers are asked for none of them: almost every file that is mapped has faults.
    """
    chains: dict[tuple[int, Place], list[tuple[int, int]]] = defaultdict(list)
    for stack, counts in enumerate(found.stack_kinds):
        for kind, count in enumerate(counts):
            if count:
                chains[kind, found.stacks[stack][0]].append((count, stack))
    largest = sorted(chains, key=lambda key: -sum(count for count, _ in chains[key]))[: 2 * _MOST]
    symbols.demangle(place for _, place in largest)
    groups: dict[tuple[int, str, str], list[tuple[Location, Place]]] = defaultdict(list)
    for kind, place in largest:
        location = symbols.locate(place, asking=False)
        if kind == IN_KERNEL and is_nameless(location):
            location = _EXEC
        groups[kind, location.object, str(location)].append((location, place))
    places = []
    for (kind, _, _), members in groups.items():
        stacks = [entry for _, place in members for entry in chains[kind, place]]
        faults = sum(count for count, _ in stacks)
        callers = found.stacks[max(stacks)[1]][1 : 1 + _CALLERS]
        symbols.demangle(callers)
        places.append(
            FaultPlace(
                NAMES[kind],
                members[0][0],
                faults,
                faults * page_size,
                tuple(symbols.caller(caller) for caller in callers),
            )
        )
    return tuple(sorted(places, key=lambda place: (-place.faults, str(place.place)))[:_MOST])
