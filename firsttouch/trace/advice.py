# SPDX-License-Identifier: GPL-2.0
"""What removes most faults of a program: at most three remedies, as commands or settings."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from firsttouch.errors import UserError
from firsttouch.quantities import format_number_of, format_share
from firsttouch.trace.allocators import GLIBC, allocator
from firsttouch.trace.kinds import AGAIN, FIRST_WRITE, IN_KERNEL, NAMES, ZERO_PAGE
from firsttouch.trace.remedies import (
    AROUND,
    FILLED,
    FOLIOS,
    HEAP,
    KEEP,
    KEEP_MALLOC,
    SPAWN,
    THP,
    table_bytes,
)
from firsttouch.trace.sites import Remedy, Trace

_MOST = 3
# Of all faults: less is not worth a change.
LEAST = 0.02
# So many that one wants to know why no remedy removes them.
_MANY = 0.1
# Of the memory that the program touches: huge pages may bring as much in vain.
_TOO_MUCH = 0.25
# The kernel's own are those of a call such as read(2).
_FIRST_TOUCHES = NAMES[FIRST_WRITE], NAMES[ZERO_PAGE], NAMES[IN_KERNEL]
# Linux has sizes of anonymous memory between a page and a huge page from this release on.
_MTHP_SINCE = (6, 8)
_THP = "/sys/kernel/mm/transparent_hugepage"
# Of what is done to files and by forks.
_STARTS = {
    SPAWN: "posix_spawn(3) or vfork(2) in place of fork(2), for each child executes a program",
    AROUND: "2097152 in /sys/kernel/debug/fault_around_bytes, as root",
}


@dataclass(frozen=True)
class Advice:
    """A remedy: what to do, and with which `environment` the command has it at once."""

    remedy: Remedy
    action: str
    environment: Mapping[str, str] = field(default_factory=dict)


def advise(trace: Trace) -> list[Advice]:
    """Return the remedies that are worth it, the one that saves most first."""
    worth = {r.name: r for r in trace.remedies if r.saved and r.saved >= _least(r) * trace.faults}
    touched = trace.anonymous * trace.page_size
    used = allocator(trace.allocator)
    whole = _whole(trace)
    some = _release(trace.kernel) >= _MTHP_SINCE
    sizes = [HEAP] if used and used.heap else []
    # The largest first: it is named where others save as much.
    sizes += [name for name in reversed(FOLIOS) if some or name == whole]
    huge = [
        remedy
        for name in sizes
        if (remedy := worth.get(name)) and remedy.memory <= _TOO_MUCH * touched
    ]
    # Who writes a program for a runtime does not map its memory.
    filled = () if used and used.beside else (FILLED,)
    others = (KEEP, KEEP_MALLOC, *filled, SPAWN, AROUND)
    named = [remedy for name in others if (remedy := worth.get(name))]
    named += [max(huge, key=lambda remedy: remedy.saved)] if huge else []
    # A variable asks nobody for a setting of the host.
    variable = by_variable(trace)
    named += [remedy for remedy in huge if remedy.name == variable and remedy not in named]
    named.sort(key=lambda remedy: -remedy.saved)
    return [_advice(trace, remedy) for remedy in named[:_MOST]]


def _least(remedy: Remedy) -> float:
    """Return the share of all faults that makes a remedy worth it: more for what is more to do."""
    return _MANY if remedy.name == AROUND else LEAST


def advice_sentences(trace: Trace) -> Iterator[str]:
    """Yield a sentence for each remedy; those that `--try` can apply have numbers of their own.

    A process that ran before its trace began cannot be run again.
    """
    tries = itertools.count(1)
    for number, advice in enumerate(advise(trace), 1):
        remedy = advice.remedy
        share = format_share(remedy.saved, trace.faults)
        tried = f" (`--try {next(tries)}`)" if advice.environment and trace.command else ""
        yield (
            f"Remedy {number} saves {format_number_of(remedy.saved, 'faults')} ({share})"
            f"{_time(remedy)} and costs {_memory(remedy.memory)}: {advice.action}{tried}."
        )
    yield from _kept_by_none(trace)
    yield from _never_huge(trace)


def _kept_by_none(trace: Trace) -> Iterator[str]:
    """Yield whose memory is given back that the allocator's setting does not keep."""
    used = allocator(trace.allocator)
    saved = sum(max(remedy.saved, 0) for remedy in trace.remedies if remedy.name == KEEP)
    others = trace.fault_kinds.get(NAMES[AGAIN], 0) - saved
    if used and used.heap and others >= _MANY * trace.faults and others:
        yield (
            f"{format_number_of(others, 'faults')} ({format_share(others, trace.faults)}) were on "
            f"memory that the program maps itself, gives back and maps again: no setting of "
            f"{used.name} keeps that."
        )


def _never_huge(trace: Trace) -> Iterator[str]:
    """Yield what huge pages cannot save, since the program forbids them."""
    if trace.no_huge >= _MANY * trace.faults and trace.no_huge:
        yield (
            f"{format_number_of(trace.no_huge, 'faults')} "
            f"({format_share(trace.no_huge, trace.faults)}) were first touches by processes that "
            "forbid huge pages for themselves, by prctl(PR_SET_THP_DISABLE): no setting of the "
            "host gives them any."
        )


def _time(remedy: Remedy) -> str:
    """Return the time that a remedy saves, for a sentence; "" if there is no basis for it."""
    if remedy.ns is None:
        return ""
    return f", about {remedy.ns / 1e6:,.1f} ms," if remedy.ns > 0 else ", no time by the survey,"


def _memory(size: int) -> str:
    if not size:
        return "no memory"
    amount = f"{size / 2**20:,.1f} MiB" if size >= 1 << 20 else f"{size // 1024} KiB"
    return f"at most {amount} of memory"


def assignments(environment: Mapping[str, str]) -> str:
    """Return variables as a shell takes them before a command."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())


def _advice(trace: Trace, remedy: Remedy) -> Advice:
    if remedy.name in (KEEP, KEEP_MALLOC):
        return _keep(trace, remedy)
    if remedy.name in _STARTS:
        return Advice(remedy, _STARTS[remedy.name])
    if remedy.name == HEAP or remedy.name in FOLIOS:
        return _huge(trace, remedy)
    assert remedy.name == FILLED
    places = (p.place for p in trace.fault_places if p.kind in _FIRST_TOUCHES)
    where = next((f"; the place with most first touches is {place}" for place in places), "")
    return Advice(
        remedy,
        "MADV_POPULATE_WRITE or MAP_POPULATE where memory is mapped that the program fills "
        f"anyway{where}",
    )


def _whole(trace: Trace) -> str:
    """Return the name of the huge pages of a whole page table; "" if they are of another size."""
    return THP if FOLIOS[THP] == table_bytes(trace.page_size) else ""


def _release(kernel: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", kernel)[:2])


def by_variable(trace: Trace) -> str:
    """Return the remedy that a variable of the program's allocator asks for; "" for none."""
    used = allocator(trace.allocator)
    if used is None or not used.huge:
        return ""
    return HEAP if used.heap else _whole(trace)


def _huge(trace: Trace, remedy: Remedy) -> Advice:
    used = allocator(trace.allocator)
    if used and remedy.name == by_variable(trace):
        since = f" from {used.huge_since} on" if used.huge_since else ""
        by = f"by {assignments(used.huge)} before the command, where {_THP}/enabled says madvise"
        return Advice(remedy, f"{remedy.name} ({used.name}{since}), {by}", used.huge)
    file = "enabled"
    # The heap's are those of a page table.
    if remedy.name not in (HEAP, _whole(trace)):
        file = f"hugepages-{FOLIOS[remedy.name] // 1024}kB/enabled"
    return Advice(remedy, f"{remedy.name}, `always` in {_THP}/{file}")


def _keep(trace: Trace, remedy: Remedy) -> Advice:
    used = GLIBC if remedy.name == KEEP_MALLOC else allocator(trace.allocator)
    what = "keep memory that is freed and used again"
    if used is None:
        return Advice(remedy, f"{what}, by a setting of the program's allocator")
    if not used.environment:
        return Advice(remedy, f"{what} ({used.name}): {used.advice}")
    said = assignments(used.environment)
    return Advice(remedy, f"{what} ({used.name}), by {said} before the command", used.environment)


# Variables that hold a list of settings, and what stands between these.
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ",", "JAVA_TOOL_OPTIONS": " ", "GODEBUG": ","}


def remedy_to_try(trace: Trace, number: int) -> Advice:
    """Return remedy `number` of those that a variable applies; UserError if there is none."""
    can = [advice for advice in advise(trace) if advice.environment]
    if number <= len(can):
        return can[number - 1]
    if can:
        raise UserError(
            f"--try {number}: the environment can apply {len(can)} of the remedies: --try 1."
        )
    raise UserError(
        "--try: the environment can apply no remedy of this program: apply another, trace into "
        "another --out, and set both side by side by `firsttouch compare`."
    )


def with_remedy(environment: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the command, behind what `before` has in such a list."""
    return {
        name: f"{before[name]}{_LISTS[name]}{value}"
        if name in _LISTS and before.get(name)
        else value
        for name, value in environment.items()
    }


def predicted_and_measured(before: Trace, advice: Advice, after: Trace) -> str:
    """Return what a remedy did, beside what was predicted."""
    predicted = before.faults - advice.remedy.saved
    off = 100 * (after.faults - predicted) / predicted if predicted else 0.0
    return (
        f"\nTried {assignments(advice.environment)}: {before.faults:,} page faults without it, "
        f"{predicted:,} predicted, {after.faults:,} measured ({off:+.1f} % of the prediction)."
    )
