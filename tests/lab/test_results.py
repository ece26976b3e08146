# SPDX-License-Identifier: GPL-2.0
"""results.jsonl and the summary made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firsttouch.errors import UserError
from firsttouch.catalog.experiments import Published, load_experiment
from firsttouch.lab.results import ResultStore, read_results
from firsttouch.analysis.summary import change_percent, summarize, verdict


def _result(key: str, arm: str = "stock", **metrics: float) -> dict[str, Any]:
    return {
        "schema": 1,
        "cell": key,
        "release": "6.12",
        "kernel_version": "6.12.1",
        "arm": arm,
        "machine": "neoverse-n1",
        "experiment": "populate",
        "params": {"by": "ldadd", "page": "4k", "size": 1 << 30, "threads": 1},
        "metrics": metrics,
        "unavailable": ["tlbi"],
        "reasons": {"tlbi": "no PMU"},
        "provenance": {},
    }


def test_what_is_added_is_found_again(tmp_path: Path) -> None:
    ResultStore(tmp_path).add(_result("a", page_faults=1))
    ResultStore(tmp_path).add(_result("b", page_faults=2))
    store = ResultStore(tmp_path)
    found = store.get("b")
    assert found is not None and found["metrics"] == {"page_faults": 2}
    assert store.get("c") is None
    assert store.broken == 0


def test_a_truncated_last_line_is_dropped_and_its_cell_is_missing(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.add(_result("a"))
    store.add(_result("b"))
    text = store.file.read_text()
    store.file.write_text(text[:-40])
    again = ResultStore(tmp_path)
    assert again.broken == 1
    assert again.get("a") is not None
    assert again.get("b") is None
    # What is added next begins on a line of its own.
    again.add(_result("b"))
    results, broken = read_results(store.file)
    assert [result["cell"] for result in results] == ["a", "b"]
    assert broken == 0


def test_a_line_without_its_newline_counts_as_truncated(tmp_path: Path) -> None:
    ResultStore(tmp_path).add(_result("a"))
    file = tmp_path / "results.jsonl"
    file.write_text(file.read_text().rstrip("\n"))
    assert ResultStore(tmp_path).get("a") is None


def test_another_schema_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({**_result("a"), "schema": 99}) + "\n")
    with pytest.raises(UserError, match="is of schema 99, and this firsttouch reads schema 1"):
        read_results(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"results\.jsonl cannot be read"):
        read_results(tmp_path / "results.jsonl")


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


def _claim(change: float | None = None, at_most: float | None = None) -> Published:
    return Published("m", {}, "figure", "source", change, 0.5, at_most)


@pytest.mark.parametrize(
    ("claim", "change", "expected"),
    [
        (None, -50.0, "no claim"),
        (_claim(-50), None, "no claim"),
        (_claim(-50), -50.4, "reproduced"),
        (_claim(-50), -49.4, "not reproduced"),
        (_claim(-50), -51.0, "exceeded"),
        (_claim(-50), 50.0, "not reproduced"),
        (_claim(20), 21.0, "exceeded"),
        (_claim(20), 10.0, "not reproduced"),
        (_claim(at_most=1), 0.9, "reproduced"),
        (_claim(at_most=1), -30.0, "reproduced"),
        (_claim(at_most=1), 1.1, "not reproduced"),
    ],
)
def test_verdict(claim: Published | None, change: float | None, expected: str) -> None:
    assert verdict(claim, change) == expected


def test_the_summary_sets_arms_side_by_side_and_lists_what_is_unavailable() -> None:
    results = [
        _result("a", "stock", page_faults=524288, sys_ns=100),
        _result("b", "on", page_faults=262144, sys_ns=67),
    ]
    summary = summarize(results, {"populate": load_experiment("populate")})
    faults, times = summary["rows"]
    assert faults["arms"] == {"stock": 524288, "on": 262144}
    assert faults["change_percent"] == -50
    assert faults["verdict"] == "reproduced"
    assert times["verdict"] == "not reproduced"
    assert times["published"]["figure"].startswith("system time -60 %")
    tlbi = next(row for row in summary["unavailable"] if row["metric"] == "tlbi")
    assert tlbi["reasons"] == {"stock": "no PMU", "on": "no PMU"}
    assert not any(row["metric"] == "tlbi" for row in summary["rows"])


def test_a_derived_figure_is_above_the_floor_of_the_same_arm() -> None:
    def results(by: str, faults: int, stock: int, on: int) -> list[dict[str, Any]]:
        both = (("stock", 2 * faults if by != "store" else faults, stock), ("on", faults, on))
        return [
            {
                **_result(f"{by} {arm}", arm, page_faults=count, instructions_kernel=instructions),
                "params": {"by": by, "page": "4k", "size": 400, "threads": 1},
            }
            for arm, count, instructions in both
        ]

    cells = [*results("ldadd", 100, 300_000, 202_600), *results("store", 100, 200_000, 200_000)]
    summary = summarize(cells, {"populate": load_experiment("populate")})
    (row,) = (row for row in summary["rows"] if row["metric"] == "kernel_above_floor")
    assert row["params"]["by"] == "ldadd"
    assert row["arms"] == {"stock": 1000, "on": 26}


def test_a_derived_figure_without_a_floor_is_a_quotient() -> None:
    result = _result("a", page_faults=4, instructions_kernel=10)
    result |= {"experiment": "read-fault", "params": {"size": 16}}
    summary = summarize([result], {"read-fault": load_experiment("read-fault")})
    row = summary["rows"][-1]
    assert (row["metric"], row["arms"]) == ("kernel_per_fault", {"stock": 2.5})


def test_no_derived_figure_where_its_floor_was_not_measured() -> None:
    summary = summarize(
        [_result("a", page_faults=4, instructions_kernel=10)],
        {"populate": load_experiment("populate")},
    )
    assert not any(row["metric"] == "kernel_above_floor" for row in summary["rows"])
