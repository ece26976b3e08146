# SPDX-License-Identifier: GPL-2.0
"""The published figures, and the sentences that are made from results."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.published import count_verdicts, published_figures
from firsttouch.output.answers import answer, answering
from tests.support import made_results

PLATFORM = Platform("6.12", "neoverse-n1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_results.experiments(tmp_path)


@pytest.fixture
def dataset(tmp_path: Path, folder: Path) -> Dataset:
    return made_results.dataset(tmp_path / "out", made_results.plan(folder), folder)


def test_the_answer_is_three_sentences_made_from_the_results(dataset: Dataset) -> None:
    figures = published_figures(dataset)
    faults, colors, price = answer(dataset, PLATFORM, figures)
    for figure in (
        "takes 2 faults on the stock kernel and 1 with both features on",
        "131,072 against 65,536 for 256 MiB, -50.00 %",
        "65,536 against 0 TLB invalidations",
        " of kernel instructions",
        "that of a 2 MiB page takes 513 and 1.",
    ):
        assert figure in faults
    assert "(arm color)" in colors
    assert "from 9 to 2.25 misses per round" in colors
    assert "the mean over hot colours from 2.26 to 2.25" in colors
    assert "a plain store by 0.00 % of kernel instructions" in price
    verdicts = [figure.verdict for figure in figures]
    for verdict in ("reproduced", "cannot be judged by counts"):
        assert f"{verdicts.count(verdict)} {verdict}" in price


def test_the_answer_says_what_was_not_measured(tmp_path: Path, folder: Path) -> None:
    results = made_results.plan(folder, ["zero-scan"])
    dataset = made_results.dataset(tmp_path / "out", results, folder)
    sentences = answer(dataset, PLATFORM, published_figures(dataset))
    assert all("was not measured" in sentence for sentence in sentences)
    assert "`firsttouch lab --experiment zero-conflict`" in sentences[1]
    assert answering(dataset) == [PLATFORM]


def test_every_published_figure_is_in_the_table_measured_or_not(
    tmp_path: Path, folder: Path, dataset: Dataset
) -> None:
    by_figure = {figure.published.figure: figure for figure in published_figures(dataset)}
    halved = by_figure["page faults halved"]
    assert halved.verdict == "reproduced"
    assert halved.row and halved.row.arms == {"stock": 131072, "on": 65536}
    assert halved.platform == PLATFORM
    assert by_figure["system time -60 % (Ampere Altra VM)"].verdict == "cannot be judged by counts"

    results = made_results.plan(folder, ["read-fault"])
    few = published_figures(made_results.dataset(tmp_path / "few", results, folder))
    again = {figure.published.figure: figure for figure in few}
    assert again.keys() == by_figure.keys()
    assert again["page faults halved"].verdict == "not measured"
    assert again["page faults halved"].row is None
    assert again["page faults halved"].command() == (
        "firsttouch lab --experiment populate --set by=ldadd --set page=4k"
    )


def test_a_figure_of_which_an_arm_is_missing_is_not_measured(tmp_path: Path, folder: Path) -> None:
    results = [
        made
        for made in made_results.plan(folder, ["populate"], by="ldadd", page="4k")
        if made.arm == "stock"
    ]
    figures = published_figures(made_results.dataset(tmp_path / "half", results, folder))
    assert count_verdicts(figures) == {"not measured": len(figures)}
