# SPDX-License-Identifier: GPL-2.0
"""Charts for any experiment: ``dumbbells``, ``lines``, and what its file describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from firsttouch.analysis.cache_statistics import Spread, alike
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import PAGES, Drawn, Experiment, Metric, Params
from firsttouch.catalog.machines import expand
from firsttouch.errors import UserError
from firsttouch.quantities import format_compact, format_ratio
from firsttouch.views.answers import mean_words
from firsttouch.views.html.arm_symbols import symbols
from firsttouch.views.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.views.html.figure import (
    Figure,
    SmallTable,
    cell_lines,
    pictures,
    telling_cells,
)
from firsttouch.views.html.lines import draw_lines
from firsttouch.views.names import as_number, format_param, format_params

# For an axis: the divisor of a unit's values, and the unit after division.
_AXES = {"ns": (1e6, "ms"), "bytes": (float(1 << 20), "MiB")}


def dumbbells(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure with a row for each case; for a single case, with a row for each metric."""
    metric = _metric(cases)
    if metric is None:
        return []
    if len(cases) > 1:
        names = _varying(cases)
        groups = tuple(names[:1]) if len(names) > 1 else ()
        caption = f"{metric.name}, in {_unit(metric)[1]}."
        return described(dataset, cases, name, Drawn(metric.name, caption, groups=groups))
    what = "Each metric as a multiple of its value on stock"
    axis = "as a multiple of stock"
    arms = [arm for arm in dataset.arms(cases) if cases[0].arms.get(arm)]
    bars = [Group("", tuple(_multiples(cases[0])))]
    return [_rows(dataset, cases, arms, name, bars, metric, (f"{what}.", what, axis))]


def lines(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return figures of a metric against the first parameter that is a number and varies.

    If no number varies, the chart is that of `dumbbells`.
    """
    metric, across = _metric(cases), _first_number(cases)
    if metric is None or across is None:
        return dumbbells(dataset, cases, name)
    caption = f"{metric.name}, in {_unit(metric)[1]}, by {across}."
    return described(dataset, cases, name, Drawn(metric.name, caption, across=across))


def described(dataset: Dataset, cases: Sequence[Case], name: str, drawn: Drawn) -> list[Figure]:
    """Return the figures that an experiment's file describes; none if no case measured them."""
    cases = [case for case in cases if drawn.where.items() <= case.params.items()]
    if drawn.across:
        cases = [case for case in cases if _place(case, drawn.across) is not None]
        return [
            _lines(dataset, members, drawn, rest, f"{name}-{index}")
            for index, (rest, members) in enumerate(alike(cases, drawn.across))
            if any(_divided(case, drawn) for case in members)
        ]
    values = [(case, of) for case in cases if (of := _divided(case, drawn)) is not None]
    arms = [arm for arm in dataset.arms(cases) if any(arm in of for _, of in values)]
    if not arms:
        return []
    groups: dict[str, list[Bar]] = {}
    names = _varying([case for case, _ in values])
    for case, of in values:
        telling = {name: case.params[name] for name in names if name in case.params}
        heading = ", ".join(
            f"{name} {_word(name, telling.pop(name))}" for name in drawn.groups if name in telling
        )
        groups.setdefault(heading, []).append(Bar(format_params(telling), of))
    bars = [Group(heading, tuple(members)) for heading, members in groups.items()]
    metric, what = _drawn_metric(cases[0], drawn)
    figure = _rows(
        dataset, [case for case, _ in values], arms, name, bars, metric,
        (drawn.caption, what, what),
    )  # fmt: skip
    if len(cases[0].experiment.figures) > 1:
        figure = replace(figure, heading=f"{what}, {figure.heading}")
    if not drawn.per:
        return [figure]
    rows = tuple(
        (
            f"{group.heading} {bar.label}".strip(),
            *(format_ratio(bar.values[arm]) if arm in bar.values else "-" for arm in arms),
        )
        for group in bars
        for bar in group.bars
    )
    return [replace(figure, table=SmallTable((what, *arms), rows))]


def _rows(
    dataset: Dataset, cases: Sequence[Case], arms: Sequence[str], name: str,
    groups: Sequence[Group], metric: Metric, words: tuple[str, str, str],
) -> Figure:  # fmt: skip
    """Return a figure of rows; `words` are its caption, what it shows, and the title of its axis.

    Its cells have their values of `metric`.
    """
    caption, what, axis = words
    platform = str(cases[0].platform)
    wide, narrow = pictures(
        name,
        f"{cases[0].experiment.title}: {what}, {platform}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, symbols(dataset.catalog, arms), axis),
    )
    return Figure(
        platform, caption, wide, narrow,
        telling_cells(cases, arms, metric.name, metric.unit),
        cell_lines(cases, arms, metric.name, metric.unit),
    )  # fmt: skip


def _drawn_metric(case: Case, drawn: Drawn) -> tuple[Metric, str]:
    """Return the metric of a figure, and what its axis shows."""
    metric = next(m for m in case.experiment.metrics if m.name == drawn.metric)
    per = drawn.per.removesuffix("s")
    return metric, f"{metric.name} per {per}" if per else _axis(metric)


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


def _lines(
    dataset: Dataset, cases: Sequence[Case], drawn: Drawn, rest: Params, name: str
) -> Figure:
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
            (drawn.across, what),
            mark=_mark(dataset, platform.machine, drawn, rest),
            joined=drawn.joined,
            tick_of=lambda value: _tick(drawn.across, value),
        ),
    )
    arms = dataset.arms(cases)
    return Figure(
        f"{platform} ({words})" if words else str(platform),
        drawn.caption,
        wide,
        narrow,
        telling_cells(cases, arms, metric.name, metric.unit),
        cell_lines(cases, arms, metric.name, metric.unit),
        None if drawn.joined else _spreads(series, drawn.across, len(cases)),
    )


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


def _spreads(
    series: Mapping[str, Sequence[tuple[float, float]]], across: str, cases: int
) -> SmallTable:
    """Return the table of the spread of each arm's values; a mean that lacks cases has a ≈."""
    rows = []
    for arm, points in series.items():
        values = [value for _, value in points]
        spread = Spread(min(values), fmean(values), max(values), len(values), cases)
        least, most = format_ratio(spread.best), format_ratio(spread.worst)
        measured = f"{spread.measured:,} of {spread.colors:,}"
        rows.append((arm, least, mean_words(spread), most, measured))
    return SmallTable(("arm", "least", "mean", "most", across), tuple(rows))


def _place(case: Case, across: str) -> float | None:
    """Return where a case is on the axis of a parameter; None if its value is no number."""
    return as_number(across, case.params.get(across, ""))


def _tick(name: str, value: float) -> str:
    """Return a parameter's value for its axis, without the name, which is the axis's title."""
    return format_param(name, round(value)).removeprefix(f"{name} ")


def _metric(cases: Sequence[Case]) -> Metric | None:
    """Return the first shown metric in which arms differ, or else the first shown metric."""
    experiment = cases[0].experiment
    shown = [metric for metric in experiment.metrics if metric.shown] or experiment.metrics
    measured = [m for m in shown if any(case.values(m.name) for case in cases)]
    differing = [m for m in measured if any(len(set(c.values(m.name).values())) > 1 for c in cases)]
    return next(iter(differing or measured), None)


def _unit(metric: Metric) -> tuple[float, str]:
    return _AXES.get(metric.unit, (1.0, metric.unit))


def _axis(metric: Metric) -> str:
    unit = _unit(metric)[1]
    return metric.name if metric.name.endswith(unit) else f"{metric.name} ({unit})"


def _varying(cases: Sequence[Case]) -> list[str]:
    """Return the parameters in which the cases differ, in the experiment's order."""
    names = dict.fromkeys(name for case in cases for name in case.params)
    return [name for name in names if len({case.params.get(name) for case in cases}) > 1]


def _first_number(cases: Sequence[Case]) -> str | None:
    for name in _varying(cases):
        values = [case.params.get(name, "") for case in cases]
        if all(as_number(name, value) is not None for value in values):
            return name
    return None


def _word(name: str, value: str | int) -> str:
    return format_param(name, value).removeprefix(f"{name} ")


def _multiples(case: Case) -> Iterator[Bar]:
    """Yield a row for each metric, as a multiple of stock: metrics differ in unit and size."""
    for metric in _shown(case.experiment):
        values = case.values(metric)
        base = values.get(BASE)
        if base:
            yield Bar(metric, {arm: value / base for arm, value in values.items()})
        elif values:
            yield Bar(metric, {}, "0 on stock" if base == 0 else "not measured on stock")


def _shown(experiment: Experiment) -> list[str]:
    names = [metric.name for metric in experiment.metrics]
    return [metric.name for metric in experiment.metrics if metric.shown] or names
