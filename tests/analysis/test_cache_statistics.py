# SPDX-License-Identifier: GPL-2.0
"""Statistics of the cache experiments: the knee, and the spread over the hot lines' colours."""

from __future__ import annotations

from firsttouch.analysis.cache_statistics import (
    Spread,
    colored_caches,
    conflict_curves,
    footprints,
    knee,
    sweeps,
)
from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.collection import load_known
from firsttouch.catalog.experiments import Value
from firsttouch.lab.results import Result
from tests.support.results import make_result


def _dataset(*results: Result) -> Dataset:
    names = {result.cell.experiment for result in results}
    return make_dataset(results, load_known(names, {"thunderx2"}, {"stock", "color", "color-l2"}))


def _result(
    experiment: str, metric: str, count: int, arm: str = "stock", **params: Value
) -> Result:
    return make_result({metric: count}, arm, experiment=experiment, params=params,
                       machine="thunderx2")  # fmt: skip


def test_knee_is_the_last_number_of_lines_that_stay() -> None:
    misses = {7: 7, 8: 8, 9: 9000, 10: 10000}
    dataset = _dataset(*(
        _result("set-conflict", "l1d_misses", count, n=n, rounds=1000, stride=4096)
        for n, count in misses.items()
    ))  # fmt: skip
    (curve,) = conflict_curves(dataset.cases)
    assert curve.stride == 4096
    assert curve.arms["stock"][9] == 1.0
    assert knee(curve.arms["stock"], 0.001) == 8
    assert knee({1: 0.5}, 0.001) is None


def test_spread_is_over_the_colors() -> None:
    dataset = _dataset(*(
        _result("zero-conflict", "l2_misses", n * 100, level="l2", hot_color=n, rounds=100)
        for n in range(4)
    ))  # fmt: skip
    (sweep,) = sweeps(dataset.cases)
    assert sweep.spreads("l2_misses")["stock"] == Spread(0, 1.5, 3, 4, 4)
    assert sweep.spreads("l2_misses")["stock"].whole


def test_a_scan_has_its_misses_per_round() -> None:
    dataset = _dataset(
        _result("zero-scan", "l1d_misses", 55, stride=64, working_set=32768, rounds=10)
    )
    (found,) = footprints(dataset.cases)
    assert (found.stride, found.working_set, found.metric) == (64, 32768, "l1d_misses")
    assert found.arms == {"stock": 5.5}


def test_the_catalogue_has_a_line_for_each_level() -> None:
    results = []
    for level, arm, size in (("l1d", "color", 32768), ("l2", "color-l2", 262144)):
        for name, count in (("stock", 900), (arm, 100)):
            metric = f"{level}_misses"
            for color in range(1 if level == "l1d" else 8):
                results.append(_result("zero-conflict", metric, count, name, level=level,
                                       hot_color=color, rounds=100))  # fmt: skip
            results.append(_result("zero-scan", metric, count, name, stride=64, working_set=size,
                                   rounds=100))  # fmt: skip
    lines = colored_caches(_dataset(*results))
    assert sorted((line.level, line.colors) for line in lines) == [("l1d", 1), ("l2", 8)]
    for line in lines:
        assert line.platform.machine == "thunderx2"
        assert (line.stock.worst, line.colored.worst) == (9, 1)
        assert line.beside == (9, 1)
