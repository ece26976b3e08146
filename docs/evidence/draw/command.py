# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: draw the documents' figures from the raw results, measured again or not.

Run as ``python -m docs.evidence.draw.command``: it is about the documents of a
checkout, which an installed package does not have.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from docs.evidence.draw.declared import Evidence, ResultSet, load_evidence
from docs.evidence.draw.documents import Drawing
from docs.evidence.draw.history import COUNTED, draw_history
from docs.evidence.draw.oracle import (
    ORACLE,
    draw_verdicts,
    judge_programs,
    keep_verdicts,
    read_verdicts,
)
from docs.evidence.draw.packed import traces_file
from docs.evidence.draw.predicted import (
    ADVISED,
    ASKED,
    KINDS,
    PREDICTED,
    USUAL,
    draw_kinds,
    draw_predicted,
    draw_usual,
    keep_predicted,
    load_declared,
    predict,
    read_predicted,
)
from docs.evidence.draw.programs import Traced, trace_here
from docs.evidence.draw.rebuilt import load_rebuilt
from docs.evidence.draw.streams import (
    STREAMS,
    draw_simulated,
    keep_simulated,
    read_simulated,
    simulate,
)
from docs.evidence.draw.traces import (
    HERE,
    LINES,
    draw_lines,
    draw_traces,
    keep_traces,
    read_traces,
)
from firsttouch.building.host_tools import QEMU, qemu_version
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.cli.failures import exit_status
from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import HostError, UserError, nearest
from firsttouch.files import write_atomically
from firsttouch.lab.results import pack_results, read_results
from firsttouch.lab.traces import trace_of
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter

# The experiment whose programs are traced, the set that has it, the block that shows the set.
_EXPERIMENT, _SET, _BLOCK = "doubles", "doubles-6.12", "doubles-arm64"
REBUILT = "rebuilt.toml"


def main() -> int:
    """Draw all documents; with --measure, measure all sets first. Return the exit status."""
    parser = argparse.ArgumentParser(prog="make evidence", description=__doc__)
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure every set again: five to six hours with kernels in the store",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME",
        help="with --measure: only this set of tables.toml",
    )
    parser.add_argument(
        "--trace",
        choices=(HERE, LINES, ORACLE, PREDICTED, ADVISED, STREAMS),
        action="append",
        default=[],
        help="trace the programs of experiments/doubles.toml here (as root, x86-64): Debian's, or "
        "those of rebuilt.toml, built again with debug information; or set the traces of Debian's "
        "beside the kernel's tracepoints, or what they predict of remedies beside what these do, "
        "or simulate other rules of fault-ahead over them",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/evidence"), help="where results go (out/evidence)"
    )
    options = parser.parse_args()
    if options.set and not options.measure:
        parser.error("--set says what is measured: give --measure (MEASURE=1), too.")
    return exit_status(lambda: _run(options), options)


def _run(options: argparse.Namespace) -> int:
    evidence = load_evidence()
    sets = chosen(evidence, options.set)
    if options.measure and not measure(
        evidence, measurable(sets, asked=bool(options.set)), options.out
    ):
        return 1
    for name in options.trace:
        trace(evidence, name)
    draw(evidence, REPOSITORY)
    return 0


def chosen(evidence: Evidence, names: Sequence[str]) -> list[ResultSet]:
    """Return the sets of these names, or all if there are none; UserError for an unknown one."""
    for name in names:
        if name not in evidence.sets:
            raise UserError(f"tables.toml has no set {name}: {nearest(name, evidence.sets)}")
    return [evidence.sets[name] for name in names or evidence.sets]


def measurable(sets: Sequence[ResultSet], *, asked: bool) -> list[ResultSet]:
    """Return the sets that the QEMU on PATH can measure, and say which stay as they are.

    Raises UserError if one of them was `asked` for by its name.
    """
    measurable = [each for each in sets if each.qemu <= _qemu_major()]
    for each in sets:
        if each not in measurable:
            needs = f"{each.name} needs QEMU {each.qemu} on PATH, and this is {qemu_version()}"
            if asked:
                raise UserError(f"{needs}: put a newer one first on PATH.")
            print(f"make evidence: {needs}: it stays as it is.", flush=True)
    return measurable


def _qemu_major() -> int:
    """Return the first number of QEMU's version; HostError if it is missing."""
    version = re.search(r"version (\d+)", qemu_version())
    if version is None:
        raise HostError(f"{QEMU} --version printed {qemu_version()!r}: put a QEMU on PATH.")
    return int(version[1])


def measure(evidence: Evidence, sets: Sequence[ResultSet], out: Path) -> bool:
    """Measure sets, then write the raw results of each; tell whether all ran.

    Nothing is written unless all of them are whole: a document shows several.
    """
    for each in sets:
        arguments = [*each.arguments(), "--out", str(out / each.name)]
        print(f"\nmake evidence: firsttouch {' '.join(arguments)}", flush=True)
        status = firsttouch(arguments)
        if status:
            print(
                f"make evidence: {each.name} ended with status {status}: nothing was written, "
                "run it again to go on.",
                file=sys.stderr,
            )
            return False
    for each in sets:
        pack_results(each.file(evidence.folder), read_results(out / each.name).results)
    return True


def trace(evidence: Evidence, name: str) -> None:
    """Trace programs of the experiment on this host, and keep their traces."""
    experiment = load_experiment(_EXPERIMENT)
    assert experiment.root is not None
    if name == ORACLE:
        verdicts = list(judge_programs(experiment.root, experiment.scripts, Reporter()))
        keep_verdicts(traces_file(evidence.folder, name), verdicts)
        return
    if name in (PREDICTED, ADVISED):
        programs = list(predict(experiment, evidence.folder, Reporter(), name))
        keep_predicted(traces_file(evidence.folder, name), programs)
        return
    if name == STREAMS:
        simulated = simulate(experiment.root, experiment.scripts, Reporter())
        keep_simulated(traces_file(evidence.folder, name), simulated)
        return
    scripts, rebuilt = experiment.scripts, load_rebuilt(evidence.folder / REBUILT)
    if name == LINES:
        scripts = {program.name: scripts[program.name] for program in rebuilt}
    else:
        rebuilt = []
    traced = list(trace_here(experiment.root, scripts, Reporter(), rebuilt))
    keep_traces(traces_file(evidence.folder, name), traced)


def traced_blocks(evidence: Evidence) -> dict[str, Callable[[], str]]:
    """Return functions that draw tables of what is no set: traces and history, by block."""
    blocks: dict[str, Callable[[], str]] = {}
    here, lines = (traces_file(evidence.folder, name) for name in (HERE, LINES))
    if here.exists():
        blocks[HERE] = lambda: draw_traces(read_traces(here))
    if lines.exists():
        blocks[LINES] = lambda: draw_lines(read_traces(lines))
    verdicts = traces_file(evidence.folder, ORACLE)
    if verdicts.exists():
        blocks[ORACLE] = lambda: draw_verdicts(read_verdicts(verdicts))
    tried = traces_file(evidence.folder, PREDICTED)
    if tried.exists():
        declared = load_declared(evidence.folder)
        blocks[PREDICTED] = lambda: draw_predicted(read_predicted(tried), declared.reasons)
        blocks[ASKED] = lambda: draw_predicted(
            [program for program in read_predicted(tried) if program.name in declared.scripts],
            declared.reasons,
        )
        blocks[KINDS] = lambda: draw_kinds(read_predicted(tried))
        blocks[USUAL] = lambda: draw_usual(read_predicted(tried))
    advised = traces_file(evidence.folder, ADVISED)
    if advised.exists():
        reasons = load_declared(evidence.folder).advised
        blocks[ADVISED] = lambda: draw_predicted(read_predicted(advised), reasons, ADVISED)
    simulated = traces_file(evidence.folder, STREAMS)
    if simulated.exists():
        blocks[STREAMS] = lambda: draw_simulated(read_simulated(simulated))
    if (evidence.folder / COUNTED).exists():
        blocks["history"] = lambda: draw_history(evidence.folder)
    if _SET in evidence.sets:
        blocks[_BLOCK] = lambda: draw_traces(_of_guests(evidence.sets[_SET].file(evidence.folder)))
    return blocks


def _of_guests(file: Path) -> list[Traced]:
    """Return the traces of stock kernels in a set's raw results."""
    return [
        Traced(str(result.cell.params["program"]), trace)
        for result in read_results(file).results
        if result.cell.arm == BASE and (trace := trace_of(result))
    ]


def draw(evidence: Evidence, root: Path) -> None:
    """Write the documents and pictures below `root` that changed; say which did."""
    drawing = Drawing(evidence, traced_blocks(evidence))
    drawn = {
        name: drawing.document((root / name).read_text("utf-8")) for name in evidence.documents
    }
    drawn |= drawing.pictures()
    for name, text in drawn.items():
        changed = not (root / name).exists() or text != (root / name).read_text("utf-8")
        if changed:
            write_atomically(root / name, text)
        print(f"{name}: {'written' if changed else 'unchanged'}")


if __name__ == "__main__":
    sys.exit(main())
