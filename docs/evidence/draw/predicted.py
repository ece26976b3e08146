# SPDX-License-Identifier: GPL-2.0
"""What a trace predicts of a remedy, beside what a second run with it counts.

The programs are those of experiments/doubles.toml and docs/evidence/predicted.toml. All run
without huge pages; a remedy that can be applied from outside is applied to a second run.
"""

from __future__ import annotations

import json
import lzma
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from docs.evidence.draw.programs import program_root, trace_script
from firsttouch.catalog.experiments import Experiment, Packages
from firsttouch.errors import HostError, UserError
from firsttouch.files import write_atomically
from firsttouch.finder.allocators import allocator
from firsttouch.finder.kinds import NAMES
from firsttouch.finder.remedies import KEEP, THP
from firsttouch.finder.sites import Remedy, Trace
from firsttouch.output.markdown import markdown_table
from firsttouch.progress import Reporter
from firsttouch.quantities import format_share
from firsttouch.tables import parse_json, read_toml
from firsttouch.trace.advice import LEAST, assignments
from firsttouch.typed import read

# The blocks: all programs, those of predicted.toml, and kinds: a table, and half a sentence.
PREDICTED, ASKED, KINDS, USUAL = "predicted", "predicted-asked", "fault-kinds", "fault-kinds-usual"
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

    `guests` has the reasons for what was measured in guests.
    """

    packages: Packages
    scripts: Mapping[str, str]
    reasons: Mapping[str, str]
    guests: Mapping[str, str]


def load_declared(folder: Path) -> Declared:
    """Return what predicted.toml has; UserError if it is wrong."""
    table = read_toml(folder / "predicted.toml")
    packages = Packages(table.take("suite", str), table.strings("packages"), "amd64")
    scripts = table.table("scripts").values_of(str)
    reasons, guests = (table.table(key).values_of(str) for key in ("reasons", "reasons-in-guests"))
    table.done()
    return Declared(packages, scripts, reasons, guests)


def predict(experiment: Experiment, folder: Path, reporter: Reporter) -> Iterator[Program]:
    """Yield each program, traced without and with its remedies.

    Raises HostError as `programs.program_root` and `trace_script`, or if huge pages are not
    given to who does not ask.
    """
    assert experiment.root is not None
    if "[always]" not in _ENABLED.read_text():
        raise HostError(f"huge pages are one of the remedies: echo always >{_ENABLED}")
    declared = load_declared(folder)
    with program_root(experiment.root, reporter, declared.packages) as root:
        subprocess.run(
            ["gcc", "-O2", "-Wall", "-Werror", "-o", root / "usr/bin/predicted",
             folder / "predicted.c"],
            check=True,
        )  # fmt: skip
        for name, script in {**experiment.scripts, **declared.scripts}.items():
            reporter.say(f"Tracing {name}")
            trace = trace_script(name, script, root, reporter)
            tried = tuple(_tried(name, script, trace, root, reporter))
            yield Program(name, trace.kernel, trace.fault_kinds, tried)


def _tried(name: str, script: str, trace: Trace, root: Path, reporter: Reporter) -> Iterator[Tried]:
    for remedy in trace.remedies:
        if remedy.saved < LEAST * trace.faults:
            continue
        if remedy.name == THP:
            after = trace_script(name, script, root, reporter, huge=True)
            yield _outcome(remedy, "always", trace, after)
        heap = allocator(trace.allocator)
        if remedy.name == KEEP and heap and heap.environment:
            setting = assignments(heap.environment)
            after = trace_script(name, f"export {setting}\n{script}", root, reporter)
            yield _outcome(remedy, setting, trace, after)


def _outcome(remedy: Remedy, setting: str, before: Trace, after: Trace) -> Tried:
    return Tried(remedy.name, setting, before.faults - remedy.saved, after.faults)


def keep_predicted(file: Path, programs: Iterable[Program]) -> None:
    """Write programs, packed, one a line."""
    lines = ",\n".join(json.dumps(asdict(program)) for program in programs)
    write_atomically(file, lzma.compress(f'{{"programs": [\n{lines}\n]}}\n'.encode(), preset=9))


def read_predicted(file: Path) -> list[Program]:
    """Return the programs in a file of `keep_predicted`; UserError if it cannot be read."""
    try:
        text = lzma.decompress(file.read_bytes()).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError):
        raise UserError(f"{file}: cannot be read: run `make evidence TRACE={PREDICTED}`.") from None
    return [read(entry, Program) for entry in parse_json(text, file).tables("programs")]


def draw_predicted(programs: Iterable[Program], declared: Declared) -> str:
    """Return the table of what was tried, and how much of it was near."""
    programs = list(programs)
    rows = [
        (program.name, program.faults, tried) for program in programs for tried in program.tried
    ]
    near = sum(abs(tried.off) <= NEAR for *_, tried in rows)
    said = (
        f"- {near} of {len(rows)} are at most {NEAR * 100:.0f} % off. Programs of Debian 13 on "
        f"Linux {programs[0].kernel}, x86-64, as root; `make evidence TRACE={PREDICTED}` runs them."
    )
    table = predicted_table(rows, declared.reasons)
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
