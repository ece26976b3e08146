# SPDX-License-Identifier: GPL-2.0
"""Rows over layouts: their values and changes, and in how many layouts a verdict holds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from firsttouch.analysis.dataset import Dataset, Distribution, Row, make_dataset
from firsttouch.catalog.collection import load_catalog
from firsttouch.lab.results import Result
from tests.support.results import POPULATE, in_layouts

_CATALOG = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])


def _faults(arm: str, values: Sequence[float | None]) -> list[Result]:
    """Results of a cell with a claim, page faults halved; None is a cell that failed."""
    return in_layouts(
        arm, [None if value is None else {"page_faults": value, "tlbi": 7} for value in values]
    )


def _dataset(stock: Sequence[float | None], on: Sequence[float | None]) -> Dataset:
    """A dataset in which layout N has the N-th values of both arms."""
    return make_dataset([*_faults("stock", stock), *_faults("on", on)], _CATALOG)


def _row(dataset: Dataset) -> Row:
    (row,) = (row for row in dataset.rows if row.metric == "page_faults")
    return row


@pytest.mark.parametrize(
    ("values", "least", "median", "most"),
    [((3.0, 1.0, 2.0), 1.0, 2.0, 3.0), ((4.0, 1.0, 2.0, 3.0), 1.0, 2.5, 4.0), ((5.0,), 5, 5, 5)],
)
def test_a_distribution_has_its_ends_and_its_middle(
    values: tuple[float, ...], least: float, median: float, most: float
) -> None:
    distribution = Distribution(values)
    assert distribution.spread == (least, median, most)


def test_a_row_is_that_of_the_first_layout_and_has_those_of_all() -> None:
    dataset = _dataset([200, 100, 400], [100, 52, 100])
    row = _row(dataset)
    assert len(dataset.cases) == 1 and len(dataset.further) == 2
    assert [case.layout for case in (*dataset.cases, *dataset.further)] == [0, 1, 2]
    assert len(dataset.results()) == 6
    assert (row.arms, row.change_percent) == ({"stock": 200, "on": 100}, -50.0)
    assert [layout.change_percent for layout in row.layouts] == [-50.0, -48.0, -75.0]
    assert row.changes_over() == row.changes_over("on") == Distribution((-50.0, -48.0, -75.0))
    assert row.values_over("stock") == Distribution((200, 100, 400))
    assert row.values_over("rmw") is None


def test_one_layout_alone_is_no_distribution() -> None:
    row = _row(_dataset([200], [100]))
    assert row.layouts == ()
    assert row.changes_over() is None and row.values_over("on") is None
    assert row.holds_in() is None


def test_results_without_layout_0_are_those_of_the_first_there_is() -> None:
    dataset = _dataset([None, None, 300, 400], [None, None, 150, 100])
    assert [case.layout for case in dataset.cases] == [2]
    assert _row(dataset).change_percent == -50.0
    assert _row(dataset).changes_over() == Distribution((-50.0, -75.0))


def test_a_layout_that_lacks_an_arm_counts_for_the_other_alone() -> None:
    row = _row(_dataset([200, 200, 200], [100, None, 60]))
    assert row.changes_over() == Distribution((-50.0, -70.0))
    assert row.values_over("stock") == Distribution((200, 200, 200))
    assert row.holds_in() == (1, 2)


def test_a_verdict_holds_in_as_many_layouts_as_have_it() -> None:
    row = _row(_dataset([200] * 20, [100] * 19 + [180]))
    assert row.verdict == "reproduced"
    assert row.holds_in() == (19, 20)


def test_a_floor_is_that_of_the_same_layout() -> None:
    """What an access costs beyond a plain store."""
    results = [
        result
        for by, costs in (("store", (10, 20)), ("ldadd", (15, 29)))
        for result in in_layouts(
            "stock",
            [{"instructions_kernel": cost, "page_faults": 2} for cost in costs],
            {**POPULATE, "by": by},
        )
    ]
    dataset = make_dataset(results, _CATALOG)
    (row,) = (row for row in dataset.rows if row.metric == "kernel_above_floor")
    assert row.values_over("stock") == Distribution((2.5, 4.5))
