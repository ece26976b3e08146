# SPDX-License-Identifier: GPL-2.0
"""Samples: every line that every task printed, and their median and spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """One run of a task: what ftbench printed, or why it failed.

    A task that repeats itself has several samples of one round. `round`
    counts from 0; round 0 warms up (its memory comes from the
    allocator for the first time) and stays out of medians.
    """

    task: str
    round: int
    line: Line | None
    error: str | None = None


@dataclass(frozen=True)
class Figure:
    """The median of `samples` values, and the width of their middle half."""

    median: float
    spread: float
    samples: int

    @property
    def relative_spread(self) -> float:
        """The spread as a fraction of the median; 0 for a median of 0."""
        return self.spread / self.median if self.median else 0.0


def figure(values: Iterable[float]) -> Figure | None:
    """Return the figure that `values` come to; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    spread = 0.0
    if len(ordered) > 1:
        low, _, high = statistics.quantiles(ordered, n=4, method="inclusive")
        spread = high - low
    return Figure(statistics.median(ordered), spread, len(ordered))


def differ(one: Figure, other: Figure) -> bool:
    """Tell whether two figures are further apart than 5 % and than both spreads allow."""
    distance = abs(one.median - other.median)
    return distance > max(0.05 * min(one.median, other.median), (one.spread + other.spread) / 2)


def busy_ns(line: Line) -> float:
    """Return the processor time of a line in ns, user and kernel together.

    The scheduler accounts their sum exactly, and not what others ran
    meanwhile; how it is split between the two most kernels guess by the tick.
    """
    return float(line["metrics"]["user_ns"]) + float(line["metrics"]["sys_ns"])


class Samples:
    """All samples of a survey, by task."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.all = list(samples)
        self._measured: dict[str, list[Line]] = {}
        self._reasons: dict[str, str] = {}
        self._tasks = {sample.task for sample in self.all}
        warm = {s.task for s in self.all if s.round > 0 and s.line and s.line["metrics"]}
        for sample in self.all:
            if sample.error:
                self._reasons.setdefault(sample.task, sample.error)
            elif sample.line is not None and not sample.line["metrics"]:
                reasons = sample.line["unavailable"].values()
                self._reasons.setdefault(sample.task, next(iter(reasons), "nothing was measured"))
            elif sample.line is not None and (sample.round > 0 or sample.task not in warm):
                # Where time was short the warm-up is all there is.
                self._measured.setdefault(sample.task, []).append(sample.line)

    def lines(self, task: str) -> list[Line]:
        """Return what a task measured, in order."""
        return self._measured.get(task, [])

    def reason(self, task: str) -> str:
        """Return why a task has no figures."""
        return self._reasons.get(task, "there was no time for it: give more by --seconds")

    def failures(self) -> list[Sample]:
        """Return the runs that failed: no machine's want, but a fault."""
        return [sample for sample in self.all if sample.error]

    def has(self, task: str) -> bool:
        """Tell whether a task was run at all."""
        return task in self._tasks

    def figure(self, task: str, value: Callable[[Line], float]) -> Figure | None:
        """Return the figure of `value` over the lines of a task."""
        return self.figures([task], value)

    def figures(self, tasks: Iterable[str], value: Callable[[Line], float]) -> Figure | None:
        """Return the figure of `value` over the lines of several tasks together."""
        return figure(value(line) for task in tasks for line in self.lines(task))

    def least(self, task: str, value: Callable[[Line], float]) -> float | None:
        """Return the least `value` of a task: the one that nothing disturbed."""
        return min((value(line) for line in self.lines(task)), default=None)
