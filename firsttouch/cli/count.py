# SPDX-License-Identifier: GPL-2.0
"""`firsttouch count`: any program of arm64, user and kernel, exactly, on one kernel or several."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.profile import INSTRUCTIONS, USER, profiles_of, system_calls
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import parse_contract
from firsttouch.catalog.experiments import Packages, UserProgram, load_experiment
from firsttouch.cli.lab import print_exceeded, print_failures, say_notes
from firsttouch.cli.options import LIMITS, declare, exclude
from firsttouch.errors import UserError, nearest
from firsttouch.lab.plan import COUNT, DEFAULT_RELEASE, NO, PROCESSES, YES, Request
from firsttouch.lab.results import Result
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from firsttouch.quantities import format_change, format_list, format_value
from firsttouch.tables import dump_json, parse_json
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import output_console, plain

SCHEMA = 1
_SUITE = "trixie"
_DEBIAN = "debian"
# How a program ended: said before any count, because counts of other work say nothing.
_STATE = ("exit_status", "output_bytes", "output_digest")
# Counts of memory, and how much they may differ between kernels that do the same work.
_MEMORY = {"peak_resident_bytes": 0.02, "thp_fault_alloc": 0.0}
# The limit of the program's and the kernel's instructions.
_ALL = "instructions"
_PRINTED = (
    "release", "arm", "root", "counts", "functions", "system_calls", "processes", "layouts"
)  # fmt: skip
# Lines of a table of functions or system calls.
_FIRST = 12
# Seconds without a byte of a pipe after which a message says what is waited for.
_SILENCE = 1.0

# In what root, and in what guest, a program of the user's runs.
PROGRAM = f"""
--packages NAMES  Debian packages of {_SUITE} for its root, with commas (default: the command's
                  name)
--root PATH...    your own root instead of packages, a folder or tar; `count` compares several
--copy FILE...    a file for its working directory
--cpus 1-8        CPUs of the guest (default 1)
--nodes 1-8       NUMA nodes of the guest (default 1)
--memory BYTES    memory of the guest (default 4G)
"""
_OPTIONS = f"""
--release R...     a kernel release (default: {DEFAULT_RELEASE})
--arm NAME...      a kernel of arms/ (default: {_DEBIAN}, which is not built)
--against FILE     compare with stored --json output
--layouts LAYOUTS  count in N layouts, and print the range of the changes (default 1)
--functions        also count kernel instructions by function, and system calls by name
--processes        also count the instructions of each process and thread, in a traced run
--json             print the counts as JSON
--out DIR          output directory (default out/count)
COMMAND...         a command with arguments; it gets what standard input has, if that is a file or
                   a pipe
"""


@dataclass(frozen=True)
class Counted:
    """A program's counts in each layout, on a kernel, in a root of the user's or ""."""

    release: str
    arm: str
    root: str
    layouts: Sequence[Mapping[str, float]]
    functions: Mapping[str, int] = field(default_factory=dict)
    system_calls: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, float]:
        return self.layouts[0]

    @property
    def label(self) -> str:
        """The head of its column."""
        return f"{self.release} {self.arm} {self.root}".strip()

    @property
    def state(self) -> tuple[int, ...]:
        """How the program ended: its exit status, its output's size and digest."""
        return tuple(int(self.counts[name]) for name in _STATE)


def count_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "firsttouch count [options] -- COMMAND..."
    parser.description = (
        "Run an arm64 program in a guest, and count everything that it and its children execute, "
        "in user space and in the kernel. Counts are exact and the same on every host. They are "
        "not times, and do not include devices, contention or preemption."
    )
    declare(parser, PROGRAM + LIMITS + _OPTIONS, _run)


def programs_of(
    options: argparse.Namespace, reporter: Reporter, *, reads: bool = True
) -> list[UserProgram]:
    """Return the program that the options describe, in each root; it `reads` standard input.

    Raises UserError if the options contradict each other.
    """
    words = tuple(options.command)
    if not words:
        raise UserError("no command: write it after --, such as: firsttouch count -- perl -e 1")
    exclude(options, "packages", "root")
    own = Path(words[0])
    # An absolute path is one of the root, where that has more than the libraries.
    mine = "/" in words[0] and not (own.is_absolute() and (options.packages or options.root))
    copies = (*options.copy, *[own] * (mine and own.is_file()))
    if own in copies:
        words = (f"./{own.name}", *words[1:])
    elif mine and options.root:
        words = (f"/{own}", *words[1:])
    names = options.packages or ("libc6" if "/" in words[0] else own.name)
    packages = None if options.root else Packages(_SUITE, tuple(names.split(",")))
    read = _standard_input(reporter) if reads else None
    guest = options.cpus, options.memory, read, options.nodes
    return [UserProgram(words, packages, root, copies, *guest) for root in options.root or [None]]


def _standard_input(reporter: Reporter) -> Path | None:
    """Return a file with what standard input has, if that is a file or a pipe; or else None."""
    opened = Path("/proc/self/fd/0")
    if opened.is_fifo():
        if not select.select([0], [], [], _SILENCE)[0]:
            reporter.say("Reading standard input, a pipe, to its end; for none, add </dev/null.")
        with tempfile.TemporaryFile() as file, open(0, "rb", closefd=False) as pipe:
            shutil.copyfileobj(pipe, file)
            file.flush()
            os.dup2(file.fileno(), 0)
    if not opened.is_file():
        return None
    # That of a pipe or a here-document has no name any more.
    named = opened.resolve()
    return named if named.is_file() else opened


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    names = [_ALL, *(metric.name for metric in load_experiment(COUNT).metrics)]
    for name, _ in options.fail_if:
        if name not in names:
            raise UserError(f"--fail-if {name}: no such count; {nearest(name, names)}")
    for name in ("functions", "processes"):
        if getattr(options, name) and options.cpus > 1:
            raise UserError(f"--{name} follows one CPU: drop --cpus.")
    before = _read(options.against) if options.against else []
    arms, releases = tuple(options.arm) or (_DEBIAN,), options.release or [DEFAULT_RELEASE]
    programs = programs_of(options, reporter)
    if options.fail_if and len(before) + len(arms) * len(releases) * len(programs) < 2:
        raise UserError("--fail-if compares: give --against FILE, or two arms, releases or roots.")
    counted, status = list(before), 0
    missing: dict[str, None] = {}
    logs = []
    contract = parse_contract(ftbench_list(reporter))
    for release, program in [(release, program) for release in releases for program in programs]:
        # As it was written: two may have the same name in other folders.
        root = str(program.root) if len(programs) > 1 else ""
        request = Request(
            release, experiments=(COUNT,), arms=arms, layouts=options.layouts, program=program,
            settings={PROCESSES: (NO, YES) if options.processes else (NO,)},
            profile=options.functions,
            out=options.out.joinpath(
                *[release] * (len(releases) > 1), root.replace("/", "-").lstrip(".")
            ),
        )  # fmt: skip
        outcome = run_lab(request, contract, reporter)
        status |= print_failures(outcome, request)
        # A guest whose counts are stored has none.
        logs += [str(request.out / "log")] * (request.out / "log").is_dir()
        traced = {
            each.cell.arm: each for each in outcome.results if each.cell.params[PROCESSES] == YES
        }
        untraced = [each for each in outcome.results if each.cell.params[PROCESSES] == NO]
        dataset = make_dataset(untraced, outcome.catalog)
        status |= say_notes(dataset.notes, reporter)
        missing |= dict.fromkeys(why for gap in dataset.gaps for why in gap.reasons.values())
        of_arms = _counts(dataset)
        # In the order of the options: the last is compared with the first.
        for arm in filter(of_arms.__contains__, arms):
            named = _names(dataset, arm)
            processes = processes_of(traced[arm]) if options.processes else {}
            layouts = list(of_arms[arm].values())
            counted.append(Counted(release, arm, root, layouts, *named, processes))
    if status or not counted:
        return 1
    if options.json:
        columns = [
            {name: getattr(each, name) for name in _PRINTED} for each in counted[len(before) :]
        ]
        print(dump_json({"schema": SCHEMA, "command": options.command, "kernels": columns}), end="")
    else:
        console = output_console()
        console.print(plain(ended(counted)), soft_wrap=True)
        print_table(table(counted, missing), console)
        if options.functions:
            console.print()
            functions = [each.functions for each in counted]
            print_table(names_table("kernel functions, instructions", counted, functions), console)
            console.print()
            calls = [each.system_calls for each in counted]
            print_table(names_table("system calls", counted, calls), console)
        if options.processes:
            console.print()
            ran = [each.processes for each in counted]
            print_table(names_table("processes, instructions", counted, ran), console)
        if logs:
            reporter.say(f"Its output is at the end of the kernel's log, in {format_list(logs)}.")
    first, last = counted[0].counts, counted[-1].counts
    for name, _ in options.fail_if:
        if name not in last:
            raise UserError(f"--fail-if {name}: not counted on {counted[-1].label}.")
    exceeded = print_exceeded(options.fail_if, [(counted[-1].label, first, last)])
    return 1 if exceeded else counted[-1].state[0]


def _counts(dataset: Dataset) -> Mapping[str, Mapping[int, Mapping[str, float]]]:
    """Return the counts of each arm in each layout."""
    counts: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in dataset.rows:
        for number, of_layout in enumerate(row.layouts or [row]):
            for arm, value in of_layout.arms.items():
                counts[arm][number][row.metric] = value
    for layouts in counts.values():
        for each in layouts.values():
            each[_ALL] = each["instructions_user"] + each["instructions_kernel"]
    return counts


def _names(dataset: Dataset, arm: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the instructions of the kernel's functions, and the system calls by name."""
    profile = profiles_of(dataset.cases[0]).get(arm)
    if profile is None:
        return {}, {}
    functions = {
        name: counts[INSTRUCTIONS]
        for name, counts in profile.functions.items()
        if name != USER and counts.get(INSTRUCTIONS)
    }
    return functions, system_calls(profile)


def processes_of(result: Result) -> Mapping[str, int]:
    """Return the instructions of each process and thread of a traced run, by name and number.

    The guest's clock counts an instruction as a nanosecond, so that the time that the kernel's
    scheduler has of a task is its instructions, those of its system calls and faults included.
    UserError if the kernel keeps no such time.
    """
    printed = str(result.lines[0].get(PROCESSES, ""))
    lines = [line.split(maxsplit=2) for line in printed.splitlines()]
    if not all(line[0].isdigit() for line in lines):
        raise UserError(f"--processes: {printed}")
    tasks = sorted((int(task), name, int(runtime)) for task, runtime, name in lines)
    of_name = Counter(name for _, name, _ in tasks)
    seen: Counter[str] = Counter()
    ran = {}
    for _, name, runtime in tasks:
        seen[name] += 1
        ran[name if of_name[name] == 1 else f"{name} {seen[name]}"] = runtime
    return ran


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def ended(counted: Sequence[Counted]) -> str:
    """Return a sentence: whether the program ended alike on all kernels."""
    ends = [f"exit status {each.state[0]}, {each.state[1]:,} bytes of output" for each in counted]
    if len({each.state for each in counted}) > 1:
        each_with = [f"{each.label} with {end}" for each, end in zip(counted, ends, strict=True)]
        return (
            "The outcomes differ, by status or output, so the counts do not compare: "
            f"{'; '.join(each_with)}."
        )
    said = f"{'The same outcome on all kernels' if len(counted) > 1 else 'Ended'}: {ends[0]}."
    for name, tolerated in _MEMORY.items():
        values = [each.counts.get(name, 0.0) for each in counted]
        if max(values) - min(values) > tolerated * max(values):
            on = ", ".join(
                f"{format_value(value)} on {each.label}"
                for value, each in zip(values, counted, strict=True)
            )
            said += f" But its memory use differs: {_words(name)} {on}."
    return said


def table(counted: Sequence[Counted], missing: Iterable[str]) -> Table:
    """Return the counts, a column for each kernel; the last is compared with the first.

    `missing` has the reasons why other counts are not there.
    """
    layouts = list(zip(counted[0].layouts, counted[-1].layouts, strict=False))
    spread = len(counted) > 1 and len(layouts) > 1
    rows = []
    for name in counted[0].counts:
        if name not in _STATE:
            changes = [change_percent(one.get(name), other.get(name)) for one, other in layouts]
            known = [each for each in changes if each is not None]
            ends = [format_change(end) for end in (min(known), max(known))] if known else ["-"]
            values = [format_value(each.counts.get(name)) for each in counted]
            row = [_words(name), *values, format_change(changes[0])]
            rows.append([*row, " to ".join(ends)] if spread else row)
    note = "; ".join(f"other counts are missing: {why}" for why in missing)
    return _table("", counted, rows, note, [f"in {len(layouts)} layouts"] * spread)


def names_table(
    what: str, counted: Sequence[Counted], values: Sequence[Mapping[str, int]]
) -> Table:
    """Return `values` by name, the largest change first, or the largest value of one kernel."""
    rows = {name: [each.get(name, 0) for each in values] for each in values for name in each}
    order = sorted((-abs(row[-1] - row[0]), -max(row), name) for name, row in rows.items())
    lines = [
        [name, *(f"{value:,}" for value in rows[name]), f"{rows[name][-1] - rows[name][0]:+,}"]
        for _, _, name in order[:_FIRST]
    ]
    left = len(rows) - _FIRST
    return _table(what, counted, lines, f"{left:,} more: --json has all" if left > 0 else "")


def _table(
    head: str, counted: Sequence[Counted], rows: Sequence[Sequence[str]], note: str,
    more: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Return `rows` with a head; a single kernel has no change."""
    heads = [head, *(each.label for each in counted), "change", *more]
    if len(counted) == 1:
        heads, rows = heads[:2], [row[:2] for row in rows]
    return Table("", heads, rows, note)


def _read(file: Path) -> list[Counted]:
    """Return what `--json` printed; UserError if it is something else."""
    answer = parse_json(file.read_text(errors="replace"), file)
    if (schema := answer.optional("schema", int)) not in (SCHEMA, None):
        raise UserError(
            f"{file} has schema {schema}, but this firsttouch reads schema {SCHEMA}: count again."
        )
    counted = [
        Counted(
            kernel.take("release", str), kernel.take("arm", str), kernel.take("root", str, ""),
            [each.values_of(float) for each in kernel.tables("layouts")],
        )
        for kernel in answer.tables("kernels")
    ]  # fmt: skip
    if not counted or not all(each.layouts and {*_STATE} <= each.counts.keys() for each in counted):
        raise UserError(f"{file} has no counts: give an answer of `firsttouch count --json`.")
    return counted
