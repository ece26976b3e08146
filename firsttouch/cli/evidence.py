# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: draw the documents' figures from the raw results, measured again or not.

Run as ``python -m firsttouch.cli.evidence``: it is about the documents of a
checkout, which an installed package does not have.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import FirsttouchError
from firsttouch.files import write_atomically
from firsttouch.lab.results import pack_results, read_results
from firsttouch.output.evidence.declared import Evidence, load_evidence
from firsttouch.output.evidence.documents import Drawing
from firsttouch.places import REPOSITORY


def main() -> int:
    """Draw all documents; with --measure, measure all sets first. Return the exit status."""
    parser = argparse.ArgumentParser(prog="make evidence", description=__doc__)
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure every set again: half an hour with kernels in the store",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/evidence"), help="where results go (out/evidence)"
    )
    options = parser.parse_args()
    try:
        evidence = load_evidence()
        if options.measure and not measure(evidence, options.out):
            return 1
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


def draw(evidence: Evidence, root: Path) -> None:
    """Write the documents and pictures below `root` that changed; say which did."""
    drawing = Drawing(evidence)
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
