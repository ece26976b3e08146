# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export`, and what `report`, `compare` and `export` say of what they leave out."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.places import EXPERIMENTS
from tests.conftest import Firsttouch
from tests.support import made_results


def test_markdown_and_csv_go_to_standard_output(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a b", made_results.plan(EXPERIMENTS, ["populate"], page="4k"))
    done = firsttouch("export", "a b")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == firsttouch("export", "--format", "md", "a b").stdout
    assert "| ldadd 4k | page_faults |" in done.stdout
    lines = firsttouch("export", "--format", "csv", "a b").stdout
    assert {line["release"] for line in csv.DictReader(io.StringIO(lines))} == {"6.12"}


def test_what_holds_no_results_is_refused(firsttouch: Firsttouch) -> None:
    done = firsttouch("export", "nowhere")
    assert done.returncode == 2 and "nowhere is not a directory" in done.stderr


@pytest.mark.parametrize("command", [["report", "a"], ["export", "a"], ["compare", "a", "a"]])
def test_what_cannot_be_drawn_is_said_once_and_the_rest_is_there(
    firsttouch: Firsttouch, tmp_path: Path, command: list[str]
) -> None:
    made = made_results.plan(EXPERIMENTS, ["populate"], page="4k")
    made_results.write(tmp_path / "a", [*made, replace(made[0], experiment="fork-cost")])
    done = firsttouch(*command)
    assert done.stderr.count("experiments/fork-cost.toml is missing") == 1
    assert done.stdout
