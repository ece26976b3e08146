# SPDX-License-Identifier: GPL-2.0
"""What a trace says of all its faults: what they are, whose, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from firsttouch.finder.fault_places import ProcessFaults, ThreadFaults
from firsttouch.finder.kinds import AGAIN, FAULT_KINDS, NAMES
from firsttouch.finder.locations import shortened
from firsttouch.finder.sites import Trace
from firsttouch.quantities import format_number_of, format_share

# Kinds and programs that a sentence names: the largest, and those above a share.
_NAMED = 4
_LEAST = 0.01


def shares(trace: Trace) -> list[tuple[str, int]]:
    """Return the kinds and their faults, the largest first."""
    return sorted(trace.fault_kinds.items(), key=lambda entry: -entry[1])


def kind_sentences(trace: Trace, command: str) -> Iterator[str]:
    """Yield the sentences, the kinds first; none of these for a trace of an older firsttouch."""
    if not trace.fault_kinds:
        return
    words = {kind.name: kind.words for kind in FAULT_KINDS}
    named = [
        f"{format_share(count, trace.faults)} {words[name]} ({count:,})"
        for name, count in shares(trace)[:_NAMED]
        if count >= _LEAST * trace.faults
    ]
    yield f"{command}: {format_number_of(trace.faults, 'page faults')}: {', '.join(named)}."
    if trace.fault_places:
        top = trace.fault_places[0]
        callers = f", called by {top.called_by}" if top.callers else ""
        share = format_share(top.faults, trace.faults)
        yield (
            f"The first place, with {top.faults:,} ({share}, {top.kind}), is {top.place}{callers}."
        )
    yield from _given_back(trace)
    if len(trace.programs) > 1:
        yield _by("program", [(p.name, p.faults, p.processes) for p in trace.programs], "processes")
    if threads := named_threads(trace):
        yield _by("thread", [(t.name, t.faults, t.threads) for t in threads], "threads")


def _given_back(trace: Trace) -> Iterator[str]:
    """Yield who gave back most of the pages that came again, if that was recorded."""
    gave = Counter[tuple[str, tuple[str, ...]]]()
    for place in trace.fault_places:
        for giver in place.givers:
            gave[giver.call, giver.functions] += giver.faults
    again = trace.fault_kinds.get(NAMES[AGAIN], 0)
    if not gave or again < _LEAST * trace.faults:
        return
    (((call, functions), faults),) = gave.most_common(1)
    # The C library's function has the system call's name, and perhaps underscores before it.
    callers = [shortened(name) for name in functions if name.strip("_") != call]
    called = f", called by {', '.join(callers)}" if callers else ""
    yield (
        f"Of what came again {format_share(faults, again)} ({faults:,}) was given back by "
        f"{call}(2){called}."
    )


def named_threads(trace: Trace) -> tuple[ThreadFaults, ...]:
    """Return the threads' names, unless they say no more than those of the programs."""
    names = {program.name for program in trace.programs}
    return trace.threads if any(thread.name not in names for thread in trace.threads) else ()


def several_processes(trace: Trace) -> tuple[ProcessFaults, ...]:
    """Return the processes, unless they say no more than the programs: one for each."""
    return trace.processes if any(program.processes > 1 for program in trace.programs) else ()


def _by(what: str, entries: Sequence[tuple[str, int, int]], members: str) -> str:
    """Return whose the faults are: name, faults, and how many processes or threads."""
    items = ", ".join(
        f"{name} {faults:,}" + (f" in {number:,} {members}" if number > 1 else "")
        for name, faults, number in entries[:_NAMED]
    )
    more = len(entries) - _NAMED
    return f"By {what}: {items}{f', and {more:,} more' if more > 0 else ''}."
