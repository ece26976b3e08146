# SPDX-License-Identifier: GPL-2.0
"""A Figure is a measured value with its samples: it alone knows what a change is, and noise.

A count has one sample and is exact, but a kernel whose code only moved runs the same path a moment
earlier or later: ticks, and what they wake, fall elsewhere, and cache misses depend on addresses.
`noise_of` is how much that is. Times have a sample for each boot of a guest (`change`) or for each
run of a program on the host (`differs`).

A boot is the unit, not an iteration: iterations of one boot share its layout of memory. Both arms
boot in each round, in turn forwards and backwards, so that a drift of the machine falls on both:
the difference of the logarithms of a round is symmetric about the change. Wilcoxon's signed ranks
need no more: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd edition, 3.1-3.3.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, TypeAlias

from firsttouch.catalog.arms import BASE
from firsttouch.errors import UserError
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Result, read_results
from firsttouch.tables import Fields
from firsttouch.vm.host import Host

# With fewer boots no interval has this confidence: 2 / 2 ** 6 = 3 %.
LEAST_BOOTS = 6
CONFIDENCE = 0.95
# What a few ticks more or less make of a cell. Measured on 6.12: one has one DSB, one ISB and
# 2,300 instructions; with what it wakes, 17,900, 5 DSB and 25 ISB. A small cell has no time for
# ticks: of its instructions only a part.
_TICKS: Mapping[str, float] = {"instructions_kernel": 20_000, "dsb": 6, "isb": 30}
_TICKS_PART = 0.01
# What addresses make of the misses of a cell, in misses and as a part of them. Measured on 6.12 by
# munmap and a patch of other code: up to 2,645 of 8,972 L1D misses and 384 of 1,004 L2 misses.
_MOVED, _MOVED_PART = 1_000, 1 / 3
# An access that QEMU hides may be a miss that was not counted and, with LRU, cause another.
_PER_UNSEEN = 2


def change_percent(base: float | None, other: float | None) -> float | None:
    """Return by how many per cent `other` differs from `base`; None if that is undefined."""
    if base is None or other is None:
        return None
    if base == 0:
        return 0.0 if other == 0 else None
    return round(100 * (other - base) / base, 4)


def noise_of(metric: str, value: float, apart: float, unseen: int = 0) -> float:
    """Return by how much a count of a cell changes without cause.

    `apart` is by how much it did so as stock ran again. `unseen` is the number of accesses that
    QEMU hid from the modelled caches.
    """
    noise = abs(apart)
    if metric.endswith("_misses"):
        return noise + _MOVED + _MOVED_PART * value + _PER_UNSEEN * unseen
    ticks = _TICKS.get(metric, 0.0)
    return noise + (min(ticks, _TICKS_PART * value) if metric == "instructions_kernel" else ticks)


@dataclass(frozen=True)
class Change:
    """The median change of boots of an arm against another, in per cent: an interval of 95 %."""

    percent: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        return not self.low <= 0 <= self.high


class Middle(NamedTuple):
    """A median, and the width of the middle half of the samples."""

    median: float
    spread: float = 0.0

    def minus(self, other: Middle) -> Middle:
        return Middle(self.median - other.median, math.hypot(self.spread, other.spread))

    def times(self, factor: float) -> Middle:
        return Middle(self.median * factor, self.spread * factor)

    def words(self, unit: str = "", *, decimals: int | None = None) -> str:
        """Return the median with half the width of the middle half: ``281 ± 8 ms``.

        By default, a value has at least three significant digits.
        """
        if decimals is None:
            size = abs(self.median)
            decimals = 0 if size >= 100 else 1 if size >= 10 else 2
        text = f"{self.median:,.{decimals}f} ± {self.spread / 2:,.{decimals}f}"
        return f"{text} {unit}" if unit else text


@dataclass(frozen=True)
class Figure:
    """A value in `unit`, at least one sample of it: those of a time in their order.

    `noise` is by how much a count changes without cause.
    """

    unit: str
    samples: tuple[float, ...]
    noise: float = 0.0

    @functools.cached_property
    def middle(self) -> Middle:
        if len(self.samples) == 1:
            return Middle(self.samples[0])
        low, _, high = quantiles(self.samples, n=4, method="inclusive")
        return Middle(median(self.samples), high - low)

    @property
    def median(self) -> float:
        return self.middle.median

    @property
    def relative_spread(self) -> float:
        """The width of the middle half as a fraction of the median; 0 for a median of 0."""
        return self.middle.spread / self.median if self.median else 0.0

    @property
    def uncertainty(self) -> float:
        """About the standard error of the median, as a fraction of it."""
        return self.relative_spread / math.sqrt(len(self.samples))

    def differs(self, other: Figure) -> bool:
        """Whether two figures differ by more than noise, if their samples are not of pairs.

        Counts differ by more than the noise of this one; medians of times if they are further
        apart than 5 % and than the mean of their spreads.
        """
        distance = abs(self.median - other.median)
        if self.unit != "ns":
            return distance > self.noise
        spread = (self.middle.spread + other.middle.spread) / 2
        return distance > max(0.05 * min(self.median, other.median), spread)

    def change(self, other: Figure) -> Change | None:
        """Return the change from this time to `other`, whose samples are of the same rounds.

        Returns None for fewer than `LEAST_BOOTS` rounds, or a time that is not positive.
        """
        base, after = self.samples, other.samples
        if not LEAST_BOOTS <= len(base) == len(after) or min(*base, *after) <= 0:
            return None
        befores, afters = [math.log(time) for time in base], [math.log(time) for time in after]
        steps = [later - earlier for earlier, later in zip(befores, afters, strict=True)]
        averages = _averages(steps)
        cut = _cut(len(steps))
        middle = median(averages)
        low, high = averages[cut - 1], averages[-cut]
        percent, least, most = (100 * math.expm1(at) for at in (middle, low, high))
        return Change(percent, least, most)


def _averages(steps: Sequence[float]) -> list[float]:
    """Return Walsh's averages, in order: their median estimates the centre of a symmetry."""
    pairs = itertools.combinations_with_replacement(steps, 2)
    return sorted((first + second) / 2 for first, second in pairs)


@functools.cache
def _cut(number: int) -> int:
    """Return which average from either end bounds the interval of `number` steps.

    It is the largest with at least the confidence: exact, from the distribution
    of the sum of signed ranks.
    """
    ways = [1]
    for rank in range(1, number + 1):
        longer = ways + [0] * rank
        for place, count in enumerate(ways):
            longer[place + rank] += count
        ways = longer
    tail, allowed = 0, (1 - CONFIDENCE) / 2 * 2**number
    for place, count in enumerate(ways):
        tail += count
        if tail > allowed:
            return max(place, 1)
    raise AssertionError("half of all sums are more than a tail")


ELAPSED = "elapsed_ns"
METRICS = (ELAPSED, "sys_ns", "cycles_kernel", "instructions_kernel")


@dataclass(frozen=True)
class TimedRow:
    """A metric of a cell: its `results` by arm, the figure of each, the changes against stock.

    `changes` has no arm with too few boots, or with a time of 0.
    """

    results: Mapping[str, Result]
    metric: str
    figures: Mapping[str, Figure]
    changes: Mapping[str, Change]
    missing: str

    @property
    def cell(self) -> Cell:
        return next(iter(self.results.values())).cell

    @property
    def medians(self) -> dict[str, float]:
        return {arm: figure.median for arm, figure in self.figures.items()}


# Results of `lab --time`: the cells of stock, then the same of each other arm.
Times: TypeAlias = tuple[Result, ...]


def read_times(place: Path) -> Times:
    """Return the times in a directory or file of results; UserError if it has none, or a part."""
    times = read_results(place, "kvm")
    cells = {len(of_arm) for of_arm in results_by_arm(times).values()}
    boots = {len(result.boots) for result in times}
    if (len(cells), len(boots)) != (1, 1) or not all(r.provenance.host for r in times):
        raise UserError(
            f"{place} has no times, or not all of a run: give a directory that `firsttouch lab "
            "--time --out` has filled."
        )
    return times


def results_by_arm(times: Times) -> dict[str, list[Result]]:
    groups = itertools.groupby(times, lambda result: result.cell.arm)
    return {arm: list(of_arm) for arm, of_arm in groups}


def host_of(times: Times) -> Host:
    host = times[0].provenance.host
    assert host is not None
    return host


def timed_rows(times: Times) -> list[TimedRow]:
    arms = results_by_arm(times)
    return [
        _row(dict(zip(arms, results, strict=True)), metric)
        for results in zip(*arms.values(), strict=True)
        for metric in METRICS
    ]


def _row(results: Mapping[str, Result], metric: str) -> TimedRow:
    found = {arm: figure_of(result, metric) for arm, result in results.items()}
    figures = {arm: figure for arm, (figure, _) in found.items() if figure}
    missing = next((why for _, why in found.values() if why), "")
    base = figures.get(BASE)
    changes = {
        arm: change
        for arm, figure in figures.items()
        if base and arm != BASE and (change := base.change(figure))
    }
    return TimedRow(results, metric, figures, changes, missing)


def figure_of(result: Result, metric: str) -> tuple[Figure | None, str]:
    """Return the figure of a cell, with a sample for each boot; for the first without, why.

    A sample is the median of a boot's repetitions without the first, which warms up.
    """
    rounds: dict[int, list[float]] = {boot.round: [] for boot in result.boots}
    reasons: dict[int, str] = {}
    for each in result.lines:
        line = Fields("a line of ftbench", each)
        number, metrics = line.take("round", int), line.table("metrics").values_of(float)
        if metric in metrics:
            rounds[number].append(metrics[metric])
        reasons[number] = reasons.get(number) or line.table("unavailable").values_of(str).get(
            metric, ""
        )
    samples = tuple(median(values[1:] or values) for values in rounds.values() if values)
    lacking = [number for number, values in rounds.items() if not values]
    why = (reasons.get(lacking[0]) or "it was not measured") if lacking else ""
    return Figure("ns", samples) if samples else None, why
