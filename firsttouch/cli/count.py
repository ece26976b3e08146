# SPDX-License-Identifier: GPL-2.0
"""`firsttouch count`: any program of arm64, user and kernel, exactly, on one kernel or several."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.profile import INSTRUCTIONS, USER, Profile, profiles_of, system_calls
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import parse_contract
from firsttouch.catalog.experiments import Packages, UserProgram, load_experiment
from firsttouch.cli.options import add_limits, add_out, limit_of, option, size_of
from firsttouch.cli.running import print_failures
from firsttouch.errors import UserError, nearest
from firsttouch.lab.cells import parse_layouts
from firsttouch.lab.plan import COUNT, DEFAULT_RELEASE, Request
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from firsttouch.quantities import format_change, format_list, format_value
from firsttouch.tables import dump_json, parse_json
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import output_console, plain

SCHEMA = 1
_SUITE = "trixie"
_DEBIAN = "debian"
# The limit of the program's and the kernel's instructions.
_ALL = "instructions"
# How a program ended: said before any count, because counts of other work say nothing.
_STATE = ("exit_status", "output_bytes", "output_digest")
# Counts of memory, and how much they may differ between kernels that do the same work.
_MEMORY = {"peak_resident_bytes": 0.02, "thp_fault_alloc": 0.0}
# Lines of a table of functions or system calls.
_FIRST = 12


@dataclass(frozen=True)
class Counted:
    """A program's counts on the kernel of a release and an arm, in a root of the user's or ""."""

    release: str
    arm: str
    root: str
    counts: Mapping[str, float]
    functions: Mapping[str, int] = field(default_factory=dict)
    system_calls: Mapping[str, int] = field(default_factory=dict)
    # Its counts in each layout, that of `counts` first.
    layouts: Sequence[Mapping[str, float]] = ()

    @property
    def label(self) -> str:
        """The head of its column."""
        return f"{self.release} {self.arm} {self.root}".strip()

    @property
    def state(self) -> tuple[int, ...]:
        """How the program ended: its exit status, its output's size and digest."""
        return tuple(int(self.counts[name]) for name in _STATE)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch count`."""
    parser.usage = "firsttouch count [options] -- COMMAND..."
    parser.description = (
        "Run a program of arm64 in a guest, and count all that it and its children execute, "
        "their own code and the kernel's. Counts are exact and the same on every host. They "
        "are not time, and know nothing of devices, contention and preemption."
    )
    option(
        parser, "--release R...", f"a kernel release (default {DEFAULT_RELEASE}); may be repeated"
    )
    option(
        parser, "--arm A...",
        f"a kernel of arms/ (default {_DEBIAN}, which is not built); may be repeated",
    )  # fmt: skip
    add_program(parser)
    option(parser, "--against FILE", "compare with an answer of --json", kind=Path)
    add_limits(parser)
    option(
        parser, "--layouts N", "count in N layouts, and print the range of changes",
        default="1",
    )  # fmt: skip
    option(
        parser, "--functions",
        "count the kernel's instructions by function, and system calls by name, too",
    )  # fmt: skip
    option(parser, "--json", "print the counts as JSON")
    add_out(parser, "out/count")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command and its words")
    parser.set_defaults(run=_run)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the options that say in what root, and in what guest, a program of the user's runs."""
    option(
        parser, "--packages NAMES",
        f"Debian packages of {_SUITE} for its root, with commas (default: the command's name)",
    )  # fmt: skip
    option(
        parser, "--root PATH...",
        "a folder or tar of yours instead of packages; `count` compares several", kind=Path,
    )  # fmt: skip
    option(parser, "--copy FILE...", "a file for its working directory; may be repeated", kind=Path)
    option(parser, "--cpus N", "CPUs of the guest (default 1)", kind=int, default=1)
    option(parser, "--nodes N", "NUMA nodes of the guest (default 1)", kind=int, default=1)
    option(parser, "--memory BYTES", "memory of the guest (default 4G)", default="4G")


def programs_of(options: argparse.Namespace, read: Path | None = None) -> list[UserProgram]:
    """Return the program that the options describe, in each root; it reads the file `read`.

    Raises UserError if the options contradict each other.
    """
    words = tuple(options.command)
    if not words:
        raise UserError("no command: write it behind --, such as: firsttouch count -- perl -e 1")
    if options.packages and options.root:
        raise UserError("--packages and --root exclude each other: a root of yours is complete.")
    own = Path(words[0])
    # An absolute path is one of the root, where that has more than the libraries.
    mine = "/" in words[0] and not (own.is_absolute() and (options.packages or options.root))
    copies = [*options.copy, *[own] * (mine and own.is_file())]
    for file in [*copies, *options.root]:
        if not file.exists():
            raise UserError(f"{file} does not exist: give a file that does.")
    if own in copies:
        words = (f"./{own.name}", *words[1:])
    elif mine and options.root:
        words = (f"/{own}", *words[1:])
    names = options.packages.split(",") if options.packages else []
    if not names and not options.root:
        names = ["libc6"] if "/" in words[0] else [own.name]
    memory = size_of("--memory", options.memory)
    assert memory
    if not 1 <= options.cpus <= 8:
        raise UserError(f"--cpus {options.cpus}: give 1 to 8.")
    if not 1 <= options.nodes <= 8:
        raise UserError(f"--nodes {options.nodes}: give 1 to 8.")
    packages = Packages(_SUITE, tuple(names)) if names else None
    return [
        UserProgram(words, packages, root, tuple(copies), options.cpus, memory, read, options.nodes)
        for root in options.root or [None]
    ]


def standard_input() -> Path | None:
    """Return the file that standard input is redirected from; None without one."""
    try:
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        return None
    if not is_file:
        return None
    # That of a here-document has no name any more.
    named = Path("/proc/self/fd/0").resolve()
    return named if named.is_file() else Path("/proc/self/fd/0")


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    limits = [limit_of(text) for text in options.fail_if]
    names = [_ALL, *(metric.name for metric in load_experiment(COUNT).metrics)]
    for name, _ in limits:
        if name not in names:
            raise UserError(f"--fail-if {name}: no such count; {nearest(name, names)}")
    if options.functions and options.cpus > 1:
        raise UserError("--functions follows one CPU: drop --cpus.")
    before = _read(options.against) if options.against else []
    request = Request(
        experiments=(COUNT,), arms=tuple(options.arm) or (_DEBIAN,), profile=options.functions,
        layouts=parse_layouts(options.layouts),
    )  # fmt: skip
    where = [
        (release, program)
        for release in options.release or [DEFAULT_RELEASE]
        for program in programs_of(options, standard_input())
    ]
    if limits and len(before) + len(request.arms) * len(where) < 2:
        raise UserError("--fail-if compares: give --against FILE, or two arms, releases or roots.")
    contract = parse_contract(ftbench_list(reporter))
    counted, status = list(before), 0
    reasons: dict[str, str] = {}
    for release, program in where:
        # As it was written: two may have the same name in other folders.
        root = str(program.root) if len(options.root) > 1 else ""
        folder = options.out.joinpath(
            *[release] * (len(options.release) > 1), root.replace("/", "-").lstrip(".")
        )
        asked = replace(request, release=release, program=program, out=folder)
        outcome = run_lab(asked, contract, reporter)
        status |= print_failures(outcome, folder / "log", None)
        each_layout = [
            make_dataset([r for r in outcome.results if r.cell.layout == number], outcome.catalog)
            for number in request.layouts
        ]
        dataset, values = each_layout[0], [_values(dataset) for dataset in each_layout]
        reasons |= {gap.metric: reason for gap in dataset.gaps for reason in gap.reasons.values()}
        profiles = profiles_of(dataset.cases[0]) if dataset.cases else {}
        # In the order of the options: the last is compared with the first.
        counted += [
            Counted(
                release, arm, root, values[0][arm], *_by_function(profiles.get(arm)),
                [of_arms[arm] for of_arms in values],
            )
            for arm in request.arms
            if all(arm in of_arms for of_arms in values)
        ]  # fmt: skip
    if status or not counted:
        return 1
    if options.json:
        columns = [
            {
                "release": each.release,
                "arm": each.arm,
                **({"root": each.root} if each.root else {}),
                "counts": dict(each.counts),
                **({"functions": dict(each.functions)} if each.functions else {}),
                **({"system_calls": dict(each.system_calls)} if each.functions else {}),
                **({"layouts": list(map(dict, each.layouts))} if len(each.layouts) > 1 else {}),
            }
            for each in counted[len(before) :]
        ]
        print(dump_json({"schema": SCHEMA, "command": options.command, "kernels": columns}), end="")
    else:
        console = output_console()
        console.print(plain(ended(counted)), soft_wrap=True)
        print_table(table(counted, reasons), console)
        if options.functions:
            for title in ("functions", "system calls"):
                console.print()
                print_table(names_table(title, counted), console)
        reporter.say(f"Its output is at the end of the kernel's log, in {options.out}/log.")
    exceeded = [said for limit in limits if (said := _exceeds(counted, *limit))]
    for said in exceeded:
        print(f"firsttouch: {said}", file=sys.stderr)
    return 1 if exceeded else counted[-1].state[0]


def _values(dataset: Dataset) -> dict[str, dict[str, float]]:
    """Return the counts of each arm by name."""
    values: dict[str, dict[str, float]] = {}
    for row in dataset.rows:
        for arm, value in row.arms.items():
            values.setdefault(arm, {})[row.metric] = value
    return values


def ended(counted: Sequence[Counted]) -> str:
    """Return a sentence: whether the program ended alike on all kernels."""
    first = counted[0]
    status, size, _ = first.state
    said = f"exit status {status}, {size:,} bytes of output"
    others = [each for each in counted[1:] if each.state != first.state]
    if others:
        ends = "; ".join(
            f"{each.label} with exit status {each.state[0]}, {each.state[1]:,} bytes"
            + " that differ" * (each.state[1] == size)
            for each in others
        )
        return f"It ended differently: {first.label} with {said}; {ends}. Counts are of other work."
    ended = f"It ended{' alike on all kernels' * (len(counted) > 1)}: {said}."
    for name, tolerated in _MEMORY.items():
        values = [each.counts.get(name, 0.0) for each in counted]
        if max(values) - min(values) > tolerated * max(values):
            on = ", ".join(
                f"{format_value(value)} on {each.label}"
                for each, value in zip(counted, values, strict=True)
            )
            ended += f" But its memory differs: {name.replace('_', ' ')} {on}."
    return ended


def table(counted: Sequence[Counted], reasons: Mapping[str, str]) -> Table:
    """Return the counts, a column for each kernel; the last is compared with the first.

    `reasons` says why a count is not there.
    """
    several = len(counted) > 1
    in_layouts = list(zip(counted[0].layouts, counted[-1].layouts, strict=False))
    spread = several and len(in_layouts) > 1
    rows = []
    for name in counted[0].counts:
        if name not in _STATE:
            values = [each.counts.get(name) for each in counted]
            change = [format_change(change_percent(values[0], values[-1]))] * several
            if spread:
                changes = [
                    change_percent(one.get(name), other.get(name)) for one, other in in_layouts
                ]
                known = [each for each in changes if each is not None]
                ends = [format_change(end) for end in (min(known), max(known))] if known else ["-"]
                change.append(" to ".join(ends))
            cells = ["-" if value is None else format_value(value) for value in values]
            rows.append([name.replace("_", " "), *cells, *change])
    heads = ["", *(each.label for each in counted), *["change"] * several]
    heads += [f"in {len(in_layouts)} layouts"] * spread
    missing: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        missing.setdefault(reason, []).append(name.replace("_", " "))
    said = [
        f"not counted: {format_list(names, 9)}, because {why}" for why, names in missing.items()
    ]
    return Table("", heads, rows, "; ".join(said))


def names_table(title: str, counted: Sequence[Counted]) -> Table:
    """Return the instructions of the kernel's `functions`, or how often `system calls` were made.

    The largest change comes first, or the largest value of a single kernel.
    """
    of = [each.functions if title == "functions" else each.system_calls for each in counted]
    several = len(of) > 1
    names = sorted(
        {name for values in of for name in values},
        key=lambda name: (
            -abs(of[-1].get(name, 0) - of[0].get(name, 0)),
            -max(values.get(name, 0) for values in of),
            name,
        ),
    )
    rows = [
        [
            name,
            *(f"{values.get(name, 0):,}" for values in of),
            *[f"{of[-1].get(name, 0) - of[0].get(name, 0):+,}"] * several,
        ]
        for name in names[:_FIRST]
    ]
    note = f"{len(names) - _FIRST:,} more: --json has all" if len(names) > _FIRST else ""
    unit = "kernel functions, instructions" if title == "functions" else title
    return Table("", [unit, *(each.label for each in counted), *["change"] * several], rows, note)


def _by_function(profile: Profile | None) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the instructions of the kernel's functions, and the system calls by name."""
    if profile is None:
        return {}, {}
    functions = {
        name: counts[INSTRUCTIONS]
        for name, counts in profile.functions.items()
        if name != USER and counts.get(INSTRUCTIONS)
    }
    return functions, system_calls(profile)


def _exceeds(counted: Sequence[Counted], name: str, percent: float) -> str:
    """Return a sentence if the count of the last kernel is above the limit; "" if it is not."""

    def count(of: Counted) -> float:
        if name == _ALL:
            return of.counts["instructions_user"] + of.counts["instructions_kernel"]
        if name not in of.counts:
            raise UserError(f"--fail-if {name}: not counted on {of.label}.")
        return of.counts[name]

    change = change_percent(count(counted[0]), count(counted[-1]))
    if change is None or change <= percent:
        return ""
    return f"{name} {format_change(change)}, more than +{percent:g} % ({counted[-1].label})."


def _read(file: Path) -> list[Counted]:
    """Return what `--json` printed; UserError if it is something else."""
    try:
        document = parse_json(file.read_text("utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"{file} cannot be read ({why}): give an answer of --json.") from None
    kernels = [
        Counted(
            kernel.take("release", str),
            kernel.take("arm", str),
            kernel.take("root", str, ""),
            kernel.table("counts").values_of(float),
            layouts=[layout.values_of(float) for layout in kernel.tables("layouts")],
        )
        for kernel in document.tables("kernels")
    ]
    if not kernels or not all(each.counts.keys() >= {*_STATE} for each in kernels):
        raise UserError(f"{file} has no counts of a program: give an answer of --json.")
    return kernels
