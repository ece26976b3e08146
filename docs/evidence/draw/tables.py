# SPDX-License-Identifier: GPL-2.0
"""The page of a set of results: tables of each release and experiment, or of its functions."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence

from docs.evidence.draw.sets import ResultSet
from firsttouch.analysis.changes import units_of
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import USER, compare_functions, profiles_of
from firsttouch.errors import UserError
from firsttouch.quantities import format_change, format_value
from firsttouch.views.rows import (
    format_params,
    kernel_versions,
    row_table,
    spread_table,
    varying,
)
from firsttouch.views.tables import Table, markdown

# Rows of a set with `changes`, and functions with fewer instructions per fault share one.
_MOST = 5
_LEAST = 80


def page(of: ResultSet, datasets: Sequence[Dataset]) -> str:
    """Return the page of a set, from its dataset on each release."""
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0 -->",
        f"# {of.page or of.name}",
        "",
        f"Written by `make evidence`. Measured at commit {of.commit} by:",
        "",
    ]
    for release, dataset in zip(of.releases, datasets, strict=True):
        command = shlex.join(["firsttouch", *of.arguments(release)])
        used = {
            result.provenance.qemu.partition(" (")[0].replace(" emulator version", "")
            for result in dataset.results()
        }
        lines += [
            f"- Linux {kernel_versions(dataset.cases)}, {', '.join(sorted(used))}: `{command}`"
        ]
    if any(profiles_of(case) for case in datasets[0].cases):
        lines += _functions(of, datasets)
    else:
        for dataset in datasets:
            lines += _release(of, dataset)
    return "".join(f"{line}\n" for line in lines)


def _release(of: ResultSet, dataset: Dataset) -> Iterator[str]:
    release = dataset.platforms()[0].release
    for experiment in dataset.catalog.experiments.values():
        cases = [case for case in dataset.cases if case.experiment.name == experiment.name]
        metrics = of.metrics.get(experiment.name, "").split(", ")
        if not (cases and metrics[0]):
            continue
        if missing := sorted({*metrics} - {row.metric for row in dataset.rows}):
            raise UserError(f"{of.name}: {experiment.name} has no {missing[0]}: correct sets.toml.")
        names = [experiment.name, *metrics[: len(metrics) == 1]]
        of_what = ", ".join(f"`{name}`" for name in names)
        yield from ("", f"## {experiment.title} ({release}, {of_what})", "")
        if dataset.further:
            rows = [row for row in dataset.rows if row.case in cases and row.metric in metrics]
            yield from markdown(row_table(dataset, rows))
        else:
            yield from _cases(of, dataset, cases, metrics)
    if spread := spread_table(dataset):
        yield from ("", f"## {spread.title} ({release})", "", *markdown(spread))


def _cases(
    of: ResultSet, dataset: Dataset, cases: Sequence[Case], metrics: Sequence[str]
) -> Iterator[str]:
    """Yield a table with a row for each case; with `changes`, the largest and the sum of all."""
    arms = {(id(row.case), row.metric): row.arms for row in dataset.rows}
    values = {
        key: arms.get(key, {}) for case in cases for name in metrics for key in [(id(case), name)]
    }
    columns = [
        (name, arm)
        for name in metrics
        for arm in sorted(dataset.arms(cases), key=lambda arm: arm != of.base)
        if any(arm in values[id(case), name] for case in cases)
    ]
    cases = [case for case in cases if any(values[id(case), name] for name in metrics)]
    lines = [
        [_name(case, dataset), *(_cell(of, values[id(case), name], arm) for name, arm in columns)]
        for case in cases
    ]
    if of.changes:
        base = columns[0][1]
        ranked = sorted(range(len(cases)), key=lambda n: -values[id(cases[n]), metrics[0]][base])
        lines = [lines[n] for n in ranked[:_MOST]]
        all_of = [f"all {len(cases)}"], ["median change"], ["largest"]
        for name, arm in columns:
            each = [values[id(case), name] for case in cases]
            all_of[0].append(
                _cell(of, {a: sum(v.get(a, 0) for v in each) for a in (base, arm)}, arm)
            )
            changes = [change_percent(v[base], v[arm]) or 0 for v in each if arm in v]
            all_of[1].append("" if arm == base else _signed(statistics.median(changes)))
            all_of[2].append("" if arm == base else _signed(max(changes)))
        lines[:0] = all_of if len(dataset.arms(cases)) > 1 else all_of[:1]
    heads = [arm if len(metrics) == 1 else f"{name}, {arm}" for name, arm in columns]
    yield from markdown(Table("", ["cell", *heads], lines))


def _name(case: Case, dataset: Dataset) -> str:
    platforms = dataset.platforms()
    machine = case.platform.machine if len({each.machine for each in platforms}) > 1 else ""
    words = format_params(varying(case.experiment, case.params))
    return " ".join(filter(None, (machine, case.platform.setting, words))) or "all"


def _cell(of: ResultSet, values: Mapping[str, float], arm: str) -> str:
    if arm not in values:
        return "-"
    first = of.base if of.base in values else next(iter(values))
    change = change_percent(values[first], values[arm])
    if arm != first and of.changes and change is not None:
        return _signed(change)
    same = arm == first or values[arm] == values[first] or change is None
    return f"{format_value(values[arm])}{'' if same else f' ({format_change(change)})'}"


def _signed(change: float) -> str:
    text = f"{change:+.1f}"
    return text.lstrip("+-") if float(text) == 0 else text


def _functions(of: ResultSet, datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield a table of the kernel's functions, with a column for each release and arm."""
    found: dict[str, dict[str, float]] = {}
    heads, unit = list[str](), ""
    for release, dataset in zip(of.releases, datasets, strict=True):
        (case,) = dataset.cases
        profiles = profiles_of(case)
        heads += [f"{release}, {arm}" for arm in profiles]
        unit, units = units_of(case, next(iter(profiles)))
        for row in compare_functions(profiles, units):
            if row.function != USER:
                values = {f"{release}, {arm}": value for arm, value in row.values.items()}
                found.setdefault(row.function, {}).update(values)
    rows = sorted(found.items(), key=lambda row: (-max(row[1].values()), row[0]))
    large = [(name, values) for name, values in rows if max(values.values()) >= _LEAST]
    others = [values for _, values in rows[len(large) :]]

    def total(of_rows: Sequence[Mapping[str, float]]) -> list[str]:
        return [f"{sum(each.get(head, 0) for each in of_rows):,.1f}" for head in heads]

    lines = [[f"`{name}`", *total([values])] for name, values in large]
    lines.append([f"{len(others)} others", *total(others)])
    lines.append(["all of the kernel", *total([values for _, values in rows])])
    yield from ("", f"## Kernel instructions per {unit}, by function", "")
    yield from markdown(Table("", ["function", *heads], lines))
