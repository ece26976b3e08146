# SPDX-License-Identifier: GPL-2.0
"""What removes most faults of a program: at most three remedies, as commands or settings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.quantities import format_number_of, format_share
from firsttouch.trace.allocators import GLIBC, allocator
from firsttouch.trace.kinds import AGAIN, NAMES
from firsttouch.trace.remedies import (
    FOLIOS,
    HEAP,
    KEEP,
    MTHP_64,
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
# Linux has sizes of anonymous memory between a page and a huge page from this release on.
_MTHP_SINCE = (6, 8)
_THP = "/sys/kernel/mm/transparent_hugepage"
# Both variables of the allocator at once.
BOTH = "keep, and a heap of huge pages"


@dataclass(frozen=True)
class Advice:
    """A remedy: what it is and how to apply it; `environment` applies it to the command."""

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
    remedies = {remedy.name: remedy for remedy in trace.remedies}
    used = allocator(trace.allocator)
    keep, heap = remedies.get(KEEP), remedies.get(HEAP)
    if keep:
        how = "a setting of the program's allocator, or another one: musl's keeps nothing"
        if used:
            how = assignments(used.environment) or used.advice
        what = f"{keep.name} ({used.name})" if used else keep.name
        yield Advice(keep, what, how, used.environment if used else {})
    variable = by_variable(trace)
    if used and used.huge and (asked := remedies.get(variable)) and _fits(trace, asked):
        since = f" {used.huge_since}+" if used.huge_since else ""
        what = f"{asked.name} ({used.name}{since})"
        yield Advice(asked, what, _with_policy(trace, used.huge), used.huge)
    if used is GLIBC and keep and heap and min(keep.likely, heap.likely) > LEAST * trace.faults:
        # Then malloc(3) maps nothing: what is by chance otherwise is sure.
        saved, ns = max(heap.most, heap.saved), None
        if heap.ns is not None and keep.ns is not None:
            ns = max(heap.ns, keep.ns)
        both = {name: f"{keeps}:{GLIBC.huge[name]}" for name, keeps in GLIBC.environment.items()}
        remedy = Remedy(BOTH, saved, keep.memory + heap.memory, ns)
        if saved > 1.1 * max(keep.saved, heap.likely):
            yield Advice(remedy, f"{BOTH} (glibc)", _with_policy(trace, both), both)
    if huge := _huge(trace, remedies, variable):
        whole = FOLIOS[huge.name] == table_bytes(trace.page_size)
        size = "" if whole else f"hugepages-{FOLIOS[huge.name] // 1024}kB/"
        yield Advice(huge, huge.name, f"echo always >{_THP}/{size}enabled")


def _huge(trace: Trace, remedies: Mapping[str, Remedy], variable: str) -> Remedy | None:
    """Return the size of folios to set on the host.

    64 KiB saved processor time in seven programs of seven, 2 MiB in three of them.
    """
    release = tuple(int(number) for number in re.findall(r"\d+", trace.kernel)[:2])
    for name in (MTHP_64, THP):
        remedy, whole = remedies.get(name), FOLIOS[name] == table_bytes(trace.page_size)
        if not remedy or name == variable or not (whole or release >= _MTHP_SINCE):
            continue
        file = f"{_THP}/{'' if whole else f'hugepages-{FOLIOS[name] // 1024}kB/'}enabled"
        if _worth(trace, remedy) and _fits(trace, remedy) and _applies(trace, file):
            return remedy
    return None


def _fits(trace: Trace, remedy: Remedy) -> bool:
    return remedy.memory <= _TOO_MUCH * trace.anonymous * trace.page_size


def _with_policy(trace: Trace, environment: Mapping[str, str]) -> str:
    """Return variables that ask for huge pages, and the host's policy unless it is right."""
    file = Path(f"{_THP}/enabled")
    try:
        allowed = trace.kernel == os.uname().release and "[never]" not in file.read_text()
    except OSError:
        allowed = False
    return assignments(environment) + ("" if allowed else f" (needs madvise in {file})")


def _applies(trace: Trace, file: str) -> bool:
    """Tell whether a setting can be written on this host; root can where a user cannot."""
    if trace.kernel != os.uname().release:
        return True
    try:
        os.close(os.open(file, os.O_WRONLY))
    except PermissionError:
        # Locked down, if it is root.
        return os.geteuid() != 0
    except OSError:
        return False
    return True


def by_variable(trace: Trace) -> str:
    """Return the remedy that a variable of the program's allocator asks for; "" for none."""
    used = allocator(trace.allocator)
    if used is None or not used.huge:
        return ""
    whole = FOLIOS[THP] == table_bytes(trace.page_size)
    return HEAP if used.heap else THP if whole else ""


def saved_share(remedy: Remedy, faults: int) -> str:
    """Return the share of the faults that a remedy saves: rounded, where chance decides."""
    if remedy.most <= remedy.saved:
        return format_share(remedy.saved, faults)
    low, high = 10 * (10 * remedy.saved // faults), 10 * -(-10 * remedy.most // faults)
    return f"{low} to {high} %"


def saved_time(remedy: Remedy) -> str:
    """Return the time that a remedy saves; "" if there is no basis for it."""
    return "" if remedy.ns is None else f"{remedy.ns / 1e6:,.1f} ms"


def memory_of(remedy: Remedy) -> str:
    """Return the memory that a remedy takes at most; "" for none."""
    size = remedy.memory
    return f"{size / 2**20:,.1f} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size else ""


def tried_by(trace: Trace, number: int, advice: Advice) -> str:
    """Return how a remedy is tried; a process that ran before cannot be run again."""
    return f"--try {number}" if advice.environment and trace.command else ""


def notes(trace: Trace) -> Iterator[str]:
    """Yield why no remedy removes many faults: on memory that is kept or large for nobody."""
    used = allocator(trace.allocator)
    saved = sum(max(remedy.saved, 0) for remedy in trace.remedies if remedy.name == KEEP)
    others = trace.fault_kinds.get(NAMES[AGAIN], 0) - saved
    if used and used.heap and others >= _MANY * trace.faults and others:
        yield (
            f"{format_number_of(others, 'faults')} ({format_share(others, trace.faults)}) were on "
            f"memory that the program maps itself, gives back and maps again: no setting of "
            f"{used.name} keeps that."
        )


def assignments(environment: Mapping[str, str]) -> str:
    """Return variables as a shell takes them before a command."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())


# Variables that hold a list of settings, and what stands between these.
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ",", "JAVA_TOOL_OPTIONS": " ", "GODEBUG": ","}


def remedy_to_try(trace: Trace, number: int) -> Advice:
    """Return a remedy by its number; UserError if no variable applies it."""
    advices = dict(enumerate(advise(trace), 1))
    can = [str(n) for n, advice in advices.items() if advice.environment]
    if str(number) in can:
        return advices[number]
    if can:
        raise UserError(
            f"--try {number}: the environment applies only {', '.join(can)} of this program's "
            f"remedies: --try {can[0]}."
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
    """Return what a remedy did to faults and to processor time, beside what was predicted."""
    remedy = advice.remedy
    most, least = before.faults - remedy.saved, before.faults - max(remedy.saved, remedy.most)
    predicted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    near = min(max(after.faults, least), most)
    off = 100 * (after.faults - near) / near if near else 0.0
    said = (
        f"\nTried {assignments(advice.environment)}: {before.faults:,} page faults without it, "
        f"{predicted} predicted, {after.faults:,} measured ({off:+.1f} % of the prediction)."
    )
    if before.system is None or after.system is None:
        return said
    change = 1000 * (after.system - before.system)
    time = saved_time(remedy)
    return (
        f"{said} System time: {f'-{time} predicted, ' if time else ''}{change:+,.1f} ms "
        "measured, in one run each."
    )
