# SPDX-License-Identifier: GPL-2.0
"""results.jsonl: what was written is read; cut-off lines and other schemas are reported."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.lab.results import SCHEMA, Result, pack_results, read_results, write_results
from tests.support.results import make_profiled, make_region, make_result


def _results() -> list[Result]:
    stock = make_result({"page_faults": 2, "sys_ns": 1.5}, regions=[make_region()],
                        not_modelled=["dc_zva_lines"])  # fmt: skip
    cell = replace(stock.cell, arm="on", params={"cpus": 2}, layout=3)
    return [stock, replace(make_result({"page_faults": 1}, "on"), cell=cell)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    results = [*_results(), make_profiled([100, 200, 300, 400])]
    write_results(tmp_path, results)
    assert list(read_results(tmp_path)) == results
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert {line["schema"] for line in lines} == {SCHEMA}
    assert ["profile" in line["cell"] for line in lines] == [False, False, True]


def test_a_later_line_for_a_cell_replaces_an_earlier(tmp_path: Path) -> None:
    old, new = make_result({"page_faults": 2}), make_result({"page_faults": 1})
    write_results(tmp_path, [old, new])
    assert read_results(tmp_path) == (new,)


@pytest.mark.parametrize("line", ["no JSON", '{"cut": ', '{"key": "a", "cell": 1}'])
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str) -> None:
    write_results(tmp_path, _results())
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match="line 3"):
        read_results(tmp_path)


def test_what_is_packed_is_read_and_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.jsonl.xz", "two.jsonl.xz"):
        pack_results(tmp_path / name, _results())
    assert list(read_results(tmp_path / "one.jsonl.xz")) == _results()
    assert (tmp_path / "one.jsonl.xz").read_bytes() == (tmp_path / "two.jsonl.xz").read_bytes()
