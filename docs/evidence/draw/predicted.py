# SPDX-License-Identifier: GPL-2.0
"""What a trace predicts of a remedy, beside what a second run with it counts.

The programs are those of experiments/doubles.toml and docs/evidence/predicted.toml. All run
without huge pages; a remedy that can be applied from outside is applied to a second run.
"""

from __future__ import annotations

import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from docs.evidence.draw.packed import pack, unpack
from docs.evidence.draw.programs import program_root, trace_script
from firsttouch.catalog.experiments import Experiment, Packages
from firsttouch.errors import HostError
from firsttouch.finder.allocators import allocator
from firsttouch.finder.kinds import NAMES
from firsttouch.finder.remedies import KEEP, THP
from firsttouch.finder.sites import Remedy, Trace
from firsttouch.output.markdown import markdown_table
from firsttouch.progress import Reporter
from firsttouch.quantities import format_share
from firsttouch.tables import read_toml
from firsttouch.trace.advice import LEAST, assignments, by_variable
from firsttouch.typed import read

# The blocks: all programs, those of predicted.toml, and kinds: a table, and half a sentence.
PREDICTED, ASKED, KINDS, USUAL = "predicted", "predicted-asked", "fault-kinds", "fault-kinds-usual"
# Huge pages that programs ask for by a variable.
ADVISED = "predicted-advised"
# What the host must say for each.
_POLICY = {PREDICTED: "always", ADVISED: "madvise"}
_ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# Of the prediction: what is further off has its reason in predicted.toml.
NEAR = 0.1


@dataclass(frozen=True)
class Tried:
    """A remedy of a program: its faults by prediction, and as a second run counted them."""

    remedy: str
    setting: str
    predicted: int
    measured: int

    @property
    def off(self) -> float:
        """By how much more was measured, as a share of the prediction."""
        return self.measured / self.predicted - 1


@dataclass(frozen=True)
class Program:
    """A program: its faults without huge pages by kind, and the remedies that were tried."""

    name: str
    kernel: str
    kinds: Mapping[str, int]
    tried: tuple[Tried, ...]

    @property
    def faults(self) -> int:
        """All faults."""
        return sum(self.kinds.values())


@dataclass(frozen=True)
class Declared:
    """predicted.toml: more packages and scripts; `reasons` by "program: remedy".

    `advised` has the reasons for huge pages that were asked for by a variable, `guests` those
    for what was measured in guests.
    """

    packages: Packages
    scripts: Mapping[str, str]
    reasons: Mapping[str, str]
    advised: Mapping[str, str]
    guests: Mapping[str, str]


def load_declared(folder: Path) -> Declared:
    """Return what predicted.toml has; UserError if it is wrong."""
    table = read_toml(folder / "predicted.toml")
    packages = Packages(table.take("suite", str), table.strings("packages"), "amd64")
    scripts = table.table("scripts").values_of(str)
    reasons = (
        table.table(key).values_of(str)
        for key in ("reasons", "reasons-advised", "reasons-in-guests")
    )
    declared = Declared(packages, scripts, *reasons)
    table.done()
    return declared


def predict(
    experiment: Experiment, folder: Path, reporter: Reporter, name: str
) -> Iterator[Program]:
    """Yield each program, traced without and with its remedies: those of PREDICTED or ADVISED.

    Raises HostError as `programs.program_root` and `trace_script`, or if the host does not
    give huge pages as the remedies need it.
    """
    assert experiment.root is not None
    policy = _POLICY[name]
    if f"[{policy}]" not in _ENABLED.read_text():
        raise HostError(f"huge pages are one of the remedies: echo {policy} >{_ENABLED}")
    declared = load_declared(folder)
    with program_root(experiment.root, reporter, declared.packages) as root:
        subprocess.run(
            ["gcc", "-O2", "-Wall", "-Werror", "-o", root / "usr/bin/predicted",
             folder / "predicted.c"],
            check=True,
        )  # fmt: skip
        for program, lines in {**experiment.scripts, **declared.scripts}.items():
            reporter.say(f"Tracing {program}")
            # A second run would find what Python compiled in the first.
            script = f"export PYTHONDONTWRITEBYTECODE=1\n{lines}"
            trace = trace_script(program, script, root, reporter)
            tried = []
            for remedy, variables in _remedies(trace, advised=name == ADVISED):
                setting = assignments(variables)
                changed = f"export {setting}\n{script}" if variables else script
                huge = remedy.name != KEEP
                after = trace_script(program, changed, root, reporter, huge=huge)
                if huge and after.no_huge:
                    # The program forbids them itself, as Ruby: a user's trace promises none.
                    continue
                predicted = trace.faults - remedy.saved
                tried.append(Tried(remedy.name, setting or policy, predicted, after.faults))
            yield Program(program, trace.kernel, trace.fault_kinds, tuple(tried))


def _remedies(trace: Trace, *, advised: bool) -> Iterator[tuple[Remedy, Mapping[str, str]]]:
    """Yield the remedies that are worth it, each with the variables that apply it."""
    used = allocator(trace.allocator)
    for remedy in trace.remedies:
        if remedy.saved < LEAST * trace.faults:
            continue
        if advised:
            if used and remedy.name == by_variable(trace):
                yield remedy, used.huge
        elif remedy.name == THP:
            yield remedy, {}
        elif remedy.name == KEEP and used and used.environment:
            yield remedy, used.environment


def keep_predicted(file: Path, programs: Iterable[Program]) -> None:
    """Write programs, packed."""
    pack(file, map(asdict, programs))


def read_predicted(file: Path) -> list[Program]:
    """Return the programs in a file of `keep_predicted`; UserError if it cannot be read."""
    return [read(entry, Program) for entry in unpack(file)]


def draw_predicted(
    programs: Iterable[Program], reasons: Mapping[str, str], name: str = PREDICTED
) -> str:
    """Return the table of what was tried, and how much of it was near."""
    programs = list(programs)
    rows = [
        (program.name, program.faults, tried) for program in programs for tried in program.tried
    ]
    near = sum(abs(tried.off) <= NEAR for *_, tried in rows)
    said = (
        f"- {near} of {len(rows)} are at most {NEAR * 100:.0f} % off. Programs of Debian 13 on "
        f"Linux {programs[0].kernel}, x86-64, as root; `make evidence TRACE={name}` runs them."
    )
    table = predicted_table(rows, reasons)
    return "".join(f"{line}\n" for line in ["", "", *table, "", said, ""])


def predicted_table(
    rows: Iterable[tuple[str, int, Tried]], reasons: Mapping[str, str]
) -> Iterator[str]:
    """Return the lines of a table of programs and their faults, those furthest off first."""
    lines = [
        [
            name,
            tried.remedy,
            *(f"{n:,}" for n in (faults, tried.predicted, tried.measured)),
            f"{100 * tried.off:+.1f} %",
            reasons.get(f"{name}: {tried.remedy}", ""),
        ]
        for name, faults, tried in sorted(rows, key=lambda row: -abs(row[2].off))
    ]
    heads = ["program", "remedy", "faults", "predicted", "measured", "off", "why"]
    yield from markdown_table(heads, range(2, 6), lines)


def draw_usual(programs: list[Program]) -> str:
    """Return the mean shares of the kinds that matter; each program counts as much."""
    shares = {
        kind: statistics.fmean(program.kinds.get(kind, 0) / program.faults for program in programs)
        for kind in NAMES
    }
    named = sorted((kind for kind in NAMES if shares[kind] >= LEAST), key=lambda k: -shares[k])
    return ", ".join(f"{kind} {format_share(shares[kind], 1)}" for kind in named)


def draw_kinds(programs: list[Program]) -> str:
    """Return the table of kinds, in percent of each program's faults, most faults first."""
    every: Counter[str] = Counter()
    for program in programs:
        every.update(program.kinds)
    kinds = [name for name in NAMES if every[name]]
    ordered = sorted(programs, key=lambda program: -program.faults)
    rows = [(program.name, program.kinds) for program in ordered]
    lines = [
        [name, f"{sum(counts.values()):,}"]
        + [format_share(counts.get(kind, 0), sum(counts.values())) for kind in kinds]
        for name, counts in [*rows, (f"all {len(rows)}", every)]
    ]
    table = markdown_table(["program", "faults", *kinds], range(1, len(kinds) + 2), lines)
    return "".join(f"{line}\n" for line in ["", "", *table, ""])
