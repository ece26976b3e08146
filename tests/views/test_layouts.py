# SPDX-License-Identifier: GPL-2.0
"""Figures over layouts: what summary.json, the terminal, the tables and the report say of them."""

import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.collection import load_catalog
from firsttouch.views.answers import print_answers
from firsttouch.views.html.page import render
from firsttouch.views.rows import export, print_dataset, summary
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
        "holds_in": [3, 4],
    }
    assert '"distribution"' not in json.dumps(summary(single))
    assert json.dumps(summary(single)).count('"layouts": 1') == len(single.rows)


def test_all_views_have_the_spread_and_in_how_many_layouts_a_verdict_holds(
    single: Dataset, doubtful: Dataset, golden: Golden
) -> None:
    golden("\n".join([_printed(doubtful), _table(doubtful), export(doubtful, "md")]))
    assert "reproduced, holds in 3 of 4" in render(doubtful)
    text = "\n".join([_printed(single), _table(single), export(single, "md")])
    assert "holds in" not in text and "least" not in text and "--layouts" not in text
