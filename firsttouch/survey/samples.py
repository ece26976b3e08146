# SPDX-License-Identifier: GPL-2.0
"""Samples of a survey: every line that ftbench printed, and their medians and spreads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from firsttouch.errors import GuestError
from firsttouch.survey.host import Host
from firsttouch.survey.tasks import Task
from firsttouch.tables import Json, Table

_NO_TIME = "there was no time for it: give a larger --seconds"


@dataclass(frozen=True)
class Line:
    """One line of ftbench: what it measured, and why the rest is unavailable.

    `printed` is the whole line, with keys that no figure uses.
    """

    params: Mapping[str, str | int]
    metrics: Mapping[str, float]
    unavailable: Mapping[str, str]
    printed: Mapping[str, Json]

    def number(self, param: str) -> int:
        """Return the value of a parameter; GuestError if it is not a number."""
        value = self.params.get(param)
        if not isinstance(value, int):
            raise GuestError(f"ftbench printed {value!r} for {param}: it must be a number.")
        return value

    @property
    def busy_ns(self) -> float:
        """The processor time in ns, user and kernel together.

        The scheduler accounts this sum exactly, without the time of other
        tasks. Most kernels divide it into user and system time by ticks.
        """
        return self.metrics["user_ns"] + self.metrics["sys_ns"]


def read_line(printed: Mapping[str, Json]) -> Line:
    """Return a line of ftbench; UserError if it has another form."""
    table = Table("a line of ftbench", printed)
    if not table.has("metrics"):
        raise table.error("metrics", "is missing.")
    return Line(
        table.table("params").scalars(),
        table.table("metrics").numbers(),
        table.table("unavailable").values_of(str),
        printed,
    )


@dataclass(frozen=True)
class Sample:
    """One run of a task: what ftbench printed, or its error.

    A task that repeats itself has several samples in one round. `round`
    counts from 0. Round 0 is a warm-up, because it takes memory from the
    allocator for the first time. Medians leave it out.
    """

    task: str
    round: int
    line: Line | None
    error: str | None = None


@dataclass(frozen=True)
class SurveyedGuest:
    """The guest of the laboratory that was surveyed instead of the host."""

    arm: str
    release: str
    machine: str
    boot: str


@dataclass(frozen=True)
class Survey:
    """The tasks of a survey and their samples; `guest` is None for a survey of the host.

    `seconds` is the requested time, None for a guest. `interrupted` is true if
    the user ended the survey before that time.
    """

    host: Host
    tasks: tuple[Task, ...]
    samples: tuple[Sample, ...]
    guest: SurveyedGuest | None = None
    seconds: int | None = None
    interrupted: bool = False

    @property
    def virtual_time(self) -> bool:
        """Whether the clock counts instructions, 1 ns each, as in a guest."""
        return self.guest is not None


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
    """Tell whether two medians are further apart than 5 % and than the mean of their spreads."""
    distance = abs(a.median - b.median)
    return distance > max(0.05 * min(a.median, b.median), (a.spread + b.spread) / 2)


class Samples:
    """All samples of a survey, by task; `absent` is why a task that was not run has none."""

    def __init__(self, samples: Iterable[Sample], absent: str = _NO_TIME) -> None:
        self.all = list(samples)
        self._absent = absent
        self._measured: dict[str, list[Line]] = {}
        self._reasons: dict[str, str] = {}
        self._tasks = {sample.task for sample in self.all}
        warm = {s.task for s in self.all if s.round > 0 and s.line and s.line.metrics}
        for sample in self.all:
            if sample.error:
                self._reasons.setdefault(sample.task, sample.error)
            elif sample.line is not None and not sample.line.metrics:
                reasons = sample.line.unavailable.values()
                self._reasons.setdefault(sample.task, next(iter(reasons), "nothing was measured"))
            elif sample.line is not None and (sample.round > 0 or sample.task not in warm):
                # If time ran out in round 0, use the warm-up.
                self._measured.setdefault(sample.task, []).append(sample.line)

    def lines(self, task: str) -> list[Line]:
        """Return the lines that a task measured, in order."""
        return self._measured.get(task, [])

    def reason(self, task: str) -> str:
        """Return why a task has no figures."""
        return self._reasons.get(task, self._absent)

    def failures(self) -> list[Sample]:
        """Return the runs that crashed, as opposed to unsupported here."""
        return [sample for sample in self.all if sample.error]

    def has(self, task: str) -> bool:
        """Tell whether a task ran at all."""
        return task in self._tasks

    def figure(self, task: str, value: Callable[[Line], float]) -> Figure | None:
        """Return the figure of `value` over the lines of a task."""
        return self.figures([task], value)

    def figures(self, tasks: Iterable[str], value: Callable[[Line], float]) -> Figure | None:
        """Return the figure of `value` over the lines of several tasks together."""
        return figure(value(line) for task in tasks for line in self.lines(task))

    def least(self, task: str, value: Callable[[Line], float]) -> float | None:
        """Return the smallest `value` of a task, which has the least noise."""
        return min((value(line) for line in self.lines(task)), default=None)
