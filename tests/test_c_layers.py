# SPDX-License-Identifier: GPL-2.0
"""The files of ftbench and of the plugin have layers."""

import subprocess
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from firsttouch.files import REPOSITORY


def _calls(objects: Iterable[Path]) -> dict[str, set[str]]:
    """The files that have what each file does not define itself; x.c of any folder is x."""
    home: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for path in objects:
        # gcc's own: it reads objects of link-time optimisation.
        listed = subprocess.run(
            ["gcc-nm", "--extern-only", "--format=posix", path],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        symbols = [line.split()[:2] for line in listed.splitlines()]
        needs.setdefault(path.stem, set()).update(name for name, kind in symbols if kind == "U")
        home |= {name: path.stem for name, kind in symbols if kind != "U"}
    return {
        file: {home[name] for name in names & home.keys()} - {file} for file, names in needs.items()
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("folder", "words", "order"),
    [
        ("bench", ["CROSS_COMPILE="], ("result", "ftbench")),
        # Without registers, with them, with a page-table walk, and pointers for all callbacks.
        *(("pmu", [f"API={api}"], ("cache", "hierarchy", "plugin")) for api in (1, 4, 5, 7)),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_calls_between_files_go_one_way(
    tmp_path: Path, folder: str, words: list[str], order: tuple[str, ...]
) -> None:
    target = [str(tmp_path / "ftbench")] if folder == "bench" else []
    make = ["make", "-s", "-j2", f"-C{REPOSITORY / folder}", f"OUTPUT={tmp_path}", *words, *target]
    subprocess.run(make, check=True)
    graph = _calls(tmp_path.rglob("*.o"))
    assert graph.keys() >= {file.stem for file in (REPOSITORY / folder).glob("*.c")}
    # A cycle is an error.
    places = list(TopologicalSorter(graph).static_order())
    assert sorted(order, key=places.index) == list(order)
