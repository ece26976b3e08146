# SPDX-License-Identifier: GPL-2.0
"""Whose the faults of a recording are: by place and kind, program, process and thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from firsttouch.finder.givers import Giver
from firsttouch.finder.kinds import AGAIN, NAMES
from firsttouch.finder.locations import Location, shortened
from firsttouch.finder.spaces import Place
from firsttouch.finder.totals import Tally, Totals

# The library that reads ELF files takes as long to import as all that reads a result.
if TYPE_CHECKING:
    from firsttouch.finder.symbols import Symbols

# Places, programs and so on that a trace lists, those with most faults; others have few each.
MOST = 100
_CALLERS = 3
_Key = TypeVar("_Key", str, tuple[int, str])


@dataclass(frozen=True)
class GiverPlace:
    """Who gave back pages before they had `faults` again: a system call, and the functions.

    The first function makes the call, and the others are its callers.
    """

    call: str
    functions: tuple[str, ...]
    faults: int


@dataclass(frozen=True)
class FaultPlace:
    """The faults of one kind at one place; `callers` are those of its most frequent chain.

    `memory` is that of so many base pages, in bytes. `givers` are those of kind `again` alone,
    the first with most faults, where system calls are recorded.
    """

    kind: str
    place: Location
    faults: int
    memory: int
    callers: tuple[str, ...]
    givers: tuple[GiverPlace, ...] = ()

    @property
    def called_by(self) -> str:
        """The callers' names, for a reader."""
        return ", ".join(shortened(name) for name in self.callers)


@dataclass(frozen=True)
class ProgramFaults:
    """The faults of all processes that ran a program."""

    name: str
    processes: int
    faults: int
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class ThreadFaults:
    """The faults of all threads of a name."""

    name: str
    threads: int
    faults: int
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class ProcessFaults:
    """The faults of a process while it ran a program."""

    pid: int
    name: str
    faults: int
    kinds: Mapping[str, int]


def kinds_in(counts: Sequence[int]) -> dict[str, int]:
    """Return the counts of the kinds that there are, by name."""
    return {name: count for name, count in zip(NAMES, counts, strict=True) if count}


def fault_kinds(totals: Totals) -> dict[str, int]:
    """Return the number of faults of each kind that there is. They sum up to all."""
    return kinds_in([totals.of_kind(kind) for kind in range(len(NAMES))])


def programs(totals: Totals) -> tuple[ProgramFaults, ...]:
    """Return the programs with faults, the one with most first."""
    return tuple(
        ProgramFaults(name, tally.members, tally.faults, kinds_in(tally.kinds))
        for name, tally in _most(totals.programs)
    )


def threads(totals: Totals) -> tuple[ThreadFaults, ...]:
    """Return the names of threads with faults, the one with most first.

    A thread has its program's name unless it gets another.
    """
    return tuple(
        ThreadFaults(name, tally.members, tally.faults, kinds_in(tally.kinds))
        for name, tally in _most(totals.threads)
    )


def processes(totals: Totals) -> tuple[ProcessFaults, ...]:
    """Return the processes with most faults, each by the programs that it ran."""
    return tuple(
        ProcessFaults(pid, name, tally.faults, kinds_in(tally.kinds))
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
                chains[kind, totals.stacks[stack][0]].append((count, stack))
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
