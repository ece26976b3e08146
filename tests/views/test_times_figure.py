# SPDX-License-Identifier: GPL-2.0
"""The times of `lab --time` as a figure of the report."""

from __future__ import annotations

from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.lab.times import Boot, Host, Sample, TimedArm, TimedCell, Times
from firsttouch.views.html.page import render
from firsttouch.views.html.times_figure import times_figure
from firsttouch.vm.kvm import Condition

_CATALOG = load_catalog((), (), arm_names())


def test_times_are_drawn() -> None:
    quiet = Condition(0.1, 2_400_000, "performance", 0)
    boots = tuple(
        Boot(number, arm, "0x1", 4.0, quiet, (Sample(0, {"elapsed_ns": time + number}, {}),))
        for number in range(1, 9)
        for arm, time in (("stock", 2e6), ("again", 2e6), ("on", 1e6))
    )
    times = Times(
        "plan", "6.12", "6.12.1", "QEMU", Host("Cortex-A76", "6.6", ("3",), quiet),
        tuple(TimedArm(name, "a" * 64, "") for name in ("stock", "again", "on")),
        (TimedCell("populate", {"by": "ldadd", "size": 4096}, "populate"),),
        boots,
    )  # fmt: skip
    figure = times_figure("this run", times, _CATALOG)
    assert "on against stock: 1 of 1 cells take less time" in figure.caption
    assert figure.table
    assert figure.table.rows[0] == (
        "populate 4 KiB", "+0.0 % (+0.0 to +0.0) none", "-50.0 % (-50.0 to -50.0)",
    )  # fmt: skip
    dataset = make_dataset((), _CATALOG)
    page = render(dataset, [figure])
    assert 'id="hardware"' in page and "Times on Cortex-A76" in page
    assert 'id="hardware"' not in render(dataset)
