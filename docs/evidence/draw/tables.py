# SPDX-License-Identifier: GPL-2.0
"""The page of a set of results: tables of each release and experiment, or of its functions."""

from __future__ import annotations

import itertools
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from docs.evidence.draw.sets import EVIDENCE, ResultSet
from firsttouch.analysis.changes import units_of
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import USER, Profile, compare_functions, profiles_of
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
_MOST = 3
_LEAST = 100


def document(title: str, said: str, lines: Iterable[str]) -> str:
    """Return a page in Markdown; `said` completes the sentence "Written by `make evidence`"."""
    head = ("<!-- SPDX-License-Identifier: GPL-2.0 -->", f"# {title}", "")
    return "".join(f"{line}\n" for line in (*head, f"Written by `make evidence`{said}", *lines))


def page(of: ResultSet, folder: Path = EVIDENCE) -> str:
    """Return the page of a set, from its results on each release."""
    datasets = [of.dataset(release, folder) for release in of.releases]
    lines = [""]
    for release, dataset in zip(of.releases, datasets, strict=True):
        command = shlex.join(["firsttouch", *of.arguments(release)])
        lines.append(f"- Linux {kernel_versions(dataset.cases)}: `{command}`")
    if any(profiles_of(case) for case in datasets[0].cases):
        lines += _functions(of, datasets)
    else:
        found: dict[str, dict[str, Table]] = {}
        for release, dataset in zip(of.releases, datasets, strict=True):
            for title, table in _tables(of, dataset):
                found.setdefault(title, {})[release] = table
        for title, tables in found.items():
            lines += _sections(title, tables)
    return document(of.name, f". Measured at commit {of.commit} by:", lines)


def _tables(of: ResultSet, dataset: Dataset) -> Iterator[tuple[str, Table]]:
    for name, wanted in of.metrics.items():
        metrics = wanted.split(", ")
        cases = [case for case in dataset.cases if case.experiment.name == name]
        if missing := sorted({*metrics} - {row.metric for row in dataset.rows}):
            raise UserError(f"{of.name}: {name} has no {missing[0]}: correct sets.toml.")
        names = ", ".join(f"`{each}`" for each in [name, *metrics[: len(metrics) == 1]])
        rows = [row for row in dataset.rows if row.case in cases and row.metric in metrics]
        table = row_table(dataset, rows) if dataset.further else _cases(of, dataset, cases, metrics)
        yield f"{cases[0].experiment.title} ({names})", table
    if spread := spread_table(dataset):
        yield spread.title, spread


def _sections(title: str, tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield the tables of releases: as one, side by side, if they have a row for each cell."""
    if len(tables) > 1 and all(not table.more and table.names == 1 for table in tables.values()):
        figures: dict[str, dict[str, str]] = {}
        for release, table in tables.items():
            heads = [f"{release}, {head}" for head in table.head[1:]]
            for cell, *of in table.rows:
                figures[cell] = figures.get(cell, {}) | dict(zip(heads, of, strict=True))
        heads = [*dict.fromkeys(head for of in figures.values() for head in of)]
        rows = [[cell, *(of.get(head, "") for head in heads)] for cell, of in figures.items()]
        tables = {"": Table("", ["cell", *heads], rows)}
    for release, table in tables.items():
        yield from ("", f"## {title}{f', {release}' if release else ''}", "", *markdown(table))


def _cases(of: ResultSet, dataset: Dataset, cases: Sequence[Case], metrics: Sequence[str]) -> Table:
    """Return a row for each case; with `changes`, for all together, and for the largest cases."""
    found = {(id(row.case), row.metric): row.arms for row in dataset.rows}
    figures = {id(case): [found.get((id(case), name), {}) for name in metrics] for case in cases}
    cases = [case for case in cases if any(figures[id(case)])]
    arms = dataset.arms(cases)
    together: Sequence[str] = ()
    if of.changes:
        together = (f"all {len(cases)}", "median change", "largest")[: 3 if len(arms) > 1 else 1]
        cases = sorted(cases, key=lambda case: -figures[id(case)][0][arms[0]])
    shown = cases[:_MOST] if of.changes else cases
    columns = [["cell", *together, *(_name(case, dataset) for case in shown)]]
    for (place, metric), arm in itertools.product(enumerate(metrics), arms):
        values = [figures[id(case)][place] for case in cases]
        if any(arm in each for each in values):
            head = arm if len(metrics) == 1 else f"{metric}, {arm}"
            all_of = _together(values, arms[0], arm)[: len(together)]
            shown_values = values[: len(shown)]
            cells = [_cell(each, arms[0], arm, percent=of.changes) for each in shown_values]
            columns.append([head, *all_of, *cells])
    names, *lines = zip(*columns, strict=True)
    return Table("", names, lines)


def _together(values: Sequence[Mapping[str, float]], base: str, arm: str) -> Sequence[str]:
    """Return the sum, and the median and the largest change; the sum's change but of `base`."""
    before, after = (sum(each.get(name, 0) for each in values) for name in (base, arm))
    if arm == base:
        return format_value(before), "", ""
    changes = [change_percent(each[base], each[arm]) or 0 for each in values if arm in each]
    of_all = change_percent(before, after) or 0
    return [*map(_signed, (of_all, statistics.median(changes), max(changes)))]


def _name(case: Case, dataset: Dataset) -> str:
    platforms = dataset.platforms()
    machine = case.platform.machine if len({each.machine for each in platforms}) > 1 else ""
    words = format_params(varying(case.experiment, case.params))
    return " ".join(filter(None, (machine, case.platform.setting, words))) or "all"


def _cell(values: Mapping[str, float], base: str, arm: str, *, percent: bool) -> str:
    """Return a value and its change, if it differs from `base`; with `percent` only the change."""
    value, before = values.get(arm), values.get(base)
    change = None if arm == base else change_percent(before, value)
    if percent and change is not None:
        return _signed(change)
    same = change is None or value == before
    return f"{format_value(value)}{'' if same else f' ({format_change(change)})'}"


def _signed(change: float) -> str:
    text = f"{change:+.1f}"
    return text.lstrip("+-") if float(text) == 0 else text


def _functions(of: ResultSet, datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield a table of the kernel's functions, with a column for each release and arm."""
    found: dict[str, Profile] = {}
    for release, dataset in zip(of.releases, datasets, strict=True):
        (case,) = dataset.cases
        profiles = profiles_of(case)
        found |= {f"{release}, {arm}": profile for arm, profile in profiles.items()}
        # The same number on all.
        unit, units = units_of(case, next(iter(profiles)))
    every = [row for row in compare_functions(found, units) if row.function != USER]
    every.sort(key=lambda row: (-max(row.values.values()), row.function))
    large = [row for row in every if max(row.values.values()) >= _LEAST]
    groups = [
        *((f"`{row.function}`", [row]) for row in large),
        (f"{len(every) - len(large)} others", every[len(large) :]),
        ("all of the kernel", every),
    ]
    lines = [
        [name, *(f"{sum(row.values[head] for row in rows):,.1f}" for head in found)]
        for name, rows in groups
    ]
    yield from ("", f"## Kernel instructions per {unit}, by function", "")
    yield from markdown(Table("", ["function", *found], lines))
