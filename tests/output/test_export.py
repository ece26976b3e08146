# SPDX-License-Identifier: GPL-2.0
"""summary.json, and that the terminal and the page say the same: all draw one dataset."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset
from firsttouch.output.html.page import render
from firsttouch.output.labels import group_by_reason, page_label, value_label
from firsttouch.output.row_tables import print_dataset
from firsttouch.output.summary import summary
from firsttouch.quantities import format_compact, format_fixed, format_value
from tests.support import made_results


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = made_results.experiments(tmp_path)
    return made_results.dataset(tmp_path / "out", made_results.plan(folder), folder)


def test_a_row_has_its_cell_its_arms_and_its_verdict(dataset: Dataset) -> None:
    document = json.loads(json.dumps(summary(dataset)))
    assert document["schema"] == 2
    (row,) = (
        row
        for row in document["rows"]
        if row["experiment"] == "populate"
        and row["metric"] == "page_faults"
        and (row["params"]["by"], row["params"]["page"]) == ("ldadd", "4k")
    )
    assert row == {
        "release": "6.12",
        "machine": "neoverse-n1",
        "experiment": "populate",
        "params": {"by": "ldadd", "page": "4k", "size": 256 << 20, "threads": 1},
        "metric": "page_faults",
        "unit": "faults",
        "arms": {"stock": 131072, "on": 65536},
        "change_percent": -50.0,
        "change_of": ["stock", "on"],
        "published": {"figure": "page faults halved", "source": "RMW patch, 2024-05-07"},
        "verdict": "reproduced",
        "layouts": 1,
    }
    # A count that was read as a whole number is written as one.
    assert isinstance(row["arms"]["stock"], int)


def test_rows_come_in_the_order_of_experiments_parameters_and_metrics(dataset: Dataset) -> None:
    rows = json.loads(json.dumps(summary(dataset)))["rows"]
    names = list(dict.fromkeys(row["experiment"] for row in rows))
    assert names == list(dataset.catalog.experiments)
    populate = [row for row in rows if row["experiment"] == "populate"]
    assert list(dict.fromkeys(row["params"]["by"] for row in populate)) == [
        "store", "load-store", "ldadd", "swp", "cas", "ldxr", "madvise",
    ]  # fmt: skip
    assert [row["metric"] for row in populate[:3]] == ["page_faults", "instructions_kernel", "tlbi"]


def test_what_is_unavailable_has_its_reason_by_arm(dataset: Dataset) -> None:
    document = json.loads(json.dumps(summary(dataset)))
    entry = next(e for e in document["unavailable"] if e["params"].get("by") == "casp")
    assert entry["reasons"] == dict.fromkeys(("stock", "on"), "this CPU has no CASP")
    measured = {(row["experiment"], str(row["params"]), row["metric"]) for row in document["rows"]}
    assert ("populate", str(entry["params"]), entry["metric"]) not in measured


def test_terminal_page_and_summary_agree(dataset: Dataset) -> None:
    sink = io.StringIO()
    # Wide enough for each unit to stand in one line.
    print_dataset(dataset, Console(file=sink, width=300))
    terminal, page = sink.getvalue(), render(dataset)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.replace("<wbr>", "")))
    rows = json.loads(json.dumps(summary(dataset)))["rows"]
    shown = {name: experiment.shown() for name, experiment in dataset.catalog.experiments.items()}
    checked = 0
    for row in rows:
        if row["metric"] not in shown[row["experiment"]]:
            continue
        values = [format_value(value, row["unit"]) for value in row["arms"].values()]
        spaced = r"\s+".join(map(re.escape, values))
        unit = "" if row["unit"] == "ns" else rf"{re.escape(row['unit'])}\s+"
        assert re.search(rf"{row['metric']}\s+{unit}{spaced}", terminal), row
        assert re.search(rf"{row['metric']}\s+{spaced}", words), row
        checked += 1
    assert checked > 150


def test_a_change_of_results_changes_all_three(tmp_path: Path) -> None:
    folder = made_results.experiments(tmp_path)
    out = made_results.write(tmp_path / "out", made_results.plan(folder, ["boot"]))
    for value in ("128,070", "777,777"):
        dataset = made_results.read(out, folder)
        sink = io.StringIO()
        print_dataset(dataset, Console(file=sink, width=100))
        assert value in sink.getvalue() and value in render(dataset)
        assert value.replace(",", "") in json.dumps(summary(dataset))
        file = out / "results.jsonl"
        file.write_text(file.read_text().replace("128070", "777777"))


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
