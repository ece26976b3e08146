# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export`, and what `report`, `compare` and `export` say about omissions."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import write_results
from tests.conftest import Firsttouch
from tests.support import made_results
from tests.support.results import make_profiled


def test_stacks_for_other_tools_need_a_profile(firsttouch: Firsttouch, tmp_path: Path) -> None:
    write_results(tmp_path, [make_profiled([100, 200])])
    done = firsttouch("export", "--format", "folded", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "stock;user code 7\n"
        "stock;user code;vectors [exception] 100\n"
        "stock;user code;vectors [exception];do_page_fault [tail call] 200\n"
    )
    made_results.write(tmp_path / "out", made_results.plan(EXPERIMENTS, ["boot"]))
    done = firsttouch("export", "--format", "folded", "out")
    assert done.returncode == 2
    assert "out has no profile: give a directory that `firsttouch profile --out`" in done.stderr


@pytest.mark.parametrize("command", [["report", "a"], ["export", "a"], ["compare", "a", "a"]])
def test_what_cannot_be_drawn_is_said_once_and_the_rest_is_there(
    firsttouch: Firsttouch, tmp_path: Path, command: list[str]
) -> None:
    made = made_results.plan(EXPERIMENTS, ["populate"], page="4k")
    made_results.write(tmp_path / "a", [*made, replace(made[0], experiment="fork-cost")])
    done = firsttouch(*command)
    assert done.stderr.count("experiments/fork-cost.toml is missing") == 1
    assert done.stdout


def test_svg_is_a_file_for_each_figure(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(
        tmp_path / "a", made_results.plan(EXPERIMENTS, ["populate", "fault-timeline"])
    )
    done = firsttouch("export", "a", "--format", "svg", "--out", "b c")
    assert (done.returncode, done.stderr) == (0, "")
    files = [tmp_path / line for line in done.stdout.splitlines()]
    assert len(files) == 3 and sorted(files) == sorted((tmp_path / "b c").iterdir())
