# SPDX-License-Identifier: GPL-2.0
"""The answer on the terminal: no digit is cut, and each request has its own rows."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.experiments import load_experiment
from firsttouch.files import EXPERIMENTS
from firsttouch.views.answers import print_answers
from firsttouch.views.rows import print_dataset
from tests.support import made_results
from tests.support.golden import Golden

_WIDTHS = (80, 40)
# A number as it is printed.
_NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?![\w,])")


def _answers(dataset: Dataset, width: int) -> str:
    sink = io.StringIO()
    print_answers(dataset, Console(file=sink, width=width, highlight=False))
    return sink.getvalue()


def _table(dataset: Dataset, width: int) -> str:
    sink = io.StringIO()
    print_dataset(dataset, Console(file=sink, width=width, highlight=False))
    return sink.getvalue()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = made_results.experiments(tmp_path_factory.mktemp("catalog"))
    return made_results.dataset(tmp_path_factory.mktemp("out"), made_results.plan(folder), folder)


@pytest.mark.long
@pytest.mark.parametrize("width", _WIDTHS)
def test_no_digit_is_cut_at_any_width(full: Dataset, width: int) -> None:
    for print_ in (_answers, _table):
        text = print_(full, width)
        assert "…" not in text
        wide = print_(full, 1000)
        if print_ is _table:
            assert set(_NUMBER.findall(wide)) <= set(_NUMBER.findall(text))
        else:
            assert "131,072" in text and "65,536" in text and "-50.00 %" in text


@pytest.mark.parametrize(
    ("names", "arms"),
    [
        (["switch"], ["stock"]), (["switch", "boot"], ["debian", "on"]),
        (["read-fault"], ["stock"]), (["populate", "zero-conflict"], ["debian"]),
    ],
)  # fmt: skip
def test_what_was_asked_for_is_the_answer(
    tmp_path: Path, names: list[str], arms: list[str], golden: Golden
) -> None:
    results = [
        replace(made, arm=arm, metrics={each.name: 100 + 10 * len(arm) for each in of.metrics})
        for name in names
        for of in [load_experiment(name)]
        for made in made_results.plan(EXPERIMENTS, [name])
        if made.arm == "stock"
        for arm in arms
    ]
    golden(_answers(made_results.dataset(tmp_path, results), 100))


def test_cells_of_which_nothing_was_counted_have_the_reason(tmp_path: Path) -> None:
    results = made_results.plan(EXPERIMENTS, ["populate"], by="casp", page="4k")
    assert "this CPU has no CASP" in _table(made_results.dataset(tmp_path, results), 80)
