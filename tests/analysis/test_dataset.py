# SPDX-License-Identifier: GPL-2.0
"""The dataset: cases and rows made from results, changes, verdicts, derived figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.verdicts import NOT_PUBLISHED, change_percent, verdict
from firsttouch.catalog.experiments import Params, Published
from tests.support import made_results
from tests.support.made_results import Made

_LDADD: Params = {"by": "ldadd", "page": "4k", "size": 1 << 30, "threads": 1}


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


def _published(change: float | None = None, at_most: float | None = None) -> Published:
    return Published("m", {}, "figure", "source", change, at_most, 0.5)


@pytest.mark.parametrize(
    ("published", "change", "expected"),
    [
        (None, -50.0, NOT_PUBLISHED),
        (_published(-50), None, NOT_PUBLISHED),
        (_published(-50), -50.4, "reproduced"),
        (_published(-50), -49.4, "not reproduced"),
        (_published(-50), -51.0, "exceeded"),
        (_published(-50), 50.0, "not reproduced"),
        (_published(20), 21.0, "exceeded"),
        (_published(20), 10.0, "not reproduced"),
        (_published(at_most=1), 0.9, "reproduced"),
        (_published(at_most=1), -30.0, "reproduced"),
        (_published(at_most=1), 1.1, "not reproduced"),
    ],
)
def test_verdict(published: Published | None, change: float | None, expected: str) -> None:
    assert verdict(published, change) == expected


def _row(dataset: Dataset, metric: str) -> Row:
    (row,) = (row for row in dataset.rows if row.metric == metric)
    return row


def test_arms_stand_side_by_side_and_what_is_unavailable_is_listed(tmp_path: Path) -> None:
    no_pmu = {"tlbi": "no PMU"}
    dataset = made_results.dataset(
        tmp_path,
        [
            Made(
                "populate", _LDADD, "on", {"page_faults": 262144, "instructions_kernel": 67}, no_pmu
            ),
            Made(
                "populate",
                _LDADD,
                "stock",
                {"page_faults": 524288, "instructions_kernel": 100},
                no_pmu,
            ),
        ],
    )
    faults, times = _row(dataset, "page_faults"), _row(dataset, "instructions_kernel")
    # Stock first, whatever the order of the results.
    assert list(faults.arms.items()) == [("stock", 524288), ("on", 262144)]
    assert (faults.change_percent, faults.verdict) == (-50, "reproduced")
    assert times.verdict == "cannot be judged by counts"
    assert times.published and times.published.figure.startswith("system time -60 %")
    (gap,) = (gap for gap in dataset.gaps if gap.metric == "tlbi")
    assert gap.reasons == {"stock": "no PMU", "on": "no PMU"}
    assert not any(row.metric == "tlbi" for row in dataset.rows)


def test_a_derived_figure_is_above_the_floor_of_the_same_arm(tmp_path: Path) -> None:
    cells = [
        Made(
            "populate", {"by": by, "page": "4k", "size": 400, "threads": 1}, arm,
            {"page_faults": faults, "instructions_kernel": instructions},
        )
        for by, arm, faults, instructions in (
            ("ldadd", "stock", 200, 300_000), ("ldadd", "on", 100, 202_600),
            ("store", "stock", 100, 200_000), ("store", "on", 100, 200_000),
        )
    ]  # fmt: skip
    row = _row(made_results.dataset(tmp_path, cells), "kernel_above_floor")
    assert row.case.params["by"] == "ldadd"
    assert row.arms == {"stock": 1000, "on": 26}


def test_a_derived_figure_without_a_floor_is_a_quotient(tmp_path: Path) -> None:
    metrics = {"page_faults": 4, "instructions_kernel": 10}
    made = Made("read-fault", {"size": 16}, "stock", metrics)
    assert _row(made_results.dataset(tmp_path, [made]), "kernel_per_fault").arms == {"stock": 2.5}


def test_a_derived_figure_per_page_counts_pages_of_the_size_asked_for(tmp_path: Path) -> None:
    sizes: dict[str, float] = {"4k": 3, "64k": 48}
    for page, per_page in sizes.items():
        made = Made(
            "populate", {"by": "ldadd", "page": page, "size": 1 << 20, "threads": 1}, "stock",
            {"page_faults": 512, "tlbi": 768},
        )  # fmt: skip
        row = _row(made_results.dataset(tmp_path / page, [made]), "tlbi_per_page")
        assert row.arms == {"stock": per_page}


def test_no_derived_figure_where_its_floor_was_not_measured(tmp_path: Path) -> None:
    metrics = {"page_faults": 4, "instructions_kernel": 10}
    dataset = made_results.dataset(tmp_path, [Made("populate", _LDADD, "stock", metrics)])
    assert not any(row.metric == "kernel_above_floor" for row in dataset.rows)


def test_what_a_page_of_the_size_asked_for_took(tmp_path: Path) -> None:
    made = Made("populate", {**_LDADD, "page": "64k"}, "stock", {"page_faults": 278528})
    (case,) = made_results.dataset(tmp_path, [made]).cases
    assert case.per_page("stock", "page_faults") == 17
    assert case.per_page("on", "page_faults") is None


def test_the_largest_case_of_both_arms_is_found(tmp_path: Path) -> None:
    cells = [
        Made("populate", {**_LDADD, "size": size}, arm, {"page_faults": 1})
        for size in (1 << 20, 1 << 21, 1 << 22)
        for arm in (("stock", "on") if size < 1 << 22 else ("on",))
    ]
    dataset = made_results.dataset(tmp_path, cells)
    case = dataset.find(Platform("6.12", "neoverse-n1"), "populate", "page_faults", {"by": "ldadd"})
    assert case and case.number("size") == 1 << 21


def test_results_of_an_experiment_that_is_gone_are_noted(tmp_path: Path) -> None:
    ours = Made("populate", _LDADD, "stock", {"page_faults": 1})
    dataset = made_results.dataset(tmp_path, [replace(ours, experiment="fork-cost"), ours])
    assert len(dataset.cases) == 1
    (note,) = dataset.notes
    assert note.startswith("experiments/fork-cost.toml is missing")
