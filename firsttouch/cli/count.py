# SPDX-License-Identifier: GPL-2.0
"""`firsttouch count`: any program of arm64, user and kernel, exactly, on one kernel or several."""

from __future__ import annotations

import argparse
import itertools
import os
import select
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset
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
from firsttouch.quantities import format_list
from firsttouch.tables import dump_json, parse_json
from firsttouch.views.counts import NAMED, STATE, Counted, counts_table, ended, name_tables
from firsttouch.views.tables import print_table, print_tables
from firsttouch.views.terminal import output_console, plain

SCHEMA = 1
_SUITE = "trixie"
_DEBIAN = "debian"
# The limit of the program's and the kernel's instructions.
_ALL = "instructions"
# Of a command: MAX_WORDS of bench/experiments/count.c.
_MOST_WORDS = 1024
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
--memory RAM      memory of the guest (default 4G)
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
    own = Path(*words[:1])
    if not own.name:
        raise UserError("no command: write it after --, such as: firsttouch count -- perl -e 1")
    if len(words) > _MOST_WORDS:
        raise UserError(f"{len(words):,} words, where {_MOST_WORDS:,} fit: put them into a script.")
    exclude(options, "packages", "root")
    # An absolute path is one of the root, where that has more than the libraries.
    mine = "/" in words[0] and not (own.is_absolute() and (options.packages or options.root))
    copies = (*options.copy, *[own] * (mine and own.is_file()))
    if mine and not options.root and own.name not in {file.name for file in copies}:
        raise UserError(f"{words[0]} does not exist: give one that does, or its --root.")
    if own in copies:
        words = (f"./{own.name}", *words[1:])
    elif mine and options.root:
        words = (f"/{own}", *words[1:])
    names = (options.packages or "").replace(",", " ").split()
    names = names or ["libc6" if "/" in words[0] else own.name]
    packages = None if options.root else Packages(_SUITE, tuple(names))
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
    missing, logs = dict[str, None](), list[str]()
    contract = parse_contract(ftbench_list(reporter))
    for release, program in itertools.product(releases, programs):
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
        logs += [str(request.out / "log")] * outcome.ran
        traced = {
            each.cell.arm: each for each in outcome.results if each.cell.params[PROCESSES] == YES
        }
        untraced = [each for each in outcome.results if each.cell.params[PROCESSES] == NO]
        dataset = make_dataset(untraced, outcome.catalog)
        status |= say_notes(dataset.notes, reporter)
        missing |= dict.fromkeys(why for gap in dataset.gaps for why in gap.reasons.values())
        if not status:
            # In the order of the options: the last is compared with the first.
            for arm in arms:
                processes = processes_of(traced[arm]) if options.processes else {}
                counted.append(Counted(release, arm, root, *_counts(dataset, arm), processes))
    if status:
        return 1
    if options.json:
        columns = [{"counts": each.counts, **asdict(each)} for each in counted[len(before) :]]
        print(dump_json({"schema": SCHEMA, "command": options.command, "kernels": columns}), end="")
    else:
        console = output_console()
        console.print(plain(ended(counted)), soft_wrap=True)
        print_table(counts_table(counted, missing), console)
        print_tables(name_tables(counted), console)
        if logs:
            reporter.say(f"Its output is at the end of the kernel's log, in {format_list(logs)}.")
    first, last = counted[0].counts, counted[-1].counts
    for name, _ in options.fail_if:
        if name not in last:
            raise UserError(f"--fail-if {name}: not counted on {counted[-1].label}.")
    exceeded = print_exceeded(options.fail_if, [(counted[-1].label, first, last)])
    return 1 if exceeded else counted[-1].state[0]


_Layouts = list[dict[str, float]]


def _counts(dataset: Dataset, arm: str) -> tuple[_Layouts, dict[str, int], dict[str, int]]:
    """Return the counts in each layout, the kernel's functions, and the system calls by name."""
    layouts = []
    for case in (*dataset.cases, *dataset.further):
        values = {metric.name: case.value(arm, metric.name) for metric in case.experiment.metrics}
        counts = {name: value for name, value in values.items() if value is not None}
        counts[_ALL] = counts["instructions_user"] + counts["instructions_kernel"]
        layouts.append(counts)
    profile = profiles_of(dataset.cases[0]).get(arm)
    if profile is None:
        return layouts, {}, {}
    named = {name: each.get(INSTRUCTIONS, 0) for name, each in profile.functions.items()}
    functions = {name: count for name, count in named.items() if name != USER and count}
    return layouts, functions, system_calls(profile)


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


def _read(file: Path) -> list[Counted]:
    """Return what `--json` printed; UserError if it is something else."""
    answer = parse_json(file.read_text(errors="replace"), file)
    if (schema := answer.take("schema", int, SCHEMA)) != SCHEMA:
        raise UserError(
            f"{file} has schema {schema}, but this firsttouch reads schema {SCHEMA}: count again."
        )
    counted = [
        Counted(
            kernel.take("release", str), kernel.take("arm", str),
            f'{kernel.take("root", str, "")} in {file.name}'.strip(),
            [each.values_of(float) for each in kernel.tables("layouts")],
            *(kernel.table(name).values_of(int) for name in NAMED),
        )
        for kernel in answer.tables("kernels")
    ]  # fmt: skip
    if not counted or not all(each.layouts and {*STATE} <= each.counts.keys() for each in counted):
        raise UserError(f"{file} has no counts: give an answer of `firsttouch count --json`.")
    return counted
