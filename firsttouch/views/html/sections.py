# SPDX-License-Identifier: GPL-2.0
"""A section for each experiment: the question, the figures that its chart draws, its rows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.verdicts import NOT_PUBLISHED
from firsttouch.catalog.experiments import Experiment
from firsttouch.quantities import format_change, format_value
from firsttouch.views.html.any_experiment import described, dumbbells, lines
from firsttouch.views.html.figure import Chart, Figure
from firsttouch.views.html.timeline import timeline, why_not_sampled
from firsttouch.views.labels import SIGNS, change_head, group_by_reason
from firsttouch.views.names import format_params, varying

# The charts by their names in an experiment's `chart`.
CHARTS: Mapping[str, Chart] = {
    "dumbbells": dumbbells,
    "lines": lines,
    "timeline": timeline,
}
# The number of columns of counts that fit on a page. With more arms, each arm has a line.
_COLUMNS = 4


@dataclass(frozen=True)
class RowLine:
    """One line of a table of rows; `values` has one for each figure in the head."""

    cell: str
    metric: str
    values: tuple[str, ...]
    verdict: str
    sign: str


@dataclass(frozen=True)
class RowTable:
    """The rows of an experiment on one platform; `heads` are those of the figures."""

    heading: str
    heads: tuple[str, ...]
    lines: tuple[RowLine, ...]

    @property
    def judged(self) -> bool:
        """Whether any of the rows has a verdict on a published figure."""
        return any(line.verdict for line in self.lines)


@dataclass(frozen=True)
class Section:
    """An experiment on the page.

    If there are no figures, `why` has the reason, if it is known, and `command`
    measures them.
    """

    anchor: str
    title: str
    question: str
    figures: tuple[Figure, ...]
    tables: tuple[RowTable, ...]
    command: str
    why: str


def sections(dataset: Dataset) -> list[Section]:
    """Return the sections, in the order of the experiments.

    An experiment that was not measured has a section if it belongs to the
    default plan or answers a published figure.
    """
    sections = []
    for number, experiment in enumerate(dataset.catalog.experiments.values()):
        cases = [case for case in dataset.cases if case.experiment.name == experiment.name]
        if cases or experiment.default or experiment.published or experiment.cited:
            sections.append(_section(dataset, experiment, cases, f"figure-{number}"))
    return sections


def _section(dataset: Dataset, experiment: Experiment, cases: Sequence[Case], name: str) -> Section:
    figures: list[Figure] = []
    tables: list[RowTable] = []
    for index, platform in enumerate(dataset.platforms()):
        of_platform = [case for case in cases if case.platform == platform]
        if of_platform:
            figures += figures_of(dataset, of_platform, f"{name}-{index}")
            tables += _tables(dataset, experiment, of_platform)
    return Section(
        experiment.name,
        experiment.title,
        experiment.question,
        tuple(figures),
        tuple(tables),
        shlex.join(["firsttouch", "lab", "--experiment", experiment.name]),
        "" if figures else _why(dataset, cases),
    )


def figures_of(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return the figures of an experiment's cases on one platform; `name` names their pictures."""
    experiment = cases[0].experiment
    if experiment.figures:
        return [
            figure
            for number, drawn in enumerate(experiment.figures)
            for figure in described(dataset, cases, f"{name}-{number}", drawn)
        ]
    return CHARTS[experiment.chart](dataset, cases, name)


def _why(dataset: Dataset, cases: Sequence[Case]) -> str:
    """Return why there is nothing to draw for cases that ran."""
    unsampled = why_not_sampled(cases)
    if unsampled:
        return "; ".join(unsampled)
    reasons = group_by_reason(
        (gap.metric, reason, "")
        for gap in dataset.gaps
        if gap.case in cases
        for reason in gap.reasons.values()
    )
    return "; ".join(dict.fromkeys(f"{', '.join(r.names)}: {r.reason}" for r in reasons[:3]))


def _tables(dataset: Dataset, experiment: Experiment, cases: Sequence[Case]) -> list[RowTable]:
    platform = cases[0].platform
    rows = [
        row
        for row in dataset.rows
        if row.case.experiment.name == experiment.name and row.case.platform == platform
    ]
    shown = experiment.shown()
    rows = [row for row in rows if row.metric in shown] or rows
    arms = [arm for arm in dataset.arms(cases) if any(arm in row.arms for row in rows)]
    if not rows:
        return []
    if len(arms) > _COLUMNS:
        lines = tuple(line for row in rows for line in _line_per_arm(row, arms))
        return [RowTable(str(platform), ("value", "change"), lines)]
    pairs = {case.pair() for case in cases} - {None}
    heads = (*arms, change_head(pairs, experiment)) if pairs else tuple(arms)
    return [RowTable(str(platform), heads, tuple(_line(row, arms, heads) for row in rows))]


def _line(row: Row, arms: Sequence[str], heads: Sequence[str]) -> RowLine:
    values = [format_value(row.arms.get(arm), row.unit) for arm in arms]
    if len(heads) > len(arms):
        values.append(format_change(row.change_percent))
    return RowLine(_cell(row), row.metric, tuple(values), *_verdict(row.verdict))


def _line_per_arm(row: Row, arms: Sequence[str]) -> list[RowLine]:
    """Return a line for each arm; the arm that the experiment compares has the verdict."""
    return [
        RowLine(
            f"{_cell(row)} {arm}".strip(),
            row.metric,
            (format_value(row.arms[arm], row.unit), format_change(row.change(arm))),
            *_verdict(row.verdict if arm == row.case.experiment.compare else NOT_PUBLISHED),
        )
        for arm in arms
        if arm in row.arms
    ]


def _verdict(verdict: str) -> tuple[str, str]:
    """Return the verdict and its sign; both are empty without a published figure."""
    return ("", "") if verdict == NOT_PUBLISHED else (verdict, SIGNS[verdict])


def _cell(row: Row) -> str:
    return format_params(varying(row.case.experiment, row.case.params))
