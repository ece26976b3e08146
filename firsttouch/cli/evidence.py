# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: draw the documents' figures from the raw results, measured again or not.

Run as ``python -m firsttouch.cli.evidence``: it is about the documents of a
checkout, which an installed package does not have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import FirsttouchError
from firsttouch.files import write_atomically
from firsttouch.lab.results import pack_results, read_results
from firsttouch.output.evidence.declared import Evidence, load_evidence
from firsttouch.output.evidence.documents import Drawing
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.trace.evidence import (
    GUEST,
    HERE,
    Traced,
    draw_traces,
    keep_traces,
    read_traces,
    traces_file,
)
from firsttouch.trace.programs import load_programs, trace_here, trace_in_guest

PROGRAMS = "programs.toml"


def main() -> int:
    """Draw all documents; with --measure, measure all sets first. Return the exit status."""
    parser = argparse.ArgumentParser(prog="make evidence", description=__doc__)
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure every set again: half an hour with kernels in the store",
    )
    parser.add_argument(
        "--trace",
        choices=(HERE, GUEST),
        action="append",
        default=[],
        help="trace the programs of programs.toml again, here (as root, x86-64) or in a guest",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/evidence"), help="where results go (out/evidence)"
    )
    options = parser.parse_args()
    try:
        evidence = load_evidence()
        if options.measure and not measure(evidence, options.out):
            return 1
        for name in options.trace:
            trace(evidence, name, options.out)
        draw(evidence, REPOSITORY)
    except FirsttouchError as error:
        print(f"make evidence: {error}", file=sys.stderr)
        return 2
    return 0


def measure(evidence: Evidence, out: Path) -> bool:
    """Measure every set, then write its raw results; tell whether all ran.

    Nothing is written unless all of them are whole: a document shows several.
    """
    for one in evidence.sets.values():
        arguments = [*one.arguments(), "--out", str(out / one.name)]
        print(f"\nmake evidence: firsttouch {' '.join(arguments)}", flush=True)
        status = firsttouch(arguments)
        if status:
            print(
                f"make evidence: {one.name} ended with status {status}: nothing was written, "
                "run it again to go on.",
                file=sys.stderr,
            )
            return False
    for one in evidence.sets.values():
        pack_results(one.file(evidence.folder), read_results(out / one.name).results)
    return True


def trace(evidence: Evidence, name: str, out: Path) -> None:
    """Trace the programs of programs.toml, here or in a guest, and keep their traces."""
    listed = load_programs(evidence.folder / PROGRAMS)
    reporter = Reporter()
    found = trace_here(listed, reporter) if name == HERE else trace_in_guest(listed, out, reporter)
    traced = [Traced(program, one) for program, one in found]
    keep_traces(traces_file(evidence.folder, name), traced)


def traced_blocks(folder: Path) -> dict[str, Callable[[], str]]:
    """Return functions that draw the tables of the programs that were traced, by block."""

    def drawer(name: str) -> Callable[[], str]:
        return lambda: draw_traces(read_traces(traces_file(folder, name)))

    traced = [name for name in (HERE, GUEST) if traces_file(folder, name).exists()]
    return {name: drawer(name) for name in traced}


def draw(evidence: Evidence, root: Path) -> None:
    """Write the documents and pictures below `root` that changed; say which did."""
    drawing = Drawing(evidence, traced_blocks(evidence.folder))
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
