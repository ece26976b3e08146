# SPDX-License-Identifier: GPL-2.0
"""The published figures, each with the row that answers it, or a command to measure it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.verdicts import NOT_JUDGED, NOT_PUBLISHED
from firsttouch.catalog.experiments import Experiment, Published

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure and one row that answers it; `row` is None if no such cell ran."""

    experiment: Experiment
    published: Published
    row: Row | None

    @property
    def verdict(self) -> str:
        """The row's verdict; without one of the two arms the figure is not measured."""
        if self.row is None or self.row.verdict == NOT_PUBLISHED:
            return NOT_MEASURED
        return self.row.verdict

    @property
    def platform(self) -> Platform | None:
        """Where the row was measured."""
        return self.row.case.platform if self.row else None

    def command(self) -> str:
        """Return the command that measures the figure, for a shell."""
        words = ["firsttouch", "lab", "--experiment", self.experiment.name]
        for name, value in self.published.where.items():
            words += ["--set", f"{name}={value}"]
        return shlex.join(words)


def published_figures(dataset: Dataset) -> list[PublishedFigure]:
    """Return all published figures, measured or not, in the order of the experiments."""
    figures = []
    for experiment in dataset.catalog.experiments.values():
        for published in experiment.published:
            rows: list[Row | None] = [
                row
                for row in dataset.rows
                if row.case.experiment.name == experiment.name and row.published == published
            ]
            figures += [PublishedFigure(experiment, published, row) for row in rows or [None]]
    return figures


def count_verdicts(figures: Iterable[PublishedFigure]) -> dict[str, int]:
    """Return how many figures have each verdict, without verdicts that no figure has."""
    verdicts = [figure.verdict for figure in figures]
    return {
        verdict: verdicts.count(verdict)
        for verdict in ("reproduced", "exceeded", "not reproduced", NOT_JUDGED, NOT_MEASURED)
        if verdict in verdicts
    }
