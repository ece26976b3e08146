# SPDX-License-Identifier: GPL-2.0
"""Two result sets side by side: what may be compared, and what is then said."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import EXPERIMENTS
from firsttouch.views.comparison import Comparison, compare
from tests.support import made_results
from tests.support.made_results import Made

_OTHER = "9" * 64


def _results() -> list[Made]:
    plan = made_results.plan(EXPERIMENTS, ["populate"], page="4k")
    made = [each for each in plan if each.params["by"] in ("store", "ldadd")]
    return [replace(each, setting=setting) for setting in ("", "kpti-off") for each in made]


def _compared(tmp_path: Path, a: Sequence[Made], b: Sequence[Made]) -> Comparison:
    return compare(made_results.dataset(tmp_path / "a", a), made_results.dataset(tmp_path / "b", b))


def test_the_same_cells_with_other_counts_contradict_each_other(tmp_path: Path) -> None:
    other = [
        replace(made, metrics={**made.metrics, "page_faults": 1}) if made.arm == "on" else made
        for made in _results()
    ]
    same = _compared(tmp_path / "same", _results(), _results())
    assert not same.differences and not same.contradictory
    assert "all 24 figures are equal" in same.sentences[0]
    compared = _compared(tmp_path, _results(), other)
    assert "4 of 24 figures differ: these runs were not identical" in compared.sentences[0]
    assert compared.contradictory
    assert {line.names[1:] for line in compared.lines if line.changed} == {("on", "page_faults")}


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"machine": "cortex-a72", "digests": {"device tree": _OTHER}}, "machine"),
        ({"digests": {"kernel image": _OTHER}}, "kernel image"),
        # What explains another difference is reported instead of it.
        ({"digests": {"kernel source": _OTHER, "kernel image": "8" * 64}}, "kernel source"),
        ({"digests": {"ftbench": _OTHER, "initial RAM disk": "8" * 64}}, "ftbench"),
        ({"digests": {"disk": _OTHER}}, "disk"),
        ({"qemu": "10.0.2"}, "QEMU"),
        ({"commands": ["/x"]}, "guest's commands"),
    ],
)
def test_a_difference_is_named(tmp_path: Path, changed: dict[str, Any], differs: str) -> None:
    other = [replace(made, **changed) for made in _results()]
    compared = _compared(tmp_path, _results(), other)
    # A difference of the kernels is one for each arm.
    assert {difference.what for difference in compared.differences} == {differs}


def test_cells_of_one_side_only_are_counted_and_left_out(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results(), _results()[:1])
    same, only = compared.sentences
    assert "1 cell made" in same and only == "7 cells are in A only and not compared."
