# SPDX-License-Identifier: GPL-2.0
"""Changes of times over boots, on simulated machines whose truth is known."""

import math
import random
from collections.abc import Sequence
from statistics import median

import pytest

from firsttouch.analysis.figures import Change, Figure

_RUNS = 1000
_NOISE = 0.02


def _change(base: Sequence[float], other: Sequence[float]) -> Change | None:
    return Figure("ns", tuple(base)).change(Figure("ns", tuple(other)))


def test_counts_are_exact_and_times_are_not() -> None:
    assert Figure("faults", (2048,)).differs(Figure("faults", (2049,)))
    assert not Figure("ns", (2048,)).differs(Figure("ns", (2049,)))
    assert Figure("ns", (100, 101, 102)).differs(Figure("ns", (110, 111, 112)))
    assert not Figure("ns", (100, 101, 140)).differs(Figure("ns", (110, 111, 112)))


def _run(
    chance: random.Random, boots: int, by: float, machine: str = "", noise: float = _NOISE
) -> Change:
    """Return what `boots` rounds on a kind of machine show of a change `by`, a fraction."""
    times: tuple[list[float], list[float]] = ([], [])
    for place in range(2 * boots):
        arm = (place // 2 + place) % 2
        level = chance.gauss(0, noise) + (math.log1p(by) if arm else 0)
        if machine == "outliers" and chance.random() < 0.1:
            level += abs(chance.gauss(0, 0.5))
        if machine == "bimodal" and chance.random() < 0.4:
            level += 0.15
        if machine == "drift":
            level += 0.3 * place / (2 * boots)
        if machine == "throttles" and place >= boots:
            level += math.log(1.4)
        times[arm].append(1e6 * math.exp(level))
    change = _change(*times)
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("machine", "boots"),
    [("", 8), *((machine, 12) for machine in ("", "drift", "outliers", "bimodal", "throttles"))],
)
def test_intervals_cover_the_truth(machine: str, boots: int) -> None:
    chance = random.Random(f"{machine} {boots}")
    changes = [_run(chance, boots, -0.1, machine) for _ in range(_RUNS)]
    covered = sum(change.low <= -10 <= change.high for change in changes) / _RUNS
    assert 0.93 <= covered <= 0.97
    assert median(change.percent for change in changes) == pytest.approx(-10, abs=0.2)


def test_stock_against_stock_shows_a_difference_in_one_run_of_twenty() -> None:
    chance = random.Random(2)
    shown = sum(_run(chance, 10, 0).shown for _ in range(_RUNS)) / _RUNS
    assert 0.03 <= shown <= 0.07


def test_too_few_boots_or_a_time_of_zero_show_nothing() -> None:
    assert _change([1.0] * 5, [2.0] * 5) is None
    assert _change([1.0] * 6, [0.0] + [2.0] * 5) is None


def test_equal_times_are_no_difference() -> None:
    change = _change([5.0] * 8, [5.0] * 8)
    assert change == Change(0.0, 0.0, 0.0)
    assert not change.shown
