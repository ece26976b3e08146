# SPDX-License-Identifier: GPL-2.0
"""The files of ftbench have layers: their calls make no cycle."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.bench.conftest import BENCH, make_ftbench

pytestmark = pytest.mark.long

HEADERS = sorted(BENCH.rglob("*.h"))
# The name of a declared function, with its type before it.
DECLARATION = re.compile(r"^(?!static\b|typedef\b)[a-z]\w*[\w\s*]*?\b\*?(\w+)\(", re.MULTILINE)


def module(path: Path) -> str:
    """Name a file's module: x.c and x.h are one, and so are the architectures' x.c."""
    return path.stem


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of a cycle, the first one also as the last; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def symbols(objects: Iterable[Path]) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the module that defines each symbol, and the symbols that each module uses."""
    defined: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for path in objects:
        listing = subprocess.run(
            ["nm", "--extern-only", "--format=posix", path],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name, kind in (line.split()[:2] for line in listing.splitlines()):
            if kind == "U":
                used.setdefault(module(path), set()).add(name)
            else:
                defined[name] = module(path)
    return defined, used


def without_comments(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def external_variables(text: str) -> list[str]:
    return re.findall(r"^\s*extern\b[^;(]*?(\w+)\s*(?:\[[^;]*)?;", text, re.MULTILINE)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = make_ftbench("", tmp_path_factory.mktemp("ftbench"))
    files = sorted(made.parent.rglob("*.o"))
    assert len(files) > len(list((BENCH / "experiments").glob("*.c")))
    return files


def test_calls_go_one_way(objects: list[Path]) -> None:
    defined, used = symbols(objects)
    graph = {
        user: {defined[name] for name in names if name in defined} - {user}
        for user, names in used.items()
    }
    assert {"catalogue", "list", "options", "result"} <= graph["ftbench"]
    assert find_cycle(graph) == []


def test_includes_go_one_way() -> None:
    graph: dict[str, set[str]] = {}
    for path in BENCH.rglob("*.[ch]"):
        included = re.findall(r'^#include "(.+)\.h"$', path.read_text(), re.MULTILINE)
        graph.setdefault(module(path), set()).update(set(included) - {module(path)})
    assert "run" in graph["result"]
    assert find_cycle(graph) == []


def test_headers_declare_no_variables() -> None:
    assert external_variables("extern const int a[];\nextern int b;\nextern int c(void);\n") == [
        "a",
        "b",
    ]
    variables = {
        name: path.name for path in HEADERS for name in external_variables(without_comments(path))
    }
    assert variables == {
        "__start_ft_experiments": "experiment.h",
        "__stop_ft_experiments": "experiment.h",
    }


def test_headers_declare_what_their_own_file_defines(objects: list[Path]) -> None:
    defined, _ = symbols(objects)
    declared = {
        name: module(path)
        for path in HEADERS
        for name in DECLARATION.findall(without_comments(path))
    }
    assert {"param_number", "result_add", "region_begin", "touch_load"} <= declared.keys()
    assert declared == {name: defined.get(name, "") for name in declared}
