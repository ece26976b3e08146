# SPDX-License-Identifier: GPL-2.0
"""Figures over layouts: what summary.json, the terminal, the tables and the report say of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.distributions import Distribution
from firsttouch.catalog.collection import load_catalog
from firsttouch.output.html.files import figure_files
from firsttouch.output.html.page import render
from firsttouch.output.html.strips import scale_of, strips
from firsttouch.output.html.svg import Drawing
from firsttouch.output.markdown import export
from firsttouch.output.row_tables import print_dataset
from firsttouch.output.summary import summary
from firsttouch.output.terminal import LINES, print_answers
from tests.support.golden import Golden
from tests.support.results import in_layouts

_CATALOG = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])


def _dataset(halved: Sequence[bool]) -> Dataset:
    """A dataset where faults are halved in some layouts, and instructions differ in each."""
    stock = [{"page_faults": 200, "instructions_kernel": 1e6} for _ in halved]
    on = [
        {"page_faults": 100 if half else 180, "instructions_kernel": 5e5 + 1e4 * layout}
        for layout, half in enumerate(halved)
    ]
    return make_dataset([*in_layouts("stock", stock), *in_layouts("on", on)], _CATALOG)


@pytest.fixture
def single() -> Dataset:
    return _dataset([True])


@pytest.fixture
def holding() -> Dataset:
    return _dataset([True] * 20)


@pytest.fixture
def doubtful() -> Dataset:
    return _dataset([True] * 3 + [False])


def _printed(dataset: Dataset) -> str:
    sink = io.StringIO()
    console = Console(file=sink, width=100, highlight=False)
    print_answers(dataset, "out/report.html", console)
    return sink.getvalue()


def _table(dataset: Dataset) -> str:
    sink = io.StringIO()
    print_dataset(dataset, Console(file=sink, width=100, highlight=False))
    return sink.getvalue()


def test_the_summary_has_the_distribution_and_none_of_one_layout(
    single: Dataset, doubtful: Dataset
) -> None:
    document = json.loads(json.dumps(summary(doubtful)))
    (row,) = (row for row in document["rows"] if row["metric"] == "page_faults")
    assert row["layouts"] == 4
    assert row["distribution"] == {
        "change_percent": {"minimum": -50.0, "median": -50.0, "maximum": -10.0},
        "arms": {
            "stock": {"minimum": 200, "median": 200, "maximum": 200},
            "on": {"minimum": 100, "median": 100, "maximum": 180},
        },
        "verdict_share": 0.75,
    }
    assert '"distribution"' not in json.dumps(summary(single))
    assert json.dumps(summary(single)).count('"layouts": 1') == len(single.rows)


def test_the_answer_says_which_verdict_depends_on_the_layout(
    single: Dataset, holding: Dataset, doubtful: Dataset, golden: Golden
) -> None:
    golden(_printed(doubtful))
    assert "Depends on the layout" not in _printed(holding)
    assert "layout" not in _printed(single)
    assert _printed(doubtful).count("\n") <= LINES


def test_tables_have_the_least_the_median_and_the_most(
    single: Dataset, doubtful: Dataset, golden: Golden
) -> None:
    golden(f"{_table(doubtful)}\n{export(doubtful, 'md')}")
    assert "least" not in _table(single)
    assert "least" not in export(single, "md") and "--layouts" not in export(single, "md")


def test_csv_has_a_line_for_each_layout(single: Dataset, doubtful: Dataset) -> None:
    lines = [
        line
        for line in csv.DictReader(io.StringIO(export(doubtful, "csv")))
        if (line["metric"], line["arm"]) == ("page_faults", "on")
    ]
    assert [line["layout"] for line in lines] == ["0", "1", "2", "3"]
    assert [line["value"] for line in lines] == ["100", "100", "100", "180"]
    assert [line["verdict"] for line in lines] == ["reproduced"] * 3 + ["not reproduced"]
    assert "layout" not in export(single, "csv").splitlines()[0]


def test_the_report_draws_a_strip_and_says_the_share(
    single: Dataset, holding: Dataset, doubtful: Dataset
) -> None:
    page = render(doubtful)
    assert "reproduced in only 75 % of 4 layouts" in page
    assert "-50.00 % to -10.00 %, median -50.00 %" in page
    assert "reproduced in 100 % of 20 layouts" in render(holding)
    assert "layouts" not in re.sub(r"<style>.*?</style>", "", render(single), flags=re.DOTALL)
    assert [name for name in figure_files(doubtful) if "layouts" in name] == [
        "populate-6.12-on-neoverse-n1-4-layouts.svg"
    ]


def test_a_strip_has_a_mark_for_each_layout(
    holding: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[float, ...]] = []

    def marks(
        _: Drawing, __: str, points: Sequence[tuple[float, float]], ___: float, ____: str
    ) -> None:
        drawn.append(tuple(x for x, _ in points))

    monkeypatch.setattr(Drawing, "marks", marks)
    (figure,) = strips(holding, holding.cases, "name")
    # Two claims, and of each a wide and a narrow picture.
    assert [len(points) for points in drawn] == [20] * 4
    faults = [points for points in drawn if len(set(points)) == 1]
    times = [points for points in drawn if len(set(points)) == 20]
    assert len(faults) == len(times) == 2
    assert all(list(points) == sorted(points) for points in times)
    assert figure.table and [row[1:] for row in figure.table.rows] == [
        # An instruction is no time: there is nothing to judge.
        ("-50.00 %", "-40.50 %", "-31.00 %", ""),
        ("-50.00 %", "-50.00 %", "-50.00 %", "in 100 % of 20 layouts"),
    ]


def test_one_layout_has_no_strip(single: Dataset) -> None:
    assert strips(single, single.cases, "name") == []


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [((-1.0, 3.0), -1.0, 3.0), ((2.0, 2.0), 1.95, 2.05), ((2.0, 2.04), 1.97, 2.07)],
)
def test_a_scale_is_never_so_narrow_that_nothing_looks_like_much(
    values: tuple[float, ...], low: float, high: float
) -> None:
    scale = scale_of(Distribution(values), 10, 20)
    assert [scale.low, scale.high] == pytest.approx([low, high])
    assert 10 <= scale.at(min(values)) <= scale.at(max(values)) <= 20
