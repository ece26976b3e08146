# SPDX-License-Identifier: GPL-2.0
"""The plugin's files: what each of them calls, and that no header has state for all."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.pmu.conftest import PMU, must_run

pytestmark = pytest.mark.long

# Without registers, with them, with a page-table walk, and with pointers for all callbacks.
APIS = (1, 4, 5, 7)
# Functions are not declared with this word, so it declares a variable.
_EXTERN = re.compile(r"\bextern\b[^;]*;")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def calls(objects: list[Path]) -> dict[str, set[str]]:
    """Return, for each object, the others that have what it does not define itself."""
    home: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for path in objects:
        # gcc's own: it reads objects of link-time optimisation.
        table = must_run("gcc-nm", "--format=posix", path)
        symbols = [line.split()[:2] for line in table.splitlines()]
        needs[path.stem] = {name for name, kind in symbols if kind == "U"}
        home |= {name: path.stem for name, kind in symbols if kind in "TDBRC"}
    return {file: {home[name] for name in names & home.keys()} for file, names in needs.items()}


def extern_variables(folder: Path) -> list[str]:
    return [
        f"{header.name}: {declared}"
        for header in sorted(folder.glob("*.h"))
        for declared in _EXTERN.findall(_COMMENT.sub("", header.read_text()))
    ]


@pytest.mark.parametrize("api", APIS)
def test_calls_between_files_go_one_way(tmp_path: Path, api: int) -> None:
    must_run("make", "-s", "-C", PMU, f"OUTPUT={tmp_path}", f"API={api}")
    graph = calls(sorted((tmp_path / f"api{api}").glob("*.o")))
    assert graph.keys() == {source.stem for source in PMU.glob("*.c")}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("cache") < order.index("hierarchy") < order.index("plugin") == len(order) - 1


def test_no_header_has_a_variable() -> None:
    assert list(PMU.glob("*.h"))
    assert not extern_variables(PMU)
