# SPDX-License-Identifier: GPL-2.0
"""Figures of times on real hardware: each cell's time, and its change on each arm.

A boot's figure is the median of its repetitions without the first, which warms up.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from firsttouch.analysis.figures import Change, Figure
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.experiments import Published
from firsttouch.lab.times import TimedBoot, TimedCell, Times

NOT_MEASURED = "not measured"
ELAPSED, SYSTEM, RETIRED = "elapsed_ns", "sys_ns", "instructions_kernel"
METRICS = (ELAPSED, SYSTEM, "cycles_kernel", RETIRED)
NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class TimedRow:
    """A metric of a cell: the median of each arm that has it, and the changes against stock.

    `changes` has no arm with too few boots, or with a time of 0. `published` is
    the figure about it, and `verdict` what the arm of `compare` says of that.
    """

    cell: TimedCell
    metric: str
    arms: dict[str, float]
    changes: dict[str, Change]
    missing: str
    published: Published | None = None
    verdict: str = ""


def timed_rows(times: Times, catalog: Catalog) -> list[TimedRow]:
    """Return a row for each cell and metric, in the order of the run."""
    return [
        _row(times, catalog, place, metric)
        for place in range(len(times.cells))
        for metric in METRICS
    ]


def _row(times: Times, catalog: Catalog, place: int, metric: str) -> TimedRow:
    cell, values, missing = times.cells[place], dict[str, list[float]](), ""
    for boot in sorted(times.boots, key=lambda boot: boot.round):
        value, why = figure_of(boot, place, metric)
        missing = missing or why
        if value is not None:
            values.setdefault(boot.arm, []).append(value)
    figures = {arm: Figure("ns", tuple(of_arm)) for arm, of_arm in values.items()}
    base = figures.get(BASE)
    changes = {
        arm: change
        for arm, figure in figures.items()
        if base and arm != BASE and (change := base.change(figure))
    }
    medians = {arm: figure.median for arm, figure in figures.items()}
    experiment = catalog.experiments.get(cell.experiment)
    if not experiment or experiment.compare not in {arm.name for arm in times.arms}:
        return TimedRow(cell, metric, medians, changes, missing)
    published = [
        figure
        for figure in experiment.published
        if figure.time and metric == SYSTEM and figure.where.items() <= cell.params.items()
    ]
    if not published:
        return TimedRow(cell, metric, medians, changes, missing)
    verdict = time_verdict(published[0], changes.get(experiment.compare))
    return TimedRow(cell, metric, medians, changes, missing, published[0], verdict)


def figure_of(boot: TimedBoot, place: int, metric: str) -> tuple[float | None, str]:
    """Return a boot's figure of a cell; without one, why it has none."""
    samples = [sample for sample in boot.samples if sample.cell == place]
    values = [sample.metrics[metric] for sample in samples if metric in sample.metrics]
    if values:
        return median(values[1:] or values), ""
    reasons = [sample.unavailable.get(metric, "") for sample in samples]
    return None, next(filter(None, reasons), "it was not measured")


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
