# SPDX-License-Identifier: GPL-2.0
"""The two arms whose change is reported: any pair has one, in any order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.places import EXPERIMENTS
from tests.support import made_results


@pytest.mark.parametrize(
    ("arms", "pair"),
    [
        (["stock", "on"], ("stock", "on")),
        (["on", "stock", "off"], ("stock", "on")),
        (["stock", "color"], ("stock", "color")),
        (["rmw", "stock"], ("stock", "rmw")),
        (["rmw", "color"], ("color", "rmw")),
        (["on", "off"], ("off", "on")),
        (["on"], None),
        (["stock"], None),
    ],
)
def test_any_two_arms_have_a_change(
    tmp_path: Path, arms: list[str], pair: tuple[str, str] | None
) -> None:
    (made, *_) = made_results.plan(EXPERIMENTS, ["populate"], by="ldadd", page="4k")
    results = [replace(made, arm=arm, metrics={"page_faults": 100 + 10 * len(arm)}) for arm in arms]
    dataset = made_results.dataset(tmp_path, results)
    (case,) = dataset.cases
    assert case.pair() == pair
    (row,) = (row for row in dataset.rows if row.metric == "page_faults")
    if pair is None:
        assert row.change_percent is None
    else:
        base, other = (row.arms[arm] for arm in pair)
        assert row.change_percent == pytest.approx(100 * (other - base) / base, abs=1e-3)
    # The published figure is about stock and on only.
    assert (row.verdict == "no claim") == (pair != ("stock", "on"))
