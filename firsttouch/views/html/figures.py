# SPDX-License-Identifier: GPL-2.0
"""The figures of an experiment: ``dumbbells``, ``lines``, and what its file describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from firsttouch.analysis.cache_statistics import Spread, alike
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.experiments import PAGES, Drawn, Metric, Params
from firsttouch.catalog.machines import expand
from firsttouch.errors import UserError
from firsttouch.quantities import format_compact, format_ratio
from firsttouch.views.answers import mean_words
from firsttouch.views.html.charts import Bar, Group, describe, draw_dumbbells, draw_lines, timeline
from firsttouch.views.html.figure import Chart, cell_table, pictures
from firsttouch.views.html.style import symbols
from firsttouch.views.names import as_number, format_param, format_params, metric_words
from firsttouch.views.tables import Table

# For an axis: the divisor of a unit's values, and the unit after division.
_AXES = {"ns": (1e6, "ms"), "bytes": (float(1 << 20), "MiB")}


def figures_of(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Chart]:
    """Return the figures of an experiment's cases on one platform; `name` names their pictures."""
    drawn = cases[0].experiment.figures
    if not drawn:
        return CHARTS[cases[0].experiment.chart](dataset, cases, name)
    return [
        figure
        for number, each in enumerate(drawn)
        for figure in described(dataset, cases, f"{name}-{number}", each)
    ]


def dumbbells(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Chart]:
    """Return a figure with a row for each case; none for a single case."""
    metric = _metric(cases)
    if metric is None or len(cases) < 2:
        return []
    names = _varying(cases)
    groups = tuple(names[:1]) if len(names) > 1 else ()
    caption = f"{_axis(metric)} of each cell."
    return described(dataset, cases, name, Drawn(metric.name, caption, groups=groups))


def lines(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Chart]:
    """Return figures of a metric against the first parameter that is a number and varies.

    If no number varies, the chart is that of `dumbbells`.
    """
    metric = _metric(cases)
    numbers = [
        each for each in _varying(cases) if all(_place(case, each) is not None for case in cases)
    ]
    if metric is None or not numbers:
        return dumbbells(dataset, cases, name)
    caption = f"{_axis(metric)}, by {numbers[0]}."
    return described(dataset, cases, name, Drawn(metric.name, caption, across=numbers[0]))


# The charts by their names in an experiment's `chart`. A chart draws the cases of one experiment
# on one platform; `str` names its pictures.
CHARTS: Mapping[str, Callable[[Dataset, Sequence[Case], str], list[Chart]]] = {
    "dumbbells": dumbbells,
    "lines": lines,
    "timeline": timeline,
}


def described(dataset: Dataset, cases: Sequence[Case], name: str, drawn: Drawn) -> list[Chart]:
    """Return the figures that an experiment's file describes; none of a single value."""
    cases = [case for case in cases if drawn.where.items() <= case.params.items()]
    if drawn.across:
        cases = [case for case in cases if _place(case, drawn.across) is not None]
        return [
            _lines(dataset, members, drawn, rest, f"{name}-{index}")
            for index, (rest, members) in enumerate(alike(cases, drawn.across))
            if sum(len(_divided(case, drawn) or ()) for case in members) > 1
        ]
    values = [(case, of) for case in cases if (of := _divided(case, drawn)) is not None]
    if sum(len(of) for _, of in values) < 2:
        return []
    shown = [case for case, _ in values]
    arms = [arm for arm in dataset.arms(shown) if any(arm in of for _, of in values)]
    groups: dict[str, list[Bar]] = {}
    names = _varying(shown)
    for case, of in values:
        telling = {each: case.params[each] for each in names if each in case.params}
        heading = ", ".join(
            f"{each} {_value(each, telling.pop(each))}" for each in drawn.groups if each in telling
        )
        groups.setdefault(heading, []).append(Bar(format_params(telling), of))
    bars = [Group(heading, tuple(members)) for heading, members in groups.items()]
    metric, what = _drawn_metric(cases[0], drawn)
    platform = str(cases[0].platform)
    wide, narrow = pictures(
        name,
        f"{cases[0].experiment.title}: {what}, {platform}",
        f"{describe(bars)}.",
        lambda width: draw_dumbbells(width, bars, symbols(dataset.catalog, arms), what),
    )
    heading = f"{what}, {platform}" if len(cases[0].experiment.figures) > 1 else platform
    cells = cell_table(shown, arms, metric.name, metric.unit)
    return [Chart(heading, drawn.caption, wide, narrow, cells=cells)]


def _drawn_metric(case: Case, drawn: Drawn) -> tuple[Metric, str]:
    metric = next(m for m in case.experiment.metrics if m.name == drawn.metric)
    per = drawn.per.removesuffix("s").replace("_", " ")
    return metric, f"{metric_words(metric.name)} per {per}" if per else _axis(metric)


def _divided(case: Case, drawn: Drawn) -> dict[str, float] | None:
    """Return the values of a figure by arm; None of a case that does not have its divisor."""
    values = case.values(drawn.metric)
    if drawn.per in (metric.name for metric in case.experiment.metrics):
        divisors = case.values(drawn.per)
        return {arm: value / divisors[arm] for arm, value in values.items() if divisors.get(arm)}
    divisor: float = case.number(drawn.per)
    if drawn.per == PAGES:
        divisor = case.pages() or 0
    elif not drawn.per:
        divisor, _ = _unit(_drawn_metric(case, drawn)[0])
    return {arm: value / divisor for arm, value in values.items()} if divisor else None


def _lines(dataset: Dataset, cases: Sequence[Case], drawn: Drawn, rest: Params, name: str) -> Chart:
    """Return the figure of cases that differ in the parameter `across` alone."""
    metric, what = _drawn_metric(cases[0], drawn)
    series: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        for arm, value in (_divided(case, drawn) or {}).items():
            series.setdefault(arm, []).append((_place(case, drawn.across) or 0, value))
    platform, words = cases[0].platform, format_params(rest)
    texts = "; ".join(
        f"{arm}: " + ", ".join(f"{_tick(drawn.across, x)} {format_compact(y)}" for x, y in points)
        for arm, points in series.items()
    )
    wide, narrow = pictures(
        name,
        f"{cases[0].experiment.title}: {what} by {drawn.across}, {platform}, {words}",
        f"{texts}.",
        lambda width: draw_lines(
            width,
            series,
            symbols(dataset.catalog, series),
            (drawn.across.replace("_", " "), what),
            mark=_mark(dataset, platform.machine, drawn, rest),
            joined=drawn.joined,
            tick_of=lambda value: _tick(drawn.across, value),
        ),
    )
    figure = Chart(
        f"{platform} ({words})" if words else str(platform), drawn.caption, wide, narrow,
        cells=cell_table(cases, dataset.arms(cases), metric.name, metric.unit),
    )  # fmt: skip
    if drawn.joined:
        return figure
    # The spread of each arm's values; a mean that lacks cases has a ≈.
    rows = []
    for arm, points in series.items():
        values = [value for _, value in points]
        spread = Spread(min(values), fmean(values), max(values), len(values), len(cases))
        least, most = format_ratio(spread.best), format_ratio(spread.worst)
        rows.append((arm, least, mean_words(spread), most, f"{len(values):,} of {len(cases):,}"))
    table = Table("", ("arm", "least", "mean", "most", drawn.across), rows)
    return replace(figure, table=table)


def _mark(dataset: Dataset, machine: str, drawn: Drawn, rest: Params) -> tuple[str, float] | None:
    """Return what a figure marks, and the words; None if it marks nothing here."""
    entry = dataset.catalog.machines.get(machine)
    if entry is None or not drawn.mark:
        return None
    try:
        (params,) = expand({**rest, "mark": drawn.mark}, entry)
    except UserError:
        # A machine without this cache.
        return None
    return f"{drawn.mark[1:].replace('.', ' ')}: {params['mark']}", float(params["mark"])


def _place(case: Case, across: str) -> float | None:
    """Return where a case is on the axis of a parameter; None if its value is no number."""
    return as_number(across, case.params.get(across, ""))


def _tick(name: str, value: float) -> str:
    return _value(name, round(value))


def _value(name: str, value: str | int) -> str:
    return format_param(name, value).removeprefix(f"{name} ")


def _metric(cases: Sequence[Case]) -> Metric | None:
    experiment = cases[0].experiment
    shown = [metric for metric in experiment.metrics if metric.shown] or experiment.metrics
    measured = [m for m in shown if any(case.values(m.name) for case in cases)]
    differing = [m for m in measured if any(len(set(c.values(m.name).values())) > 1 for c in cases)]
    return next(iter(differing or measured), None)


def _unit(metric: Metric) -> tuple[float, str]:
    return _AXES.get(metric.unit, (1.0, metric.unit))


def _axis(metric: Metric) -> str:
    unit, words = _unit(metric)[1], metric_words(metric.name)
    return words if words.endswith(unit) else f"{words} ({unit})"


def _varying(cases: Sequence[Case]) -> list[str]:
    names = dict.fromkeys(name for case in cases for name in case.params)
    return [name for name in names if len({case.params.get(name) for case in cases}) > 1]
