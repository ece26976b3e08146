# SPDX-License-Identifier: GPL-2.0
"""From a recorder's file to what people see: a trace, its sentences, trace.json, trace.html."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path

from rich.console import Console

from firsttouch.files import write_atomically
from firsttouch.trace.doubles import Finder
from firsttouch.trace.kinds import NAMES, Kind
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.page import FILE_NAME as PAGE_NAME
from firsttouch.trace.page import render_trace
from firsttouch.trace.records import Recording
from firsttouch.trace.sentences import conclude, print_trace
from firsttouch.trace.sites import (
    FILE_NAME,
    FaultPlace,
    Members,
    Remedy,
    Site,
    Trace,
    trace_document,
)
from firsttouch.trace.spaces import Place
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import Giver, Stack, Totals

# Places, programs and so on that a trace lists, those with most faults; others have few each.
_MOST = 100
_CALLERS = 3
# Libraries whose faults are their callers': of C and C++, the dynamic linker, allocators.
_RUNTIME = re.compile(
    r"(lib(c|pthread|stdc\+\+|gcc_s|jemalloc|mimalloc|tcmalloc\w*)|ld-(linux|musl))(-\S+)?\.so.*"
)
# What a function of the C library that calls main is not.
_BELOW_MAIN = re.compile(r"(?!__libc_start|_start)").match
# Of an implementation in assembly: what it implements.
_VARIANT = re.compile(r"__(\w+?)_(avx|evex|sse|erms|mops|sve|generic|zva|thunderx|oryon|a64fx)\w*")


@dataclass(frozen=True)
class Reading:
    trace: Trace
    totals: Totals
    symbols: Symbols
    sentences: tuple[str, ...]

    def print(self, console: Console, directory: Path) -> None:
        more = f"More: {directory / PAGE_NAME} (`firsttouch report {shlex.quote(str(directory))}`)"
        print_trace(self.trace, console, more)


def read_recording(
    file: Path, root: Path = Path("/"), price: Callable[[Trace, Path], Trace] | None = None
) -> Reading:
    """Return what a recorder's file shows; `root` is where the program's files are.

    `price` adds prices from its directory. Raises UserError if there is no trace in the file.
    """
    recording, files = Recording(file), MappedFiles(root)
    totals, symbols = Finder(recording, files).run(), Symbols(files)
    trace = summarize(recording, totals, symbols)
    if price:
        trace = price(trace, file.parent)
    return Reading(trace, totals, symbols, tuple(conclude(trace)))


def write_results(reading: Reading, directory: Path) -> str:
    """Write trace.json and trace.html into `directory`; return the text of the first."""
    text = trace_document(reading.trace, reading.sentences)
    write_atomically(directory / FILE_NAME, text)
    page = render_trace(reading.trace, reading.totals, reading.symbols, reading.sentences)
    write_atomically(directory / PAGE_NAME, page)
    return text


def summarize(recording: Recording, totals: Totals, symbols: Symbols) -> Trace:
    symbols.demangle(place for places in totals.stacks for place in places)
    ending = recording.ending
    unseen = None
    if ending and not totals.detached and ending.minor + ending.major and not recording.attached:
        unseen = max(0, ending.minor + ending.major - ending.faults)
    stacks = totals.stacks.values()
    counts = [sum(of_kind) for of_kind in zip(*(stack.kinds for stack in stacks), strict=True)]
    kinds = {name: count for name, count in zip(NAMES, counts, strict=False) if count}
    faults = sum(counts)
    return Trace(
        command=recording.command,
        machine=recording.machine,
        kernel=recording.kernel_release,
        page_size=recording.page_size,
        complete=ending is not None,
        status=ending.status if ending else None,
        seconds=(ending.time - recording.time if ending else totals.timeline.last) / 1e9,
        faults=faults,
        anonymous=totals.allocators.total(),
        contended=totals.contended,
        lost=max(0, ending.faults - faults) if ending else 0,
        unseen=unseen,
        sites=tuple(_sites(totals, symbols)),
        resident=ending.resident * 1024 if ending else 0,
        system=ending.system / 1e9 if ending and ending.system else None,
        detached=tuple(dict.fromkeys(totals.detached)),
        outlived=tuple(dict.fromkeys(totals.outlived)) if ending and recording.command else (),
        fault_kinds=kinds,
        programs=_members(totals, "program"),
        threads=_members(totals, "thread"),
        processes=_members(totals, "process"),
        remedies=tuple(
            Remedy(
                name,
                outcome.saved,
                outcome.excess * recording.page_size,
                most=outcome.saved + outcome.chance if outcome.chance else 0,
            )
            for name, outcome in totals.outcomes.items()
        ),
        allocator=next((name for name, _ in totals.allocators.most_common(1)), ""),
        fault_places=tuple(_fault_places(totals, symbols)),
        nameless=sum(
            sum(stack.kinds)
            for stack in stacks
            if not stack.places[0].path and not symbols.function(stack.places[0])
        ),
    )


def _members(totals: Totals, what: str) -> tuple[Members, ...]:
    members = [
        Members(name, faults, totals.members[of, pid, name], pid)
        for (of, pid, name), faults in totals.faults.items()
        if of == what and faults
    ]
    return tuple(sorted(members, key=lambda each: (-each.faults, each.pid, each.name))[:_MOST])


def _sites(totals: Totals, symbols: Symbols) -> Iterator[Site]:
    """Yield the sites, the one with most doubles first; pairs of the same lines are one."""
    locations = symbols.locate(place for pair in totals.pairs for place in (pair.read, pair.write))
    sites: dict[tuple[str, ...], Site] = {}
    for pair, doubles in totals.pairs.most_common():
        read, write = locations[pair.read], locations[pair.write]
        key = (pair.kind, pair.memory, read.object, str(read), write.object, str(write))
        site = sites.setdefault(key, Site(pair.kind, pair.memory, read, write, 0))
        sites[key] = replace(site, doubles=site.doubles + doubles)
    yield from sorted(sites.values(), key=lambda s: (-s.doubles, str(s.read), str(s.write)))


def is_runtime(place: Place) -> bool:
    """Tell whether a place is in a library whose faults are its callers'."""
    return _RUNTIME.fullmatch(place.path.rpartition("/")[2]) is not None


def own_place(stack: Sequence[Place]) -> Place:
    """Return the first place in the program's own code, or the pc's."""
    return next((place for place in stack if not is_runtime(place)), stack[0])


def _fault_places(totals: Totals, symbols: Symbols) -> Iterator[FaultPlace]:
    """Yield the functions with most faults, by kind; each has the line of its commonest chain."""
    groups: dict[tuple[int, str, str, str], Counter[Stack]] = defaultdict(Counter)
    for stack in totals.stacks.values():
        place, leaf = own_place(stack.places), ""
        if place is not stack.places[0]:
            leaf = _VARIANT.sub(r"\1", symbols.caller(stack.places[0]))
        # What a JIT compiler made and gave no name is one place.
        function = symbols.function(place) or (f"{place.offset:#x}" if place.path else "")
        for kind, count in enumerate(stack.kinds):
            if count:
                groups[kind, place.path, function, leaf][stack] += count
    largest = sorted(groups.items(), key=lambda entry: (-entry[1].total(), entry[0]))[:_MOST]
    chains = [stacks.most_common(1)[0][0].places for _, stacks in largest]
    locations = symbols.locate(map(own_place, chains))
    for ((kind, _, _, leaf), stacks), chain in zip(largest, chains, strict=True):
        place = own_place(chain)
        behind = chain[chain.index(place) + 1 :]
        callers = takewhile(_BELOW_MAIN, map(symbols.caller, behind))
        given_back: tuple[str, ...] = ()
        givers = sum((stack.givers for stack in stacks), Counter[Giver]())
        if kind == Kind.AGAIN and givers:
            ((giver, _),) = givers.most_common(1)
            given_back = giver.call, *map(symbols.caller, giver.places[: 1 + _CALLERS])
        yield FaultPlace(
            NAMES[kind],
            locations[place],
            stacks.total(),
            tuple(islice(callers, _CALLERS)),
            given_back,
            leaf,
        )
