# SPDX-License-Identifier: GPL-2.0
"""The dataset: arms side by side, derived figures, changes and verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.analysis.dataset import (
    Dataset,
    Row,
    change_percent,
    make_dataset,
    read_dataset,
    verdict,
)
from firsttouch.catalog.collection import load_known
from firsttouch.catalog.experiments import Published
from firsttouch.errors import UserError
from firsttouch.lab.results import Result, write_results
from tests.support.results import POPULATE, make_result


def _dataset(*results: Result) -> Dataset:
    catalog = load_known(
        {result.cell.experiment for result in results}, {"neoverse-n1"}, {"stock", "on", "rmw"}
    )
    return make_dataset(results, catalog)


def _row(dataset: Dataset, metric: str) -> Row:
    (row,) = [row for row in dataset.rows if row.metric == metric]
    return row


@pytest.mark.parametrize(
    ("stock", "other", "change"),
    [
        (100, 50, -50.0),
        (100, 100, 0.0),
        (0, 0, 0.0),
        (0, 5, None),
        (None, 5, None),
        (5, None, None),
    ],
)
def test_change(stock: float | None, other: float | None, change: float | None) -> None:
    assert change_percent(stock, other) == change


def _claim(change: float | None = None, at_most: float | None = None) -> Published:
    return Published("m", {}, "figure", "source", change, 0.5, at_most)


@pytest.mark.parametrize(
    ("claim", "change", "expected"),
    [
        (None, -50.0, "no claim"),
        (_claim(-50), None, "no claim"),
        (_claim(-50), -50.4, "reproduced"),
        (_claim(-50), -49.4, "not reproduced"),
        (_claim(-50), -51.0, "exceeded"),
        (_claim(-50), 50.0, "not reproduced"),
        (_claim(20), 21.0, "exceeded"),
        (_claim(20), 10.0, "not reproduced"),
        (_claim(at_most=1), 0.9, "reproduced"),
        (_claim(at_most=1), -30.0, "reproduced"),
        (_claim(at_most=1), 1.1, "not reproduced"),
    ],
)
def test_verdict(claim: Published | None, change: float | None, expected: str) -> None:
    assert verdict(claim, change) == expected


def test_arms_stand_side_by_side_and_what_is_missing_is_listed() -> None:
    why = {"tlbi": "no PMU"}
    dataset = _dataset(
        make_result({"page_faults": 262144, "sys_ns": 67}, "on", unavailable=why),
        make_result({"page_faults": 524288, "sys_ns": 100}, "stock", unavailable=why),
    )
    faults, times = _row(dataset, "page_faults"), _row(dataset, "sys_ns")
    assert list(faults.arms.items()) == [("stock", 524288), ("on", 262144)]
    assert (faults.change_percent, faults.verdict) == (-50, "reproduced")
    assert times.verdict == "not reproduced"
    assert times.published is not None
    assert times.published.change == -60
    (gap,) = [gap for gap in dataset.gaps if gap.metric == "tlbi"]
    assert gap.reasons == {"stock": "no PMU", "on": "no PMU"}
    assert not any(row.metric == "tlbi" for row in dataset.rows)


def test_a_derived_figure_is_above_the_floor_of_the_same_arm() -> None:
    def results(by: str, faults: int, stock: int, on: int) -> list[Result]:
        both = (("stock", 2 * faults if by != "store" else faults, stock), ("on", faults, on))
        return [
            make_result({"page_faults": count, "instructions_kernel": instructions}, arm,
                        params={**POPULATE, "by": by})
            for arm, count, instructions in both
        ]  # fmt: skip

    dataset = _dataset(
        *results("ldadd", 100, 300_000, 202_600), *results("store", 100, 200_000, 200_000)
    )
    row = _row(dataset, "kernel_above_floor")
    assert row.case.params["by"] == "ldadd"
    assert row.arms == {"stock": 1000, "on": 26}


def test_a_derived_figure_without_a_floor_is_a_quotient() -> None:
    metrics = {"page_faults": 4, "instructions_kernel": 10}
    dataset = _dataset(make_result(metrics, experiment="read-fault", params={"size": 16}))
    assert _row(dataset, "kernel_per_fault").arms == {"stock": 2.5}


def test_no_derived_figure_where_its_floor_was_not_measured() -> None:
    dataset = _dataset(make_result({"page_faults": 4, "instructions_kernel": 10}))
    assert not any(row.metric == "kernel_above_floor" for row in dataset.rows)


def test_what_cannot_be_drawn_is_noted_and_the_rest_is_drawn(tmp_path: Path) -> None:
    write_results(
        tmp_path, [make_result({"page_faults": 1}), make_result({"x": 1}, experiment="gone")]
    )
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write("{")
    dataset = read_dataset(tmp_path)
    assert [case.experiment.name for case in dataset.cases] == ["populate"]
    assert len(dataset.notes) == 2
    assert any("1 line" in note for note in dataset.notes)
    assert any("gone" in note for note in dataset.notes)
    write_results(tmp_path, [make_result({"x": 1}, experiment="gone")])
    with pytest.raises(UserError, match=r"gone.*nothing is left to draw"):
        read_dataset(tmp_path)
