# SPDX-License-Identifier: GPL-2.0
"""What a trace says of all its faults: what they are, whose, and where."""

from __future__ import annotations

from collections.abc import Iterator

from firsttouch.finder.kinds import FAULT_KINDS
from firsttouch.finder.sites import Trace
from firsttouch.quantities import format_number_of, format_share

# Kinds and programs that a sentence names: the largest, and those above a share.
_NAMED = 4
_LEAST = 0.01


def shares(trace: Trace) -> list[tuple[str, int]]:
    """Return the kinds and their faults, the largest first."""
    return sorted(trace.fault_kinds.items(), key=lambda entry: -entry[1])


def kind_sentences(trace: Trace, command: str) -> Iterator[str]:
    """Yield the sentences, the kinds first; none for a trace of an older firsttouch."""
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
        callers = f", called by {', '.join(top.callers)}" if top.callers else ""
        share = format_share(top.faults, trace.faults)
        yield (
            f"The first place, with {top.faults:,} ({share}, {top.kind}), is {top.place}{callers}."
        )
    if len(trace.programs) > 1:
        programs = ", ".join(
            f"{program.name} {program.faults:,}"
            + (f" in {program.processes:,} processes" if program.processes > 1 else "")
            for program in trace.programs[:_NAMED]
        )
        more = len(trace.programs) - _NAMED
        yield f"By program: {programs}{f', and {more:,} more' if more > 0 else ''}."
