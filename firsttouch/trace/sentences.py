# SPDX-License-Identifier: GPL-2.0
"""What a trace says, in sentences: how many doubles, where, what removes them, at what price."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from signal import strsignal

from firsttouch.quantities import format_number_of, format_share
from firsttouch.trace.advice import advice_sentences
from firsttouch.trace.kinds import AGAIN, FAULT_KINDS, NAMES
from firsttouch.trace.sites import (
    HUGE,
    POPULATE,
    RMW,
    Members,
    Price,
    Site,
    Trace,
    kinds_of,
    shortened,
)
from firsttouch.trace.spaces import ANONYMOUS
from firsttouch.trace.totals import APART, ATOMIC, EXCLUSIVE, LOAD_STORE

# Kinds and programs that a sentence names: the largest, and those above a share.
_NAMED = 4
_LEAST = 0.01


def shares(trace: Trace) -> list[tuple[str, int]]:
    """Return the kinds and their faults, the largest first."""
    return sorted(trace.fault_kinds.items(), key=lambda entry: -entry[1])


def estimated(trace: Trace) -> tuple[float, float, float]:
    """Return the ns that the faults with a price took, by the quartiles of the survey."""
    low, middle, high = (
        sum(cost.faults * max(cost.each + side * cost.spread / 2, 0) for cost in trace.costs)
        for side in (-1, 0, 1)
    )
    return low, middle, high


def headline(trace: Trace) -> str:
    """Return the faults, the time that they took, and its share of the run, in one line."""
    time = ""
    if trace.costs:
        ns = estimated(trace)[1]
        share = f" of {trace.seconds:.2f} s ({format_share(ns / 1e9, trace.seconds)})"
        time = f", about {ns / 1e6:,.1f} ms{share if trace.seconds else ''}"
    return f"{format_number_of(trace.faults, 'page faults')}{time}: {command_line(trace)}"


def kinds_line(trace: Trace) -> str:
    """Return the shares of the kinds of faults, in one line."""
    named = [(name, n) for name, n in shares(trace)[:_NAMED] if n >= _LEAST * trace.faults]
    words = [f"{format_share(n, trace.faults)} {name}" for name, n in named]
    left = trace.faults - sum(n for _, n in named)
    return ", ".join([*words, f"{format_share(left, trace.faults)} other"] if left else words)


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
        yield _by("program", [(p.name, p.faults, p.members) for p in trace.programs], "processes")
    if threads := named_threads(trace):
        yield _by("thread", [(t.name, t.faults, t.members) for t in threads], "threads")


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


def named_threads(trace: Trace) -> tuple[Members, ...]:
    """Return the threads' names, unless they say no more than those of the programs."""
    names = {program.name for program in trace.programs}
    return trace.threads if any(thread.name not in names for thread in trace.threads) else ()


def several_processes(trace: Trace) -> tuple[Members, ...]:
    """Return the processes, unless they say no more than the programs: one for each."""
    return trace.processes if any(program.members > 1 for program in trace.programs) else ()


def _by(what: str, entries: Sequence[tuple[str, int, int]], members: str) -> str:
    """Return whose the faults are: name, faults, and how many processes or threads."""
    items = ", ".join(
        f"{name} {faults:,}" + (f" in {number:,} {members}" if number > 1 else "")
        for name, faults, number in entries[:_NAMED]
    )
    more = len(entries) - _NAMED
    return f"By {what}: {items}{f', and {more:,} more' if more > 0 else ''}."


def cost_sentences(trace: Trace) -> Iterator[str]:
    """Yield the sentences: the estimate, what has no price, and the system time above it."""
    if trace.unpriced:
        yield f"{trace.unpriced}. `firsttouch survey` on the host of the trace measures one."
    if trace.costs:
        priced = sum(cost.faults for cost in trace.costs)
        low, middle, high = estimated(trace)
        share = f", {format_share(middle / 1e9, trace.seconds)} of {trace.seconds:.2f} s"
        each = ", ".join(f"{cost.kind} {cost.each:,.0f} ns" for cost in trace.costs)
        yield (
            f"{format_number_of(priced, 'faults')} took about {middle / 1e6:,.1f} ms "
            f"({low / 1e6:,.1f} to {high / 1e6:,.1f}{share if trace.seconds else ''}), by the "
            f"quartiles of the survey in {trace.basis}: {each}."
        )
        others = {cost.kind for cost in trace.costs}
        left = {kind: n for kind, n in trace.fault_kinds.items() if n and kind not in others}
        if left:
            kinds = ", ".join(sorted(left, key=lambda kind: -left[kind]))
            yield f"{format_number_of(sum(left.values()), 'faults')} have no price: {kinds}."
    if trace.system is not None:
        yield (
            f"All faults and system calls together took {trace.system * 1000:,.0f} ms of system "
            "time, with what tracing adds: the faults took no longer."
        )


_KINDS = {
    ATOMIC: "an atomic instruction that reads and writes",
    EXCLUSIVE: "a load-exclusive",
    LOAD_STORE: "a load, and soon a store to the same address",
    APART: "a load, and a store elsewhere in the code",
}
_LONGEST_COMMAND = 60
# What writes perf's map of compiled code, by the beginning of the program's name.
_JITS = {
    "node": "`node --perf-basic-prof`",
    "java": "`java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit`",
    "mono": "`mono --jitmap`",
    "dotnet": "`DOTNET_PerfMapEnabled=1`",
}
_JIT = "an option of its runtime for perf's maps (/tmp/perf-PID.map)"
# Of all faults: so small a share of doubles needs no more than a sentence.
_FEW = 0.05


def conclude(trace: Trace) -> list[str]:
    """Return the sentences, the answer first."""
    doubles = [] if few_doubles(trace) else [*_where(trace), *_remedies(trace), *_prices(trace)]
    return [
        *kind_sentences(trace, command_line(trace)),
        *cost_sentences(trace),
        *advice_sentences(trace),
        *_answer(trace),
        *doubles,
        *_limits(trace),
    ]


def few_doubles(trace: Trace) -> bool:
    """Tell whether other faults are so many that the places of doubles are for the page alone."""
    return trace.fault_kinds != {} and trace.doubles < _FEW * trace.faults


def command_line(trace: Trace) -> str:
    """Return the traced command as a shell would read it, on one line and shortened."""
    line = " ".join(shlex.join(trace.command).split()) or "the process"
    return line if len(line) <= _LONGEST_COMMAND else f"{line[: _LONGEST_COMMAND - 3]}..."


def _answer(trace: Trace) -> Iterator[str]:
    faults = "Of these faults"
    if not trace.fault_kinds:
        faults = f"{command_line(trace)}: of {format_number_of(trace.faults, 'page faults')}"
    if not trace.doubles:
        recorded = " that were recorded" if trace.lower_bound else ""
        yield f"{faults}{recorded}, none is double."
        return
    least = "at least " if trace.lower_bound else ""
    share = format_share(trace.doubles, trace.faults)
    few = few_doubles(trace)
    where = ": trace.html has the places, which gain little" if few else ""
    yield (
        f"{faults}, {least}{trace.doubles:,} ({share}) are second faults, on a page that was read "
        f"first and then written{where}."
    )
    if few:
        return
    files = trace.doubles - trace.of_memory(ANONYMOUS)
    kinds = ", ".join(f"{count:,} by {_KINDS[kind]}" for kind, count in kinds_of(trace).items())
    in_files = f"; {files:,} of them in memory of files" if files else ""
    yield f"The first access was: {kinds}{in_files}."


def _where(trace: Trace) -> Iterator[str]:
    if trace.sites:
        top = trace.sites[0]
        share = format_share(top.doubles, trace.doubles)
        yield f"The first of these places, with {top.doubles:,} ({share}), is {between(top)}."


def between(site: Site) -> str:
    """Return where a page is read, and where it is then written."""
    read, write = site.read, site.write
    same = read.function != "" and (read.function, read.file) == (write.function, write.file)
    if read == write or (same and read.line == write.line):
        return str(read)
    if same:
        return f"{read.function} ({PurePath(read.file).name}:{read.line}, written in {write.line})"
    return f"{read}, written by {write}"


def _remedies(trace: Trace) -> Iterator[str]:
    if not trace.doubles:
        return
    parts = []
    if count := trace.removable(RMW):
        parts.append(f"{count:,} by a kernel that upgrades atomics (vm.write_intent=1)")
    if count := trace.removable(POPULATE):
        parts.append(f"{count:,} by MADV_POPULATE_WRITE, since their surroundings are filled")
    if count := trace.removable(HUGE):
        parts.append(f"{count:,} by huge pages")
    if count := trace.of_memory(ANONYMOUS):
        parts.append(f"{count:,} by a change of the source that writes a page before it reads it")
    if parts:
        yield f"What would remove them: {'; '.join(parts)}."
    else:
        yield "All are in memory of files, which the program's start relocates: nothing to do."


def _prices(trace: Trace) -> Iterator[str]:
    for price in trace.prices:
        yield f"The second faults cost {cost(trace, price)}."


def cost(trace: Trace, price: Price) -> str:
    """Return what all second faults cost."""
    whole = trace.doubles * price.each
    if price.unit == "ns":
        amount = f"{whole / 1e6:,.2f} ms of processor time"
        if trace.seconds:
            amount += f" ({format_share(whole / 1e9, trace.seconds)} of {trace.seconds:.2f} s)"
        return f"{amount}: {price.each:,.0f} ns each, {price.source}"
    return f"{whole:,.0f} {price.unit}: {price.each:,.0f} each, {price.source}"


def doubts(trace: Trace) -> Iterator[str]:
    """Say why a trace is not that of the whole program."""
    if trace.status:
        yield f"The command {_end(trace.status)}."
    if not trace.complete:
        yield (
            "The recorder was killed, or its disk was full: what it had written until then is "
            "shown."
        )
    if trace.lost:
        share = f"{100 * trace.lost / (trace.faults + trace.lost):.2f} %"
        bound = ", so the number of doubles is a lower bound" if trace.lower_bound else ""
        yield (
            f"{trace.lost:,} faults ({share}) were lost, because perf's buffer was full{bound}: "
            "trace without call chains or as root."
        )
    if trace.detached:
        yield (
            f"{', '.join(trace.detached)}: the kernel ends tracing where a program gets other "
            "rights or may not be read, so its faults and those of its children are missing. "
            "Trace as root."
        )


def _limits(trace: Trace) -> Iterator[str]:
    """Say what the trace cannot know."""
    yield from doubts(trace)
    if trace.in_kernel:
        yield f"{format_number_of(trace.in_kernel, 'faults')} were taken in the kernel."
        if trace.unseen and trace.unseen > trace.faults / 100:
            yield (
                f"{format_number_of(trace.unseen, 'more faults')} are in no event of perf: "
                "execve(2) makes such when it copies the words of a command, direct input and "
                "output does, and a CPU that comes online meanwhile."
            )
    elif trace.unseen:
        yield (
            f"{format_number_of(trace.unseen, 'more faults')} were taken in the kernel, where "
            "only root may see them."
        )
    if trace.undecoded:
        yield (
            f"The code of {format_number_of(trace.undecoded, 'faults')} could not be read, or "
            "not decoded, as that of 32-bit Arm programs: the order of the faults decided what "
            "they were."
        )
    if trace.nameless > _LEAST * trace.faults:
        runtime = trace.programs[0].name if trace.programs else ""
        tool = next((tool for name, tool in _JITS.items() if runtime.startswith(name)), _JIT)
        yield (
            f"{format_number_of(trace.nameless, 'faults')} "
            f"({format_share(trace.nameless, trace.faults)}) are in code that was made while the "
            f"program ran, and has no names: {tool} writes them."
        )
    if trace.unnamed:
        yield f"Names are missing: {'; '.join(trace.unnamed)}."
    if trace.doubles and not trace.exact:
        yield (
            "Some may be none: a page that was given back between the read and the write looks "
            "like a double to this kernel's events or to an old recorder. Trace on Linux 5.11 or "
            "later."
        )


def _end(status: int) -> str:
    """Return how a command ended that failed, from its status of waitpid(2)."""
    code = os.waitstatus_to_exitcode(status)
    return (
        f"ended with status {code}"
        if code > 0
        else f"was ended by signal {-code} ({strsignal(-code)})"
    )
