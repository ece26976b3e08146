# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: write the tables of docs/evidence from the results, measured again or not.

Run as ``python -m docs.evidence.draw.command``: it is about the documents of a
checkout, which an installed package doesn't have.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.evidence.draw import commands, history, pictures, predicted
from docs.evidence.draw.sets import EVIDENCE, ResultSet, load_sets
from docs.evidence.draw.tables import page
from firsttouch.cli.main import exit_status
from firsttouch.cli.main import main as firsttouch
from firsttouch.files import REPOSITORY, write_atomically
from firsttouch.lab.results import pack_results, read_results

# Pages that are not of results of the laboratory.
OTHERS = {"history-counts": history, "predicted-programs": predicted}


def main() -> int:
    """Write all tables, or those of some sets; measure first if asked to."""
    parser = argparse.ArgumentParser(prog="make evidence", description=__doc__)
    add = parser.add_argument
    add("--measure", action="store_true", help="measure the sets again: all take six hours")
    add("--set", action="append", choices=[*load_sets(), *OTHERS], help="only this set or page")
    options = parser.parse_args()
    return exit_status(lambda: _run(options), options)


def _run(options: argparse.Namespace) -> int:
    sets = load_sets()
    names = options.set or [*sets]
    for name in names if options.measure else ():
        if name in OTHERS:
            OTHERS[name].measure()
        elif not measure(sets[name]):
            return 1
    if not options.set:
        for name, text in draw_others().items():
            _write(name, text)
    for name in names:
        text = OTHERS[name].draw() if name in OTHERS else page(sets[name])
        _write(f"docs/evidence/{name}.md", text)
    return 0


def _write(name: str, text: str) -> None:
    file = REPOSITORY / name
    if changed := not file.exists() or text != file.read_text("utf-8"):
        write_atomically(file, text)
    print(f"{name}: {'written' if changed else 'unchanged'}", flush=True)


def measure(of: ResultSet, out: Path = Path("out/evidence"), folder: Path = EVIDENCE) -> bool:
    """Measure a set, and store its results if all runs succeeded; return whether."""
    results = {}
    for release in of.releases:
        place = out / f"{of.name}-{release}"
        arguments = [*of.arguments(release), "--out", str(place)]
        print(f"\nmake evidence: firsttouch {' '.join(arguments)}", flush=True)
        if status := firsttouch(arguments):
            said = f"{of.name} on {release} ended with status {status}: run it again to go on."
            print(f"make evidence: {said}", file=sys.stderr)
            return False
        results[release] = read_results(place)
    for release, of_release in results.items():
        pack_results(of.file(release, folder), of_release)
    return True


def draw_others() -> dict[str, str]:
    """Return the pages and pictures that are not those of sets, by their files."""
    pages = {f"docs/evidence/{name}.md": other.draw() for name, other in OTHERS.items()}
    return {**pages, **commands.draw(), **pictures.draw()}


if __name__ == "__main__":
    sys.exit(main())
