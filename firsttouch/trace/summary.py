# SPDX-License-Identifier: GPL-2.0
"""Makes the trace of a recording: its faults by what they are, its doubles by site."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING

from firsttouch.trace.kinds import AGAIN, NAMES
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import (
    FaultPlace,
    GiverPlace,
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


# Libraries whose faults are their callers': of C and C++, the dynamic linker, allocators.
_RUNTIME = re.compile(
    r"(lib(c|pthread|stdc\+\+|gcc_s|jemalloc|mimalloc|tcmalloc\w*)|ld-(linux|musl))(-\S+)?\.so.*"
)
# What a function of the C library that calls main is not.
_BELOW_MAIN = re.compile(r"(?!__libc_start|_start)").match
# Of an implementation in assembly: what it implements.
_VARIANT = re.compile(r"__(\w+?)_(avx|evex|sse|erms|mops|sve|generic|zva|thunderx|oryon|a64fx)\w*")


def is_runtime(place: Place) -> bool:
    """Tell whether a place is in a library whose faults are its callers'."""
    return _is_runtime(place.path)


@functools.cache
def _is_runtime(path: str) -> bool:
    return _RUNTIME.fullmatch(PurePath(path).name) is not None


def own_place(stack: Sequence[Place]) -> Place:
    """Return the first place in the program's own code, or the pc's."""
    return next((place for place in stack if not is_runtime(place)), stack[0])


def fault_places(totals: Totals, symbols: Symbols, page_size: int) -> tuple[FaultPlace, ...]:
    """Return the places with most faults, by kind; what one line or function has is one place."""
    chains: dict[tuple[int, Place, str], list[tuple[int, int]]] = defaultdict(list)
    symbols.demangle(stack[0] for stack in totals.stacks)
    for number, (stack, counts) in enumerate(zip(totals.stacks, totals.stack_kinds, strict=True)):
        place = own_place(stack)
        leaf = "" if place is stack[0] else _VARIANT.sub(r"\1", symbols.caller(stack[0]))
        if not place.path and not symbols.function(place):
            # What a JIT compiler made and gave no name is one place.
            place = Place("", 0, 0)
        for kind, count in enumerate(counts):
            if count:
                chains[kind, place, leaf].append((count, number))
    largest = sorted(chains, key=lambda key: -sum(count for count, _ in chains[key]))[: 4 * MOST]
    locations = symbols.locate((place for _, place, _ in largest))
    groups: dict[tuple[int, str, str], list[tuple[int, Place, str]]] = defaultdict(list)
    for key in largest:
        kind, place, leaf = key
        name = FaultPlace("", locations[place], 0, 0, (), leaf=leaf).where
        groups[kind, locations[place].object, name].append(key)
    givers: dict[int, Counter[Giver]] = defaultdict(Counter)
    for (number, giver), count in totals.givers.items():
        if giver:
            givers[number][giver] += count
    places = []
    for (kind, _, _), members in groups.items():
        stacks = [entry for key in members for entry in chains[key]]
        faults = sum(count for count, _ in stacks)
        most = totals.stacks[max(stacks)[1]]
        behind = most.index(own_place(most)) + 1
        symbols.demangle(most)
        callers = takewhile(_BELOW_MAIN, map(symbols.caller, most[behind:]))
        gave: Counter[Giver] = Counter()
        for _, number in stacks if kind == AGAIN else ():
            gave.update(givers[number])
        places.append(
            FaultPlace(
                NAMES[kind],
                locations[members[0][1]],
                faults,
                faults * page_size,
                tuple(islice(callers, _CALLERS)),
                tuple(_giver(*most, totals, symbols) for most in gave.most_common(_CALLERS)),
                members[0][2],
            )
        )
    return tuple(sorted(places, key=lambda place: (-place.faults, place.where))[:MOST])


def _giver(giver: Giver, faults: int, totals: Totals, symbols: Symbols) -> GiverPlace:
    functions = totals.stacks[giver.stack][: 1 + _CALLERS]
    symbols.demangle(functions)
    return GiverPlace(giver.call, tuple(map(symbols.caller, functions)), faults)


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
