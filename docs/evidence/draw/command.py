# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: write the tables of docs/evidence from the results, measured again or not.

Run as ``python -m docs.evidence.draw.command``: it is about the documents of a
checkout, which an installed package doesn't have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.evidence.draw import commands, history, pictures, predicted
from docs.evidence.draw.sets import EVIDENCE, ResultSet, load_sets
from docs.evidence.draw.tables import page
from firsttouch.cli.main import exit_status
from firsttouch.cli.main import main as firsttouch
from firsttouch.files import REPOSITORY, write_atomically
from firsttouch.lab.results import pack_results, read_results

# Pages that are not of results of the laboratory.
OTHERS = {"history-counts": history.draw, "predicted-programs": predicted.draw}
_HEADER = "<!-- SPDX-License-Identifier: GPL-2.0 -->\n# {name}\n\nWritten by `make evidence`.\n\n"


def main() -> int:
    """Write all tables, or those of some sets; measure first if asked to."""
    parser = argparse.ArgumentParser(prog="make evidence", description=__doc__)
    add = parser.add_argument
    add("--measure", action="store_true", help="measure the sets again: all take six hours")
    add("--set", action="append", choices=[*load_sets()], help="only this set of sets.toml")
    add("--predict", action="store_true", help="trace programs with and without remedies, as root")
    add("--history", action="store_true", help="try the changes of history.toml again")
    options = parser.parse_args()
    return exit_status(lambda: _run(options), options)


def _run(options: argparse.Namespace) -> int:
    sets = [each for each in load_sets().values() if each.name in (options.set or [each.name])]
    if options.measure and not measure(sets):
        return 1
    if options.predict:
        predicted.measure()
    if options.history:
        history.measure()
    if not options.set:
        for name, text in {**draw_others(), **pictures.draw()}.items():
            _write(name, text)
    for each in sets:
        _write(f"docs/evidence/{each.page or each.name}.md", draw_set(each))
    return 0


def _write(name: str, text: str) -> None:
    file = REPOSITORY / name
    changed = not file.exists() or text != file.read_text("utf-8")
    if changed:
        write_atomically(file, text)
    print(f"{name}: {'written' if changed else 'unchanged'}", flush=True)


def measure(
    sets: Sequence[ResultSet], out: Path = Path("out/evidence"), folder: Path = EVIDENCE
) -> bool:
    """Measure sets, then store the results of each if all runs succeeded; return whether."""
    runs = [(each, release) for each in sets for release in each.releases]
    for each, release in runs:
        arguments = [*each.arguments(release), "--out", str(out / f"{each.name}-{release}")]
        print(f"\nmake evidence: firsttouch {' '.join(arguments)}", flush=True)
        if status := firsttouch(arguments):
            print(
                f"make evidence: {each.name} on {release} ended with status {status}: nothing was "
                "written, run it again to go on.",
                file=sys.stderr,
            )
            return False
    for each, release in runs:
        results = read_results(out / f"{each.name}-{release}")
        pack_results(each.file(release, folder), results)
    return True


def draw_set(of: ResultSet, folder: Path = EVIDENCE) -> str:
    return page(of, [of.dataset(release, folder) for release in of.releases])


def draw_others() -> dict[str, str]:
    pages = {
        f"docs/evidence/{name}.md": _HEADER.format(name=name) + draw()
        for name, draw in OTHERS.items()
    }
    return {**pages, **commands.draw()}


if __name__ == "__main__":
    sys.exit(main())
