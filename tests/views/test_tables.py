# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export`: tables with release, kernel version and the command that measures them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.places import EXPERIMENTS
from firsttouch.views.rows import export
from tests.support import made_results


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    results = made_results.plan(EXPERIMENTS, ["populate", "boot"])
    return made_results.dataset(tmp_path, results)


def test_a_smaller_size_is_in_the_command(tmp_path: Path) -> None:
    results = [
        replace(made, params={**made.params, "size": 1 << 24})
        for made in made_results.plan(EXPERIMENTS, ["populate"], by="ldadd")
    ]
    assert "--experiment populate --size 16777216`" in export(
        made_results.dataset(tmp_path, results), "md"
    )


def test_a_kernel_of_ones_own_is_in_the_command(tmp_path: Path) -> None:
    folder = made_results.write(tmp_path, made_results.plan(EXPERIMENTS, ["populate"]))
    file = folder / "results.jsonl"
    file.write_text(
        file.read_text().replace("lab --release 6.12 ", "lab --source '/home/me/my linux' ")
    )
    assert (
        "`firsttouch lab --source '/home/me/my linux' --machine neoverse-n1 --experiment populate`"
    ) in export(read_dataset(folder), "md")


def test_what_others_wrote_ends_no_cell_and_is_no_markup(tmp_path: Path) -> None:
    results = [
        replace(made, params={**made.params, "by": "a|b\n<script>"})
        for made in made_results.plan(EXPERIMENTS, ["populate"], by="ldadd", page="4k")
    ]
    text = export(made_results.dataset(tmp_path, results), "md")
    assert "a\\|b" in text and "<script>" not in text
    assert "a|b" not in text
