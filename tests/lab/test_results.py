# SPDX-License-Identifier: GPL-2.0
"""results.jsonl, as it is written and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firsttouch.errors import UserError
from firsttouch.lab.results import ResultStore, read_results


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
