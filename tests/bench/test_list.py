# SPDX-License-Identifier: GPL-2.0
"""What ftbench says about itself, by which the laboratory checks its plans, and of a machine."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import REPOSITORY
from tests.bench.conftest import Ftbench


@pytest.fixture(scope="session")
def listed(ftbench: Ftbench) -> dict[str, dict[str, Any]]:
    document = ftbench.line("--list=json")
    assert document["schema"] == 1
    assert document["program"] == "ftbench"
    assert document["experiments"]
    return {experiment["name"]: experiment for experiment in document["experiments"]}


def test_every_file_is_listed(listed: dict[str, dict[str, Any]]) -> None:
    assert sorted(listed) == sorted(
        path.stem for path in (REPOSITORY / "bench/experiments").glob("*.c")
    )
    assert list(listed) == sorted(listed)


def test_help_has_an_example_of_each_experiment(
    ftbench: Ftbench, listed: dict[str, dict[str, Any]]
) -> None:
    lines = ftbench("--help").stdout.split("Examples:\n")[1].splitlines()
    examples = [line.split()[1:] for line in lines]
    assert {example[0] for example in examples} == set(listed)
    for name, *options in examples:
        params = {f"--{p['name']}": p for key in ("params", "options") for p in listed[name][key]}
        for option, value in zip(options[::2], options[1::2], strict=True):
            forms = {"size": r"\d+[KMG]?", "count": r"\d+", "path": ".+"}
            kind = params[option]["type"]
            assert re.fullmatch(forms.get(kind) or "|".join(params[option]["choices"]), value)


def test_every_metric_is_given_or_explained(
    ftbench: Ftbench, listed: dict[str, dict[str, Any]]
) -> None:
    """Nothing is left out: a metric has a number or a reason, and only one of the two."""
    line = ftbench.line("populate", "--page", "base", "--size", "1M", "--counters", "core")
    assert not line["metrics"].keys() & line["unavailable"].keys()
    of_other_sets = {
        metric["name"]
        for metric in listed["populate"]["metrics"]
        if metric["name"].startswith(("l1d_", "llc_", "dtlb_"))
    }
    every = {metric["name"] for metric in listed["populate"]["metrics"]}
    assert line["metrics"].keys() | line["unavailable"].keys() == every - of_other_sets
    assert all(line["unavailable"].values())
    json.dumps(line, allow_nan=False)


def test_files_are_shown_as_they_are(ftbench: Ftbench, tmp_path: Path) -> None:
    (tmp_path / "a").write_text('quote " and \\ and tab\t\n')
    (tmp_path / "b1").write_text("one")
    (tmp_path / "b2").write_text("x" * 100_000)
    # What cannot be read is left out.
    (tmp_path / "b3").mkdir()
    line = ftbench.line("--files", "/nowhere/*", f"{tmp_path}/a", f"{tmp_path}/b*", "/proc/version")
    assert line["page_size"] == os.sysconf("SC_PAGESIZE")
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert 0 < line["memory_available"] <= physical
    assert line["files"] == {
        f"{tmp_path}/a": 'quote " and \\ and tab\t\n',
        f"{tmp_path}/b1": "one",
        f"{tmp_path}/b2": "x" * 65535,
        "/proc/version": Path("/proc/version").read_text(),
    }
