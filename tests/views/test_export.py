# SPDX-License-Identifier: GPL-2.0
"""summary.json, and that the terminal and the page say the same: all draw one dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.analysis.dataset import Dataset
from firsttouch.quantities import format_compact, format_fixed, format_value
from firsttouch.views.labels import group_by_reason, page_label, value_label
from tests.support import made_results


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = made_results.experiments(tmp_path)
    return made_results.dataset(tmp_path / "out", made_results.plan(folder), folder)


def test_reasons_that_name_what_is_missing_are_one() -> None:
    grouped = group_by_reason(
        [("tlbi", "no model of tlbi", "a"), ("dsb", "no model of dsb", "b"), ("x", "gone", ""),
         ("dsb", "no model of dsb", "a")]
    )  # fmt: skip
    assert [(g.reason, g.names, g.where) for g in grouped] == [
        ("no model of them", ("dsb", "tlbi"), ("a", "b")),
        ("gone", ("x",), ()),
    ]
    (alone,) = group_by_reason([("tlbi", "no model of tlbi", "")])
    assert alone.reason == "no model of tlbi"


def test_values_in_words() -> None:
    assert [format_value(value) for value in (None, 0, 1234567, 2.5)] == [
        "-",
        "0",
        "1,234,567",
        "2.5",
    ]
    assert format_value(1_234_567, "ns") == "1.23 ms"
    assert (value_label(1, "faults"), value_label(2, "faults")) == ("1 fault", "2 faults")
    assert value_label(None, "faults") == "not measured"
    assert (format_fixed(1.239, 2), format_fixed(None, 2)) == ("1.24", "-")
    assert [format_compact(value) for value in (2, 524288, 645170987, 3.2e9)] == [
        "2", "524,288", "645.2 M", "3.2 G",
    ]  # fmt: skip
    assert (page_label("64k"), page_label("huge")) == ("64 KiB", "huge")
