# SPDX-License-Identifier: GPL-2.0
"""`firsttouch report`, `compare` and `export`: their status, and what goes to which stream."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import pack_results, read_results, write_results
from tests.conftest import Firsttouch
from tests.support import made_results
from tests.support.made_results import Made
from tests.support.results import make_profiled


def _results() -> list[Made]:
    return made_results.plan(EXPERIMENTS, ["populate"], page="4k")


def test_stacks_of_a_profile_go_to_other_tools(firsttouch: Firsttouch, tmp_path: Path) -> None:
    write_results(tmp_path, [make_profiled([100, 200])])
    done = firsttouch("export", "--format", "folded", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "stock;user code 7\n"
        "stock;user code;vectors [exception] 100\n"
        "stock;user code;vectors [exception];do_page_fault [tail call] 200\n"
    )


@pytest.mark.parametrize("command", [["report", "a"], ["export", "a"], ["compare", "a", "a"]])
def test_what_cannot_be_drawn_is_said_once_and_the_rest_is_there(
    firsttouch: Firsttouch, tmp_path: Path, command: list[str]
) -> None:
    made = _results()
    made_results.write(tmp_path / "a", [*made, replace(made[0], experiment="fork-cost")])
    done = firsttouch(*command)
    assert done.returncode == (0 if command[0] == "compare" else 1)
    assert done.stderr.count("experiments/fork-cost.toml is missing") == 1
    assert done.stdout


def test_svg_is_a_file_for_each_figure(firsttouch: Firsttouch, tmp_path: Path) -> None:
    plan = made_results.plan(EXPERIMENTS, ["populate", "fault-timeline"])
    made_results.write(tmp_path / "a", plan)
    done = firsttouch("export", "a", "--format", "svg", "--out", "b c")
    assert (done.returncode, done.stderr) == (0, "")
    files = [tmp_path / line for line in done.stdout.splitlines()]
    assert len(files) == 3 and sorted(files) == sorted((tmp_path / "b c").iterdir())


def test_packed_results_and_a_directory(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a", _results())
    pack_results(tmp_path / "b.jsonl.xz", read_results(tmp_path / "a"))
    done = firsttouch("compare", "a", "b.jsonl.xz")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The same: 16 cells" in done.stdout
    assert firsttouch("report", "b.jsonl.xz").stdout.endswith("Report: report.html\n")


def test_sets_that_contradict_each_other_fail(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a", _results())
    other = [replace(made, metrics={**made.metrics, "page_faults": 1}) for made in _results()]
    made_results.write(tmp_path / "b", other)
    done = firsttouch("compare", "--json", "a", "b")
    assert (done.returncode, json.loads(done.stdout)["contradictory"]) == (1, True)
