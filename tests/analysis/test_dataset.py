# SPDX-License-Identifier: GPL-2.0
"""The dataset: cases and rows made from results, changes, verdicts, derived figures, layouts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import (
    NOT_PUBLISHED,
    Dataset,
    Distribution,
    Row,
    make_dataset,
    verdict,
)
from firsttouch.analysis.figures import change_percent
from firsttouch.catalog.experiments import Params, Published, load_catalog
from tests.support import made_results
from tests.support.made_results import Made
from tests.support.results import POPULATE, in_layouts

_LDADD: Params = {"by": "ldadd", "page": "4k", "size": 1 << 30, "threads": 1}


@pytest.mark.parametrize(
    ("stock", "other", "change"),
    [(100, 50, -50.0), (100, 100, 0.0), (0, 0, 0.0), (0, 5, None), (None, 5, None)],
)
def test_change(stock: float | None, other: float | None, change: float | None) -> None:
    assert change_percent(stock, other) == change


def _published(change: float) -> Published:
    return Published("m", {}, "figure", "source", change, 0.5)


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
        (_published(0), 0.4, "reproduced"),
        (_published(0), -30.0, "reproduced"),
        (_published(0), 0.6, "not reproduced"),
    ],
)
def test_verdict(published: Published | None, change: float | None, expected: str) -> None:
    assert verdict(published, change) == expected


def _row(dataset: Dataset, metric: str = "page_faults") -> Row:
    (row,) = (row for row in dataset.rows if row.metric == metric)
    return row


def test_arms_stand_side_by_side_and_what_is_unavailable_is_listed(tmp_path: Path) -> None:
    dataset = made_results.dataset(
        tmp_path,
        [
            Made("populate", _LDADD, arm, {"page_faults": faults, "instructions_kernel": 67},
                 {"tlbi": "no PMU"})
            for arm, faults in (("on", 262144), ("stock", 524288))
        ],
    )  # fmt: skip
    faults, times = _row(dataset), _row(dataset, "instructions_kernel")
    # Stock first, whatever the order of the results.
    assert list(faults.arms.items()) == [("stock", 524288), ("on", 262144)]
    assert (faults.change_percent, faults.verdict) == (-50, "reproduced")
    assert times.verdict == "cannot be judged by counts"
    (gap,) = (gap for gap in dataset.gaps if gap.metric == "tlbi")
    assert gap.reasons == {"stock": "no PMU", "on": "no PMU"}
    assert not any(row.metric == "tlbi" for row in dataset.rows)
    assert [row.metric for row in dataset.published()] == ["page_faults", "instructions_kernel"]


@pytest.mark.parametrize(
    ("arms", "pair"),
    [
        (["stock", "on"], ("stock", "on")),
        (["on", "stock", "off"], ("stock", "on")),
        (["stock", "color"], ("stock", "color")),
        (["rmw", "color"], ("color", "rmw")),
        (["on", "off"], ("off", "on")),
        (["stock"], None),
    ],
)
def test_any_two_arms_have_a_change(
    tmp_path: Path, arms: list[str], pair: tuple[str, str] | None
) -> None:
    results = [Made("populate", _LDADD, arm, {"page_faults": 100 + 10 * len(arm)}) for arm in arms]
    dataset = made_results.dataset(tmp_path, results)
    (case,) = dataset.cases
    assert case.pair() == pair
    row = _row(dataset)
    both = [row.arms[arm] for arm in pair] if pair else [None, None]
    assert row.change_percent == change_percent(*both)
    # The published figure is about stock and on only.
    assert (row.verdict == NOT_PUBLISHED) == (pair != ("stock", "on"))


@pytest.mark.parametrize(
    ("experiment", "cells", "metric", "value"),
    [
        # Above the floor of the same arm, which is a plain store.
        ("populate", [({"by": "ldadd", "size": 400}, 200, 300_000),
                      ({"by": "store", "size": 400}, 100, 200_000)], "kernel_above_floor", 1000),
        ("populate", [({"by": "ldadd", "size": 400}, 200, 300_000)], "kernel_above_floor", None),
        # A quotient where there is no floor.
        ("read-fault", [({"size": 16}, 3, 10)], "kernel_per_fault", 10 / 3),
    ],
)  # fmt: skip
def test_derived_figures(
    tmp_path: Path, experiment: str, cells: Sequence[tuple[Mapping[str, str | int], int, int]],
    metric: str, value: float | None,
) -> None:  # fmt: skip
    more: Params = {"page": "4k", "threads": 1} if experiment == "populate" else {}
    made = [
        Made(experiment, {**params, **more}, "stock",
             {"page_faults": faults, "instructions_kernel": instructions})
        for params, faults, instructions in cells
    ]  # fmt: skip
    rows = [row for row in made_results.dataset(tmp_path, made).rows if row.metric == metric]
    assert [row.arms["stock"] for row in rows] == ([] if value is None else [value])


@pytest.mark.parametrize(("page", "per_page", "pages"), [("4k", 3, 256), ("64k", 48, 16)])
def test_a_page_is_of_the_size_asked_for(
    tmp_path: Path, page: str, per_page: float, pages: int
) -> None:
    params: Params = {"by": "ldadd", "page": page, "size": 1 << 20, "threads": 1}
    made = Made("populate", params, "stock", {"page_faults": 512, "tlbi": 768})
    dataset = made_results.dataset(tmp_path, [made])
    assert _row(dataset, "tlbi_per_page").arms == {"stock": per_page}
    (case,) = dataset.cases
    assert case.per_page("stock", "page_faults") == 512 / pages
    assert case.per_page("on", "page_faults") is None


def test_results_of_an_experiment_that_is_gone_are_noted(tmp_path: Path) -> None:
    ours = Made("populate", _LDADD, "stock", {"page_faults": 1})
    dataset = made_results.dataset(tmp_path, [replace(ours, experiment="fork-cost"), ours])
    assert len(dataset.cases) == 1
    (note,) = dataset.notes
    assert note.startswith("experiments/fork-cost.toml is missing")


_CATALOG = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])


def _layouts(stock: Sequence[float | None], on: Sequence[float | None]) -> Dataset:
    """A dataset in which layout N has the N-th values of both arms; None is a cell that failed."""
    results = [
        result
        for arm, values in (("stock", stock), ("on", on))
        for result in in_layouts(
            arm, [None if value is None else {"page_faults": value} for value in values]
        )
    ]
    return make_dataset(results, _CATALOG)


@pytest.mark.parametrize(
    ("stock", "on", "layouts", "changes", "held"),
    [
        ([200, 100, 400], [100, 52, 100], [0, 1, 2], (-50.0, -48.0, -75.0), (1, 3)),
        ([200], [100], [0], None, None),
        # The first that there is stands for all.
        ([None, None, 300, 400], [None, None, 150, 100], [2, 3], (-50.0, -75.0), (1, 2)),
        # A layout that lacks an arm counts for the other only.
        ([200, 200, 200], [100, None, 60], [0, 1, 2], (-50.0, -70.0), (1, 2)),
    ],
)
def test_a_row_has_the_changes_of_all_layouts(
    stock: Sequence[float | None], on: Sequence[float | None], layouts: Sequence[int],
    changes: tuple[float, ...] | None, held: tuple[int, int] | None,
) -> None:  # fmt: skip
    dataset = _layouts(stock, on)
    row = _row(dataset)
    assert [case.layout for case in (*dataset.cases, *dataset.further)] == list(layouts)
    assert row.change_percent == -50
    assert row.changes_over() == row.changes_over("on") == (changes and Distribution(changes))
    assert row.values_over("stock") == (
        changes and Distribution(tuple(value for value in stock if value is not None))
    )
    assert row.values_over("rmw") is None
    assert row.holds_in() == held


def test_a_floor_is_that_of_the_same_layout() -> None:
    results = [
        result
        for by, costs in (("store", (10, 20)), ("ldadd", (15, 29)))
        for result in in_layouts(
            "stock",
            [{"instructions_kernel": cost, "page_faults": 2} for cost in costs],
            {**POPULATE, "by": by},
        )
    ]
    row = _row(make_dataset(results, _CATALOG), "kernel_above_floor")
    assert row.values_over("stock") == Distribution((2.5, 4.5))
