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
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.experiments import Published
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Result, Times, results_by_arm
from firsttouch.tables import Fields

NOT_MEASURED = "not measured"
ELAPSED, SYSTEM, RETIRED = "elapsed_ns", "sys_ns", "instructions_kernel"
METRICS = (ELAPSED, SYSTEM, "cycles_kernel", RETIRED)
NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class TimedRow:
    """A metric of a cell: its `results` by arm, the figure of each, the changes against stock.

    `changes` has no arm with too few boots, or with a time of 0. `published` is
    the figure about it, and `verdict` what the arm of `compare` says of that.
    """

    results: Mapping[str, Result]
    metric: str
    figures: Mapping[str, Figure]
    changes: Mapping[str, Change]
    missing: str
    published: Published | None = None
    verdict: str = ""

    @property
    def cell(self) -> Cell:
        return next(iter(self.results.values())).cell

    @property
    def command(self) -> str:
        """What the guest ran, which is the same on each arm."""
        return next(iter(self.results.values())).provenance.commands[0]

    @property
    def medians(self) -> dict[str, float]:
        return {arm: figure.median for arm, figure in self.figures.items()}


def timed_rows(times: Times, catalog: Catalog) -> list[TimedRow]:
    """Return a row for each cell and metric, in the order of the run."""
    arms = results_by_arm(times)
    return [
        _row(dict(zip(arms, results, strict=True)), catalog, metric)
        for results in zip(*arms.values(), strict=True)
        for metric in METRICS
    ]


def _row(results: Mapping[str, Result], catalog: Catalog, metric: str) -> TimedRow:
    found = {arm: figure_of(result, metric) for arm, result in results.items()}
    figures = {arm: figure for arm, (figure, _) in found.items() if figure}
    missing = next((why for _, why in found.values() if why), "")
    base = figures.get(BASE)
    changes = {
        arm: change
        for arm, figure in figures.items()
        if base and arm != BASE and (change := base.change(figure))
    }
    row = TimedRow(results, metric, figures, changes, missing)
    experiment = catalog.experiments.get(row.cell.experiment)
    if metric != SYSTEM or not experiment or experiment.compare not in results:
        return row
    for published in experiment.published:
        if published.time and published.where.items() <= row.cell.params.items():
            verdict = time_verdict(published, changes.get(experiment.compare))
            return TimedRow(results, metric, figures, changes, missing, published, verdict)
    return row


def figure_of(result: Result, metric: str) -> tuple[Figure | None, str]:
    """Return the figure of a cell, with a sample for each boot; for the first without, why."""
    rounds: dict[int, list[float]] = {boot.round: [] for boot in result.boots}
    reasons: dict[int, str] = {}
    for each in result.lines:
        line = Fields("a line of ftbench", each)
        number, metrics = line.take("round", int), line.table("metrics").numbers()
        if metric in metrics:
            rounds[number].append(metrics[metric])
        reasons[number] = reasons.get(number) or line.table("unavailable").values_of(str).get(
            metric, ""
        )
    samples = tuple(median(values[1:] or values) for values in rounds.values() if values)
    lacking = [number for number, values in rounds.items() if not values]
    why = (reasons.get(lacking[0]) or "it was not measured") if lacking else ""
    return Figure("ns", samples) if samples else None, why


def time_verdict(figure: Published, change: Change | None) -> str:
    """Return the verdict on a published time, by the interval of a measured change alone."""
    if change is None:
        return NOT_MEASURED
    if not change.shown:
        return NO_DIFFERENCE
    if figure.change is None:
        return "reproduced" if change.high <= (figure.at_most or 0) else "not reproduced"
    if change.low - figure.tolerance <= figure.change <= change.high + figure.tolerance:
        return "reproduced"
    further = change.high < figure.change < 0 or 0 < figure.change < change.low
    return "exceeded" if further else "not reproduced"
