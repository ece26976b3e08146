# SPDX-License-Identifier: GPL-2.0
"""Charts for any experiment: ``dumbbells``, ``lines``, and what its file describes."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.analysis.cache_statistics import alike
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import PAGES, Drawn, Experiment, Metric, Params
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.output.html.figure import (
    Figure,
    Picture,
    SmallTable,
    cell_lines,
    pictures,
    telling_cells,
)
from firsttouch.output.html.lines import draw_lines
from firsttouch.output.names import as_number, format_param, format_params
from firsttouch.quantities import format_compact, format_ratio

# For an axis: the divisor of a unit's values, and the unit after division.
_AXES = {"ns": (1e6, "ms"), "bytes": (float(1 << 20), "MiB")}


def dumbbells(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure with a row for each case; for a single case, with a row for each metric."""
    metric = _metric(cases)
    if metric is None:
        return []
    arms = [arm for arm in dataset.arms(cases) if any(case.arms.get(arm) for case in cases)]
    if len(cases) == 1:
        groups, axis = _by_metric(cases[0]), "as a multiple of stock"
        what = "Each metric as a multiple of its value on stock"
    else:
        groups, axis = _by_case(cases, metric), _axis(metric)
        what = f"{metric.name}, in {_unit(metric)[1]}"
    return [
        Figure(
            str(cases[0].platform), f"{what}.",
            *_rows(dataset, cases, arms, name, groups, (what, axis)),
            telling_cells(cases, arms, metric.name, metric.unit),
            cell_lines(cases, arms, metric.name, metric.unit),
        )
    ]  # fmt: skip


def described(dataset: Dataset, cases: Sequence[Case], name: str, drawn: Drawn) -> list[Figure]:
    """Return the figure that an experiment's file describes; none if no case measured it."""
    values = [(case, of) for case in cases if (of := _divided(case, drawn)) is not None]
    arms = [arm for arm in dataset.arms(cases) if any(arm in of for _, of in values)]
    if not arms:
        return []
    cases = [case for case, _ in values]
    metric = next(m for m in cases[0].experiment.metrics if m.name == drawn.metric)
    per = drawn.per.removesuffix("s")
    what = f"{metric.name} per {per}" if per else metric.name
    groups: dict[str, list[Bar]] = {}
    names = _varying(cases)
    for case, of in values:
        telling = {name: case.params[name] for name in names if name in case.params}
        heading = ", ".join(
            f"{name} {_word(name, telling.pop(name))}" for name in drawn.groups if name in telling
        )
        groups.setdefault(heading, []).append(Bar(format_params(telling), of))
    bars = [Group(heading, tuple(members)) for heading, members in groups.items()]
    platform = cases[0].platform
    rows = tuple(
        (
            f"{group.heading} {bar.label}".strip(),
            *(format_ratio(bar.values[arm]) if arm in bar.values else "-" for arm in arms),
        )
        for group in bars
        for bar in group.bars
    )
    several = len(cases[0].experiment.figures) > 1
    return [
        Figure(
            f"{what}, {platform}" if several else str(platform), drawn.caption,
            *_rows(dataset, cases, arms, name, bars, (what, what)),
            telling_cells(cases, arms, metric.name, metric.unit),
            cell_lines(cases, arms, metric.name, metric.unit),
            SmallTable((what, *arms), rows),
        )
    ]  # fmt: skip


def _rows(
    dataset: Dataset, cases: Sequence[Case], arms: Sequence[str], name: str,
    groups: Sequence[Group], words: tuple[str, str],
) -> tuple[Picture, Picture]:  # fmt: skip
    """Return the pictures of rows; `words` say what they show, and what stands at the axis."""
    what, axis = words
    return pictures(
        name,
        f"{cases[0].experiment.title}: {what}, {cases[0].platform}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, symbols(dataset.catalog, arms), axis),
    )


def _divided(case: Case, drawn: Drawn) -> dict[str, float] | None:
    """Return the values of a figure by arm; None of a case that does not have its divisor."""
    divisor = 1.0 if not drawn.per else case.number(drawn.per)
    if drawn.per == PAGES:
        divisor = case.pages() or 0
    if not divisor:
        return None
    return {arm: value / divisor for arm, value in case.values(drawn.metric).items()}


def lines(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return figures of a metric against the first parameter that is a number and varies.

    There is a figure for each combination of the other parameters. If no number
    varies, the chart is that of `dumbbells`.
    """
    metric, across = _metric(cases), _first_number(cases)
    if metric is None or across is None:
        return dumbbells(dataset, cases, name)
    return [
        _lines(dataset, members, metric, (across, rest), f"{name}-{index}")
        for index, (rest, members) in enumerate(alike(cases, across))
        if any(case.values(metric.name) for case in members)
    ]


def _lines(
    dataset: Dataset, cases: Sequence[Case], metric: Metric, of: tuple[str, Params], name: str
) -> Figure:
    across, rest = of
    divisor, unit = _unit(metric)
    series: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        x = as_number(across, case.params.get(across, ""))
        for arm, value in case.values(metric.name).items() if x is not None else ():
            series.setdefault(arm, []).append((float(x or 0), value / divisor))
    platform = cases[0].platform
    words = format_params(rest)
    described = "; ".join(
        f"{arm}: " + ", ".join(f"{_tick(across, x)} {format_compact(y)}" for x, y in points)
        for arm, points in series.items()
    )
    wide, narrow = pictures(
        name,
        f"{cases[0].experiment.title}: {metric.name} by {across}, {platform}, {words}",
        f"{described}.",
        lambda width: draw_lines(
            width,
            series,
            symbols(dataset.catalog, series),
            (across, _axis(metric)),
            tick_of=lambda value: _tick(across, value),
        ),
    )
    arms = dataset.arms(cases)
    return Figure(
        f"{platform} ({words})" if words else str(platform),
        f"{metric.name}, in {unit}, by {across}.",
        wide,
        narrow,
        telling_cells(cases, arms, metric.name, metric.unit),
        cell_lines(cases, arms, metric.name, metric.unit),
    )


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


def _by_case(cases: Sequence[Case], metric: Metric) -> list[Group]:
    """Return a row for each case, in a group for each value of the first varying parameter."""
    names = _varying(cases)
    divisor, _ = _unit(metric)
    groups: dict[str, list[Bar]] = {}
    for case in cases:
        telling = {name: case.params[name] for name in names if name in case.params}
        heading = ""
        if len(names) > 1 and names[0] in telling:
            heading = f"{names[0]} {_word(names[0], telling.pop(names[0]))}"
        values = {arm: value / divisor for arm, value in case.values(metric.name).items()}
        groups.setdefault(heading, []).append(Bar(format_params(telling), values))
    return [Group(heading, tuple(bars)) for heading, bars in groups.items()]


def _word(name: str, value: str | int) -> str:
    return format_param(name, value).removeprefix(f"{name} ")


def _by_metric(case: Case) -> list[Group]:
    """Return a row for each metric, as a multiple of stock: metrics differ in unit and size."""
    bars = []
    for metric in _shown(case.experiment):
        values = case.values(metric)
        base = values.get(BASE)
        if not values:
            continue
        if base:
            bars.append(Bar(metric, {arm: value / base for arm, value in values.items()}))
        else:
            note = "0 on stock" if base == 0 else "not measured on stock"
            bars.append(Bar(metric, {}, note))
    return [Group("", tuple(bars))]


def _shown(experiment: Experiment) -> list[str]:
    names = [metric.name for metric in experiment.metrics]
    return [metric.name for metric in experiment.metrics if metric.shown] or names
