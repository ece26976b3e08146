# SPDX-License-Identifier: GPL-2.0
"""Knees, spreads and footprints, from results whose every figure is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from firsttouch.analysis.cache_statistics import (
    FITTING,
    colored_caches,
    conflict_curves,
    footprints,
    knee,
    running,
    sweeps,
)
from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.machines import load_machine
from tests.support import made_results
from tests.support.made_results import Made

PLATFORM = Platform("6.12", "neoverse-n1")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = made_results.experiments(tmp_path)
    return made_results.dataset(tmp_path / "out", made_results.plan(folder), folder)


@pytest.mark.parametrize(
    ("values", "limit", "expected"),
    [
        ({1: 0.0, 2: 0.0, 3: 1.0}, 0.5, 2),
        # One disturbed point does not hide the points after it.
        ({1: 0.0, 2: 9.0, 3: 0.5, 4: 1.0}, 0.5, 3),
        ({1: 0.0, 2: 0.0}, 0.5, 2),
        ({1: 1.0}, 0.5, None),
        ({}, 0.5, None),
    ],
)
def test_the_knee_is_the_largest_number_within_the_limit(
    values: Mapping[int, float], limit: float, expected: int | None
) -> None:
    assert knee(values, limit) == expected


def test_a_curve_has_misses_per_read_and_its_knee(dataset: Dataset) -> None:
    (curve,) = conflict_curves(running(dataset, PLATFORM, "set-conflict"))
    assert curve.rest == {"rounds": 1000, "stride": 16384}
    assert curve.arms["stock"][4] == 0.001 and curve.arms["stock"][5] == 1
    assert knee(curve.arms["stock"], FITTING) == 4


def test_curves_of_different_strides_are_kept_apart(tmp_path: Path) -> None:
    results = [
        Made("set-conflict", {"n": n, "stride": stride, "rounds": 10}, "stock", {"l1d_misses": n})
        for stride in (4096, 16384)
        for n in (1, 2)
    ]
    dataset = made_results.dataset(tmp_path, results)
    curves = conflict_curves(running(dataset, PLATFORM, "set-conflict"))
    assert [curve.rest["stride"] for curve in curves] == [4096, 16384]


def test_a_sweep_is_per_round_and_in_order_of_colour(dataset: Dataset) -> None:
    cases = running(dataset, PLATFORM, "zero-conflict")
    of_l2, of_l1d = sweeps(list(reversed(cases)))
    assert (of_l2.level, of_l1d.level) == ("l2", "l1d")
    series = of_l2.series("l2_misses")
    assert list(series["stock"].items()) == [(0, 0.009), (1, 0.009), (2, 9), (3, 0.009)]
    assert list(series["color"].items()) == [(color, 2.25) for color in range(4)]
    spread = of_l2.spreads("l2_misses")["stock"]
    assert (spread.best, spread.worst, spread.whole) == (0.009, 9, True)
    assert spread.mean == pytest.approx(2.25675)


@pytest.mark.parametrize("left_out", [0, 2, 3])
def test_a_spread_that_lacks_a_colour_is_not_whole(tmp_path: Path, left_out: int) -> None:
    results = [
        Made(
            "zero-conflict", {"level": "l2", "hot_color": color, "rounds": 10}, arm,
            {"l2_misses": 10} if (arm, color) != ("color", left_out) else {},
        )
        for color in range(4)
        for arm in ("stock", "color")
    ]  # fmt: skip
    dataset = made_results.dataset(tmp_path, results)
    (sweep,) = sweeps(running(dataset, PLATFORM, "zero-conflict"))
    spreads = sweep.spreads("l2_misses")
    assert (spreads["stock"].whole, spreads["color"].whole) == (True, False)
    assert (spreads["color"].measured, spreads["color"].colors) == (3, 4)


def test_footprints_are_per_round(dataset: Dataset) -> None:
    arms_of = {
        (scan.stride, scan.working_set, scan.metric): scan.arms
        for scan in footprints(running(dataset, PLATFORM, "zero-scan"))
    }
    assert arms_of[(64, 65536, "l1d_misses")] == {"stock": 16_400, "on": 65_600}
    assert arms_of[(4096, 0, "l2_misses")] == {"stock": 0, "on": 0.6}
    assert len(arms_of) == 8


def test_a_machine_stands_in_the_table_of_caches_if_all_was_measured(tmp_path: Path) -> None:
    l1d = load_machine("neoverse-n1").cpus[0].l1d
    scan = {"stride": 64, "working_set": l1d.size, "rounds": 10}
    results = [
        Made("zero-conflict", {"level": "l1d", "hot_color": color, "rounds": 10}, arm,
             {"l1d_misses": misses * (color + 1)})
        for arm, misses in (("stock", 40), ("color", 20))
        for color in range(4)
    ]  # fmt: skip
    assert colored_caches(made_results.dataset(tmp_path / "a", results)) == []
    results += [
        Made("zero-scan", scan, arm, {"l1d_misses": misses})
        for arm, misses in (("stock", 100), ("color", 300))
    ]
    (cache,) = colored_caches(made_results.dataset(tmp_path / "b", results))
    assert (cache.level, cache.colors, cache.beside) == ("l1d", 4, (10, 30))
    assert (cache.stock.worst, cache.colored.worst) == (16, 8)
