# SPDX-License-Identifier: GPL-2.0
"""The figures of an experiment: what its file describes, or its first metric that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.experiments import PAGES, Drawn, Metric
from firsttouch.quantities import format_number_of
from firsttouch.views.html.charts import Points, describe, draw_dumbbells, draw_scatter
from firsttouch.views.html.style import symbols
from firsttouch.views.html.svg import Picture
from firsttouch.views.rows import format_param, format_params, metric_words


def figures_of(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Picture]:
    """Return the figures of an experiment's cases on one platform; `name` names their pictures.

    They are those of its file, or else a row for each case, and the faults that were sampled.
    """
    drawn = cases[0].experiment.figure
    if not drawn and len(cases) > 1 and (metric := _metric(cases)):
        names = _varying(cases)
        groups = tuple(names[:1]) if len(names) > 1 else ()
        drawn = (Drawn(metric.name, f"{_axis(metric)} of each cell.", groups=groups),)
    if sampled := [(case, series) for case in cases if (series := _sampled(case))]:
        return [
            _timeline(dataset, case, series, f"{name}-{number}")
            for number, (case, series) in enumerate(sampled)
        ]
    return [
        figure
        for number, each in enumerate(drawn)
        if (figure := _described(dataset, cases, f"{name}-{number}", each))
    ]


# Base pages that a phone can show apart.
_PAGES = 16


def _sampled(case: Case) -> dict[str, Points]:
    points = {
        arm: [(time / 1000, page) for time, page in measured.timeline if page < _PAGES]
        for arm, measured in case.arms.items()
    }
    return {arm: faults for arm, faults in points.items() if faults}


def _timeline(dataset: Dataset, case: Case, series: Mapping[str, Points], name: str) -> Picture:
    page = _value("size", case.params.get("page", "4k"))
    what = f"first touch by {case.params.get('by', '')}, {page} pages"
    counted = "; ".join(
        f"{arm}: {format_number_of(len(points), 'faults')}, the last after {max(points)[0]:,.0f} µs"
        for arm, points in series.items()
    )
    axes = "µs since the first touch", "page"
    caption = (
        f"A mark for each page fault of the first {_PAGES} base pages, {what}. They are samples of "
        "perf's page-faults event, which add to the cost of each fault: the times show the order "
        "of faults and not their cost."
    )
    return Picture(
        name,
        f"Page faults over time, {what}, {case.platform}",
        f"Pages touched against time, the first {_PAGES}. {counted}.",
        draw_scatter(series, symbols(dataset.catalog, series), axes),
        f"{page} pages, {case.platform}",
        caption,
    )


def _described(dataset: Dataset, cases: Sequence[Case], name: str, drawn: Drawn) -> Picture | None:
    """Return the figure that an experiment's file describes; None of a single value."""
    cases = [case for case in cases if drawn.where.items() <= case.params.items()]
    values = [(case, of) for case in cases if (of := _divided(case, drawn))]
    if sum(len(of) for _, of in values) < 2:
        return None
    shown = [case for case, _ in values]
    arms = [arm for arm in dataset.arms(shown) if any(arm in of for _, of in values)]
    groups: dict[str, list[tuple[str, Mapping[str, float]]]] = {}
    names = _varying(shown)
    for case, of in values:
        telling = {each: case.params[each] for each in names if each in case.params}
        heading = ", ".join(
            f"{each} {_value(each, telling.pop(each))}" for each in drawn.groups if each in telling
        )
        groups.setdefault(heading, []).append((format_params(telling), of))
    what = _what(cases[0], drawn)
    platform = str(cases[0].platform)
    return Picture(
        name,
        f"{cases[0].experiment.title}: {what}, {platform}",
        f"{describe(groups)}.",
        draw_dumbbells(groups, symbols(dataset.catalog, arms), what),
        f"{what}, {platform}" if len(cases[0].experiment.figure) > 1 else platform,
        drawn.caption,
    )


def _what(case: Case, drawn: Drawn) -> str:
    per = drawn.per.removesuffix("s").replace("_", " ")
    if per:
        return f"{metric_words(drawn.metric)} per {per}"
    return _axis(next(metric for metric in case.experiment.metrics if metric.name == drawn.metric))


def _divided(case: Case, drawn: Drawn) -> dict[str, float]:
    """Return the values of a figure by arm; none of a case that does not have its divisor."""
    values = case.values(drawn.metric)
    if drawn.per in (metric.name for metric in case.experiment.metrics):
        divisors = case.values(drawn.per)
        return {arm: value / divisors[arm] for arm, value in values.items() if divisors.get(arm)}
    divisor: float = case.number(drawn.per) if drawn.per else 1.0
    if drawn.per == PAGES:
        divisor = case.pages() or 0
    return {arm: value / divisor for arm, value in values.items()} if divisor else {}


def _value(name: str, value: str | int) -> str:
    return format_param(name, value).removeprefix(f"{name} ")


def _metric(cases: Sequence[Case]) -> Metric | None:
    experiment = cases[0].experiment
    shown = [metric for metric in experiment.metrics if metric.shown] or experiment.metrics
    measured = [m for m in shown if any(case.values(m.name) for case in cases)]
    differing = [m for m in measured if any(len(set(c.values(m.name).values())) > 1 for c in cases)]
    return next(iter(differing or measured), None)


def _axis(metric: Metric) -> str:
    words = metric_words(metric.name)
    return words if words.endswith(metric.unit) else f"{words} ({metric.unit})"


def _varying(cases: Sequence[Case]) -> list[str]:
    names = dict.fromkeys(name for case in cases for name in case.params)
    return [name for name in names if len({case.params.get(name) for case in cases}) > 1]
