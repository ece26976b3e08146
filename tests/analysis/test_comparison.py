# SPDX-License-Identifier: GPL-2.0
"""Two result sets side by side: what may be compared, and what is then said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsttouch.analysis.comparison import Comparison, compare
from firsttouch.analysis.dataset import EXPERIMENTS
from firsttouch.catalog.experiments import load_experiment
from tests.conftest import Firsttouch
from tests.firsttouch import made_results

Result = dict[str, Any]


def _results(release: str = "6.12", size: int = 1 << 30) -> list[Result]:
    experiment = load_experiment("populate", EXPERIMENTS)
    return [
        made_results.result(experiment, {**params, "size": size}, arm, release)
        for params in experiment.combinations()
        if params["by"] in ("store", "ldadd") and params["page"] == "4k"
        for arm in ("stock", "on")
    ]


def _changed(results: list[Result], change: Callable[[Result], object]) -> list[Result]:
    copies: list[Result] = json.loads(json.dumps(results))
    for result in copies:
        change(result)
    return copies


def _compared(tmp_path: Path, a: list[Result], b: list[Result]) -> Comparison:
    return compare(made_results.write(tmp_path / "a", a), made_results.write(tmp_path / "b", b))


def test_the_same_cells_with_the_same_counts_are_the_same(tmp_path: Path) -> None:
    found = _compared(tmp_path, _results(), _results())
    assert found.kind == "same"
    assert found.sentence == (
        "The same: 4 cells made from the same parts, and all 20 figures are equal."
    )
    assert found.contradictions == []


def test_the_same_cells_with_other_counts_contradict_each_other(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    def one_more(result: Result) -> None:
        result["metrics"]["page_faults"] += result["arm"] == "on"

    found = _compared(tmp_path, _results(), _changed(_results(), one_more))
    assert "but 2 of 20 figures differ: these runs were not identical" in found.sentence
    assert {(line.metric, line.arm) for line in found.contradictions} == {("page_faults", "on")}
    assert firsttouch("compare", tmp_path / "a", tmp_path / "b").returncode == 1


def test_another_release_is_comparable_and_its_changes_are_given(tmp_path: Path) -> None:
    def cheaper(result: Result) -> None:
        result["metrics"]["sys_ns"] //= 2
        result["provenance"]["image"] = "e" * 64

    found = _compared(tmp_path, _results(), _changed(_results("7.3"), cheaper))
    assert found.kind == "comparable"
    assert found.sentence == (
        "Comparable: 4 cells in common that differ in the kernel; "
        "what changes below comes from that."
    )
    (difference,) = found.differences
    assert (difference.what, difference.a, difference.b) == ("kernel", "6.12.1", "7.3.1")
    changes = {line.metric: line.change_percent for line in found.lines}
    assert (changes["page_faults"], changes["sys_ns"]) == (0, -50)


def test_another_machine_is_comparable(tmp_path: Path) -> None:
    other = _changed(_results(), lambda result: result.update(machine="cortex-a72"))
    found = _compared(tmp_path, _results(), other)
    assert (found.kind, found.common) == ("comparable", 4)
    assert [d.what for d in found.differences] == ["machine"]


def test_another_build_of_the_same_kernel_is_comparable(tmp_path: Path) -> None:
    def rebuilt(result: Result) -> None:
        result["provenance"]["image"] = "e" * 64

    found = _compared(tmp_path, _results(), _changed(_results(), rebuilt))
    assert found.kind == "comparable"
    assert {d.what for d in found.differences} == {"kernel build"}


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("qemu", "QEMU emulator version 10.0.2", "QEMU"),
        ("files", {"/ftbench": "f" * 64}, "ftbench"),
        ("pmu", "f" * 64, "PMU"),
        ("commands", ["/ftbench populate --repeat 2"], "guest's commands"),
    ],
)
def test_another_instrument_is_compared_with_care(
    tmp_path: Path, key: str, value: Any, named: str
) -> None:
    other = _changed(_results("7.3"), lambda result: result["provenance"].update({key: value}))
    found = _compared(tmp_path, _results(), other)
    assert found.kind == "with care"
    assert f"they differ in the kernel, {named}; " in found.sentence


def test_cells_of_one_side_only_are_counted_and_left_out(tmp_path: Path) -> None:
    found = _compared(tmp_path, _results(), _results()[:1])
    assert (found.common, found.only_a, found.only_b) == (1, 3, 0)


def test_two_releases_on_one_side_are_compared_by_name(tmp_path: Path) -> None:
    found = _compared(tmp_path, _results() + _results("7.3"), _results("7.3"))
    assert (found.kind, found.common, found.only_a) == ("same", 4, 4)


def test_the_terminal_says_first_whether_they_are_comparable(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    made_results.write(tmp_path / "a", _results())
    made_results.write(tmp_path / "b", _results("7.3"))
    done = firsttouch("compare", "a", "b")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, sentence, *_ = done.stdout.splitlines()
    assert (first, second) == ("A: a", "B: b")
    assert sentence.startswith("Comparable: 4 cells in common")
    assert "populate  (6.12 against 7.3, neoverse-n1)" in done.stdout
    assert "524,288" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "\x1b" not in done.stdout


def test_json_is_for_programs(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a", _results())
    made_results.write(tmp_path / "b", _results("7.3"))
    found = json.loads(firsttouch("compare", "--json", "a", "b").stdout)
    assert (found["schema"], found["kind"], found["common"]) == (1, "comparable", 4)
    assert found["lines"][0]["a"] == found["lines"][0]["b"]


@pytest.mark.parametrize(
    ("other", "fragment"),
    [
        (_results(size=1 << 26), "one has size 1 GiB and the other 64 MiB"),
        (
            made_results.plan(EXPERIMENTS, ["read-fault"]),
            "one has experiment populate and the other read-fault",
        ),
        (
            _changed(_results(), lambda result: result.update(arm="intent")),
            "one has arm on, stock and the other intent",
        ),
    ],
    ids=["size", "experiment", "arm"],
)
def test_sets_with_nothing_in_common_are_refused(
    firsttouch: Firsttouch, tmp_path: Path, other: list[Result], fragment: str
) -> None:
    made_results.write(tmp_path / "a", _results())
    made_results.write(tmp_path / "b", other)
    done = firsttouch("compare", "a", "b")
    assert done.returncode == 2
    (sentence,) = done.stderr.strip().splitlines()
    assert "a and b are not comparable: they have no cell in common" in sentence
    assert fragment in sentence


def test_a_set_that_is_none_is_refused(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a", _results())
    done = firsttouch("compare", "a", "nowhere")
    assert done.returncode == 2
    assert done.stderr.strip().startswith("firsttouch: nowhere is not a directory")
