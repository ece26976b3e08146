# SPDX-License-Identifier: GPL-2.0
"""What a trace says: the first screen, its sentences, and its comparison with another."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from signal import strsignal

from rich.console import Console
from rich.text import Text

from firsttouch.analysis.figures import change_percent
from firsttouch.errors import UserError
from firsttouch.quantities import format_change, format_number_of, format_share
from firsttouch.trace.advice import advise, facts_of
from firsttouch.trace.kinds import NAMES
from firsttouch.trace.sites import FILE_NAME, Site, Trace, read_trace, shortened
from firsttouch.views.comparison import Comparison, Line
from firsttouch.views.terminal import plain

# Kinds that a line names: the largest, and those above a share.
_NAMED = 4
_LEAST = 0.01
_LONGEST_COMMAND = 60
# What writes perf's map of compiled code, by the beginning of the program's name.
_JITS = {
    "node": "`node --perf-basic-prof`",
    "java": "`java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit`",
    "mono": "`mono --jitmap`",
    "dotnet": "`DOTNET_PerfMapEnabled=1`",
}
_JIT = "an option of its runtime for perf's maps (/tmp/perf-PID.map)"
# Of all faults: so small a share of doubles, or near mmap_lock, needs no line.
_FEW = 0.05


def conclude(trace: Trace) -> list[str]:
    """Return the sentences, the answer first."""
    begun = headline(trace), kinds_line(trace)
    return [*begun, *doubled(trace), *contention(trace), *_limits(trace)]


def shares(trace: Trace) -> list[tuple[str, int]]:
    return sorted(trace.fault_kinds.items(), key=lambda entry: -entry[1])


def headline(trace: Trace) -> str:
    time = ""
    if trace.ns:
        share = f" of {trace.seconds:.2f} s ({format_share(trace.ns / 1e9, trace.seconds)})"
        # What the survey has no price for takes time, too.
        about = "about" if trace.faults - trace.priced <= _FEW * trace.faults else "at least"
        time = f", {about} {trace.ns / 1e6:,.1f} ms{share if trace.seconds else ''}"
    return f"{format_number_of(trace.faults, 'page faults')}{time}: {command_line(trace)}"


def kinds_line(trace: Trace) -> str:
    named = [(name, n) for name, n in shares(trace)[:_NAMED] if n >= _LEAST * trace.faults]
    words = [f"{format_share(n, trace.faults)} {name}" for name, n in named]
    left = trace.faults - sum(n for _, n in named)
    return ", ".join([*words, f"{format_share(left, trace.faults)} other"] if left else words)


def doubled(trace: Trace) -> Iterator[str]:
    """Say how many double faults there are; a few of many faults are for the page alone."""
    if trace.doubles and trace.doubles >= _FEW * trace.faults:
        least = "at least " if trace.lower_bound else ""
        share = format_share(trace.doubles, trace.faults)
        yield f"{least}{trace.doubles:,} doubles ({share}), most: {between(trace.sites[0])}"


def contention(trace: Trace) -> Iterator[str]:
    """Say where faults may cost more than the survey's, which has one thread."""
    if trace.contended > _FEW * trace.faults:
        yield (
            f"{format_number_of(trace.contended, 'faults')} "
            f"({format_share(trace.contended, trace.faults)}) are within 0.1 ms of another "
            "thread's munmap, mmap, mprotect, brk or mremap, which hold mmap_lock: they may cost "
            "many times more."
        )


def command_line(trace: Trace) -> str:
    """Return the traced command as a shell would read it, on one line and shortened."""
    line = " ".join(shlex.join(trace.command).split()) or "the process"
    return line if len(line) <= _LONGEST_COMMAND else f"{line[: _LONGEST_COMMAND - 3]}..."


def between(site: Site) -> str:
    read, write = site.read, site.write
    same = read.function != "" and (read.function, read.file) == (write.function, write.file)
    if read == write or (same and read.line == write.line):
        return str(read)
    if same:
        return f"{read.function} ({PurePath(read.file).name}:{read.line}, written in {write.line})"
    return f"{read}, written by {write}"


def doubts(trace: Trace) -> Iterator[str]:
    """Say why a trace is not that of the whole program."""
    if trace.status:
        code = os.waitstatus_to_exitcode(trace.status)
        how = f"with status {code}" if code > 0 else f"by signal {-code} ({strsignal(-code)})"
        yield f"The command ended {how}."
    if not trace.complete:
        yield ("The recorder was killed, or its disk was full: the recorded part is shown.")
    if trace.lost:
        share = f"{100 * trace.lost / (trace.faults + trace.lost):.2f} %"
        bound = ", so the number of doubles is a lower bound" if trace.lower_bound else ""
        yield (
            f"{trace.lost:,} faults ({share}) were lost, because perf's buffer was full{bound}: "
            "trace without call chains or as root."
        )
    if trace.detached:
        yield (
            f"{', '.join(trace.detached)}: the kernel stops tracing set-user-ID and unreadable "
            "programs, so their faults and their children's are missing. Trace as root."
        )
    if trace.outlived:
        yield (
            f"{', '.join(trace.outlived)}: still running when the command ended, and not traced "
            "from then on. Trace it by --pid."
        )


def _limits(trace: Trace) -> Iterator[str]:
    """Say what the trace cannot know."""
    yield from doubts(trace)
    if trace.ns:
        left = format_number_of(trace.faults - trace.priced, "faults")
        yield f"The time is by the survey in {trace.basis}, without {left} of other kinds."
    if trace.unseen and trace.unseen > _LEAST * trace.faults:
        yield (
            f"{format_number_of(trace.unseen, 'more faults')} were taken in the kernel, where perf "
            "reports none or only to root."
        )
    if trace.nameless > _LEAST * trace.faults:
        runtime = trace.programs[0].name if trace.programs else ""
        tool = next((tool for name, tool in _JITS.items() if runtime.startswith(name)), _JIT)
        yield (
            f"{format_number_of(trace.nameless, 'faults')} "
            f"({format_share(trace.nameless, trace.faults)}) are in JIT-compiled code without "
            f"symbols: {tool} provides them."
        )


# Places and lines that are printed, and faults of a program that has too few to say more.
_PLACES, _LINES = 5, 14
_TINY = 100


def print_trace(trace: Trace, console: Console, more: str) -> None:
    """Print the answer in at most 14 lines of 80 columns, and what makes it doubtful.

    `more` says where the rest is.
    """
    if trace.faults < _TINY:
        few = format_number_of(trace.faults, "page faults")
        console.print(plain(f"{command_line(trace)}: {few}.", "bold"))
    else:
        console.print(_cut(headline(trace), console), style="bold")
        console.print(_cut(kinds_line(trace), console))
        advices = advise(trace)
        for number, advice in enumerate(advices, 1):
            faults, time, memory, tried = facts_of(trace, number, advice)
            said = f"{number} {faults:>12}{time:>10}{memory:>10} {tried:7} {advice.what}"
            console.print(_cut(said, console))
            # A command is whole, to be pasted.
            console.print(plain(f"  {advice.how}"), soft_wrap=True)
        doubles, locked = list(doubled(trace)), list(contention(trace))
        left = _LINES - 3 - 2 * len(advices) - len(doubles) - 2 * len(locked)
        for place in trace.fault_places[:left][:_PLACES]:
            called = f" < {' < '.join(map(shortened, place.callers))}" if place.callers else ""
            share = format_share(place.faults, trace.faults)
            where = f"{place.faults:>9,} {share:>7}  {place.kind}: {place.where}{called}"
            console.print(_cut(where, console))
        for line in doubles:
            console.print(_cut(line, console))
        for sentence in locked:
            console.print(plain(sentence))
    for sentence in doubts(trace):
        console.print(plain(sentence))
    console.print(_cut(more, console))


def _cut(line: str, console: Console) -> Text:
    text = plain(line)
    text.truncate(console.width, overflow="ellipsis")
    return text


# Places that a comparison prints.
_COMPARED = 15


def compared_traces(a: Path, b: Path) -> Comparison | None:
    """Return the comparison of two traces; None without any, or if both have results."""
    results = [path / "results.jsonl" if path.is_dir() else path for path in (a, b)]
    files = [path if path.suffix == ".json" else path / FILE_NAME for path in (a, b)]
    traces = [file.is_file() for file in files]
    if not any(traces) or all(file.is_file() and file.suffix != ".json" for file in results):
        return None
    if not all(traces):
        raise UserError(f"only one of {a} and {b} has a trace: compare two of a kind.")
    return compare_traces(*map(read_trace, files))


def compare_traces(a: Trace, b: Trace) -> Comparison:
    ours, theirs = _by_place(a), _by_place(b)
    changed = [
        _line(place, ours[place], theirs[place])
        for place in {**ours, **theirs}
        if ours[place] != theirs[place]
    ]
    changed.sort(key=lambda line: (-abs(line.a - line.b), line.names))
    kinds = ((kind, a.fault_kinds.get(kind, 0), b.fault_kinds.get(kind, 0)) for kind in NAMES)
    lines = [
        _line("page faults", a.faults, b.faults),
        *(_line(f"  {kind}", *counts) for kind, *counts in kinds if any(counts)),
        *(replace(line, shown=number < _COMPARED) for number, line in enumerate(changed)),
    ]
    doubts = [
        sentence
        for differs, sentence in (
            (a.lower_bound or b.lower_bound, "A trace lost faults or was cut off."),
            (a.machine != b.machine, f"A is of {a.machine}, B of {b.machine}."),
            (a.command != b.command, f"A is {command_line(a)}, B is {command_line(b)}."),
        )
        if differs
    ]
    said = *doubts, f"{a.faults:,} page faults before, {b.faults:,} after."
    return Comparison(said, (), ("what",), tuple(lines))


def _line(what: str, a: int, b: int) -> Line:
    change = change_percent(a, b)
    texts = (f"{a:,}", f"{b:,}", format_change(change))
    return Line({"what": what.strip()}, (what,), a, b, change, texts, a != b)


def _by_place(trace: Trace) -> Counter[str]:
    """Return the faults by place and kind. A fix moves lines and addresses: functions count."""
    counted: Counter[str] = Counter()
    for fault in trace.fault_places:
        where = fault.place.function or f"[{PurePath(fault.place.object).name}]"
        leaf = f", {fault.leaf}" if fault.leaf else ""
        counted[f"{where} ({fault.kind}{leaf})"] += fault.faults
    return counted
