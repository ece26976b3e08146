# SPDX-License-Identifier: GPL-2.0
"""What removes most faults of a program: at most three remedies, as commands or settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.quantities import format_share
from firsttouch.trace.allocators import GLIBC, allocator
from firsttouch.trace.remedies import BOTH, FOLIOS, HEAP, KEEP, MTHP_64, SHARED, THP, table_bytes
from firsttouch.trace.sites import Remedy, Trace

_MOST = 3
# Of all faults: less is not worth a change.
LEAST = 0.02
# Of the memory that the program touches: huge pages may bring as much in vain.
_TOO_MUCH = 0.25
_THP = "/sys/kernel/mm/transparent_hugepage"


@dataclass(frozen=True)
class Advice:
    remedy: Remedy
    what: str
    how: str
    environment: Mapping[str, str] = field(default_factory=dict)


def advise(trace: Trace) -> list[Advice]:
    """Return the remedies that are worth it: variables first, then by the time that they save.

    Where that is not known, the faults decide.
    """
    advices = [advice for advice in _candidates(trace) if _worth(trace, advice.remedy)]
    advices.sort(key=lambda a: (not a.environment, -(a.remedy.ns or 0), -a.remedy.likely))
    return advices[:_MOST]


def _worth(trace: Trace, remedy: Remedy) -> bool:
    saves = remedy.ns is None or remedy.ns > 0
    return remedy.likely > 0 and remedy.likely >= LEAST * trace.faults and saves


def _candidates(trace: Trace) -> Iterator[Advice]:
    found = {remedy.name: remedy for remedy in trace.remedies}
    keep, heap, both, shared, small, huge = (
        found.get(name, Remedy(name, 0, 0)) for name in (KEEP, HEAP, BOTH, SHARED, MTHP_64, THP)
    )
    used = allocator(trace.allocator)
    if used:
        how = assignments(used.environment) or used.advice
        yield Advice(keep, f"{KEEP} ({used.name})", how, used.environment)
    else:
        how = "a setting of the program's allocator, or another one: musl's keeps nothing"
        yield Advice(keep, KEEP, how)
    asked = heap if used is GLIBC else huge
    if used and used.huge and _fits(trace, asked):
        what = f"{asked.name} ({used.name}{used.huge_since})"
        yield Advice(asked, what, _with_policy(trace, used.huge), used.huge)
    if used is GLIBC:
        # Then malloc(3) maps nothing: what is by chance otherwise is nearly sure.
        variables = {n: f"{keeps}:{GLIBC.huge[n]}" for n, keeps in GLIBC.environment.items()}
        times = [remedy.ns for remedy in (keep, heap) if remedy.ns is not None]
        ns = max(times) if len(times) == 2 else None
        both = replace(both, memory=keep.memory + heap.memory, ns=ns)
        worth = LEAST * trace.faults < min(keep.likely, heap.likely)
        if worth and both.likely > 1.1 * max(keep.likely, heap.likely):
            yield Advice(both, f"{BOTH} (glibc)", _with_policy(trace, variables), variables)
    # Where most of each huge page is touched. What is below /dev/shm has a mount's option.
    policy = f"{_THP}/shmem_enabled"
    if shared.memory < shared.saved * trace.page_size and _applies(trace, policy):
        yield Advice(shared, SHARED, f"echo always >{policy}")
    # 64 KiB saved processor time in seven programs of seven, 2 MiB in three of them.
    for folios in (small, huge):
        size = FOLIOS[folios.name]
        whole = size == table_bytes(trace.page_size)
        file = f"{_THP}/{'' if whole else f'hugepages-{size // 1024}kB/'}enabled"
        by_variable = used is not None and used.huge and folios is asked
        worth = not by_variable and _worth(trace, folios) and _fits(trace, folios)
        if worth and _applies(trace, file):
            yield Advice(folios, folios.name, f"echo always >{file}")
            return


def _fits(trace: Trace, remedy: Remedy) -> bool:
    return remedy.memory <= _TOO_MUCH * trace.anonymous * trace.page_size


def _with_policy(trace: Trace, environment: Mapping[str, str]) -> str:
    """Return variables that ask for huge pages, and what they need."""
    file = Path(f"{_THP}/enabled")
    given = _here(trace) and file.is_file() and "[never]" not in file.read_text()
    return assignments(environment) + ("" if given else f" (needs madvise in {file})")


def _here(trace: Trace) -> bool:
    return trace.kernel == os.uname().release


def _applies(trace: Trace, file: str) -> bool:
    """Tell whether a setting can be written on this host; root can where a user cannot."""
    # Nobody can where /sys is read-only, as in a container.
    return not _here(trace) or os.access(file, os.F_OK if os.geteuid() else os.W_OK)


def facts_of(trace: Trace, number: int, advice: Advice) -> tuple[str, str, str, str]:
    """Return the faults and the time that a remedy saves, its memory, and how it is tried."""
    remedy, size = advice.remedy, advice.remedy.memory
    faults = f"-{format_share(remedy.saved, trace.faults)}"
    if remedy.most > remedy.saved:
        # Rounded, where chance decides.
        low, most = 10 * (10 * remedy.saved // trace.faults), -(-10 * remedy.most // trace.faults)
        faults = f"-{low} to {10 * most} %" if low else f"up to -{10 * most} %"
    memory = f"{size / 2**20:,.1f} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
    return (
        faults,
        f"-{remedy.ns / 1e6:,.1f} ms" if remedy.ns else "",
        f"+{memory}" if size else "",
        # A process that ran before cannot be run again.
        f"--try {number}" if advice.environment and trace.command else "",
    )


def assignments(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())


# Variables that hold a list of settings, and what stands between these.
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ",", "JAVA_TOOL_OPTIONS": " ", "GODEBUG": ","}


def remedy_to_try(trace: Trace, number: int) -> Advice:
    """Return a remedy by its number; UserError if no variable applies it."""
    advices = dict(enumerate(advise(trace), 1))
    can = [str(n) for n, advice in advices.items() if advice.environment]
    if str(number) in can:
        return advices[number]
    raise UserError(
        f"--try {number}: the environment applies {' and '.join(can) or 'none'} of this program's "
        "remedies; to compare another, trace with it into another --out: `firsttouch compare`."
    )


def with_remedy(environment: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the command, behind what `before` has in such a list."""
    return {
        name: f"{before[name]}{_LISTS[name]}{value}" if name in _LISTS and name in before else value
        for name, value in environment.items()
    }


def predicted_and_measured(before: Trace, advice: Advice, after: Trace) -> str:
    """Return what a remedy did to faults and to processor time, beside what was predicted."""
    remedy = advice.remedy
    most, least = before.faults - remedy.saved, before.faults - max(remedy.saved, remedy.most)
    predicted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    near = max(min(max(after.faults, least), most), 1)
    said = (
        f"\nTried {assignments(advice.environment)}: {before.faults:,} page faults without it, "
        f"{predicted} predicted, {after.faults:,} measured "
        f"({100 * (after.faults - near) / near:+.1f} % from the prediction)."
    )
    if before.system is None or after.system is None:
        return said
    time = f"-{remedy.ns / 1e6:,.1f} ms predicted, " if remedy.ns else ""
    change = 1000 * (after.system - before.system)
    return f"{said} System time: {time}{change:+,.1f} ms measured, in one run each."
