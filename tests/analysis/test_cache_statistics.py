# SPDX-License-Identifier: GPL-2.0
"""Spreads, and what colours change, from results whose every figure is known."""

from pathlib import Path

import pytest

from firsttouch.analysis.cache_statistics import (
    colored_caches,
    running,
    sweeps,
)
from firsttouch.analysis.measurement import Platform
from firsttouch.catalog.machines import load_machine
from tests.support import made_results
from tests.support.made_results import Made

PLATFORM = Platform("6.12", "neoverse-n1")


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
