# SPDX-License-Identifier: GPL-2.0
"""Figures of times on real hardware: each cell's time, and its change on each arm.

A boot's sample is the median of its repetitions without the first, which warms up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from firsttouch.analysis.figures import Change, Figure
from firsttouch.catalog.arms import BASE
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Result, Times, results_by_arm
from firsttouch.tables import Fields

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
    """Return the figure of a cell, with a sample for each boot; for the first without, why."""
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
