# SPDX-License-Identifier: GPL-2.0
"""Samples of a survey, and their medians and spreads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from firsttouch.survey.tasks import Task
from firsttouch.vm.host import Host


@dataclass(frozen=True)
class Sample:
    """One run of a task: what ftbench measured, why it is `unavailable` here, or its `error`.

    A task that repeats itself has several samples in one round. `round` counts
    from 0. Round 0 is a warm-up, because it takes memory from the allocator for
    the first time. Medians leave it out. `metrics` has the parameter ``size``, too.
    """

    task: str
    round: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    unavailable: str = ""
    error: str = ""

    @property
    def busy_ns(self) -> float:
        """The processor time in ns, user and kernel together.

        The scheduler accounts this sum exactly, without the time of other
        tasks. Most kernels divide it into user and system time by ticks.
        """
        return self.metrics["user_ns"] + self.metrics["sys_ns"]


@dataclass(frozen=True)
class Survey:
    """The tasks of a survey and their samples.

    `ftbench` is the digest of the program that ran. `interrupted` is true if the user
    ended the survey before its time.
    """

    host: Host
    tasks: tuple[Task, ...]
    samples: tuple[Sample, ...]
    ftbench: str = ""
    interrupted: bool = False

    def measured(self, task: str) -> list[Sample]:
        """Return the samples of a task with figures; the warm-up if time ran out in round 0."""
        samples = [sample for sample in self.samples if sample.task == task and sample.metrics]
        return [sample for sample in samples if sample.round] or samples

    def reason(self, task: str) -> str:
        """Return why a task has no figures."""
        for sample in self.samples:
            if sample.task == task:
                return sample.error or sample.unavailable or "nothing was measured"
        if self.interrupted:
            return "the survey was interrupted before it"
        return "there was no time for it: give a larger --seconds"


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

    @property
    def uncertainty(self) -> float:
        """The standard error of the median as a fraction of it; more samples make it smaller.

        For a normal distribution the error is 1.2533 standard deviations, and
        the middle half 1.349 standard deviations wide.
        """
        return 1.2533 / 1.349 * self.relative_spread / math.sqrt(self.samples)

    def minus(self, other: Figure) -> Figure:
        """Return the difference of two figures that were measured independently."""
        return Figure(
            self.median - other.median,
            math.hypot(self.spread, other.spread),
            min(self.samples, other.samples),
        )

    def times(self, factor: float) -> Figure:
        """Return the figure multiplied by `factor`."""
        return Figure(self.median * factor, self.spread * factor, self.samples)

    def words(self, unit: str = "", *, decimals: int | None = None) -> str:
        """Return the median with half the width of the middle half: ``281 ± 8 ms``.

        By default, a value has at least three significant digits.
        """
        if decimals is None:
            size = abs(self.median)
            decimals = 0 if size >= 100 else 1 if size >= 10 else 2
        text = f"{self.median:,.{decimals}f} ± {self.spread / 2:,.{decimals}f}"
        return f"{text} {unit}" if unit else text


def figure(values: Iterable[float]) -> Figure | None:
    """Return the figure of `values`; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    spread = 0.0
    if len(ordered) > 1:
        low, _, high = statistics.quantiles(ordered, n=4, method="inclusive")
        spread = high - low
    return Figure(statistics.median(ordered), spread, len(ordered))


def differ(a: Figure, b: Figure) -> bool:
    """Whether two medians are further apart than 5 % and than the mean of their spreads."""
    distance = abs(a.median - b.median)
    return distance > max(0.05 * min(a.median, b.median), (a.spread + b.spread) / 2)
