# SPDX-License-Identifier: GPL-2.0
"""Reads experiments/NAME.toml, and checks every key and every name that it refers to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.experiments import (
    ARM64,
    BASE_PAGES,
    PAGES,
    Drawn,
    Experiment,
    Metric,
    Packages,
    Published,
    Value,
)
from firsttouch.catalog.machine_values import MARKS
from firsttouch.errors import nearest
from firsttouch.places import EXPERIMENTS
from firsttouch.quantities import parse_size
from firsttouch.tables import Table, names_in, read, read_named

# The first two draw any experiment, the last one samples of faults.
CHARTS = ("dumbbells", "lines", "timeline")


def experiment_names(folder: Path = EXPERIMENTS) -> list[str]:
    """Return the names of all experiments."""
    return names_in(folder)


def load_experiment(name: str, folder: Path = EXPERIMENTS) -> Experiment:
    """Return experiment `name`; UserError if there is no such experiment, or its file is wrong."""
    table = read_named("experiment", name, folder)
    names = arm_names()
    arms = table.strings("arms", ("stock", "on"))
    for arm in arms:
        if arm not in names:
            raise table.error("arms", f"names {arm!r}: {nearest(arm, names)}")
    programs = table
    if table.has("scripts_of"):
        owner = table.choice("scripts_of", experiment_names(folder))
        programs = read_named("experiment", owner, folder)
    scripts = {name: str(text) for name, text in programs.table("scripts").scalars().items()}
    experiment = read(
        table,
        Experiment,
        name=name,
        runs=table.take("runs", str, name),
        arms=arms,
        compare=table.choice("compare", names, "on"),
        parameters={
            **({"program": tuple(scripts)} if scripts else {}),
            **_parameters(table.table("parameters")),
        },
        root=_root(programs),
        scripts=scripts,
        metrics=_metrics(table),
        published=tuple(_published(table)),
        chart=table.choice("chart", CHARTS, CHARTS[0]),
        quick=_parameters(table.table("quick")) if table.has("quick") else None,
        figures=tuple(read(entry, Drawn) for entry in table.tables("figure")),
    )
    if experiment.figures and table.has("chart"):
        raise table.error("chart", "chooses the figure that [[figure]] describes: leave one out.")
    if experiment.file_size and experiment.file_size not in experiment.parameters:
        raise table.error(
            "file_size",
            f"is {experiment.file_size!r}: {nearest(experiment.file_size, experiment.parameters)}",
        )
    if experiment.layouts < 1:
        raise table.error("layouts", f"is {experiment.layouts}: give how many, at least 1.")
    if scripts and not experiment.root:
        raise table.error("scripts", "has no packages to run on: add [root].")
    _check_references(table, experiment)
    _check_quick(table, experiment)
    return experiment


def _check_quick(table: Table, experiment: Experiment) -> None:
    """Raise UserError if the quick form has a parameter that the experiment does not have."""
    for name in experiment.quick or ():
        if name not in experiment.parameters:
            near = nearest(name, experiment.parameters)
            raise table.error(f"quick.{name}", f"is not a parameter: {near}")


def _check_references(table: Table, experiment: Experiment) -> None:
    """Raise UserError if a figure of any kind names an unknown metric or parameter."""
    metrics = [metric.name for metric in experiment.metrics]
    derived = [figure.name for figure in experiment.derived]
    named: list[tuple[str, str, list[str]]] = []
    for number, figure in enumerate(experiment.derived):
        named += [
            (f"derived[{number}].of", figure.of, metrics),
            (f"derived[{number}].per", figure.per, [*metrics, PAGES, BASE_PAGES]),
        ]
        named += [
            (f"derived[{number}].above.{key}", key, list(experiment.parameters))
            for key in figure.above
        ]
    for number, published in enumerate(experiment.published):
        named.append((f"published[{number}].metric", published.metric, metrics + derived))
        named += [
            (f"published[{number}].where.{key}", key, list(experiment.parameters))
            for key in published.where
        ]
    for number, drawn in enumerate(experiment.figures):
        named.append((f"figure[{number}].metric", drawn.metric, metrics))
        parameters = list(experiment.parameters)
        for key, given, allowed in (
            ("per", drawn.per, [PAGES, *metrics, *parameters]),
            ("across", drawn.across, parameters),
            ("mark", drawn.mark, MARKS),
        ):
            named += [(f"figure[{number}].{key}", given, allowed)] if given else []
        named += [(f"figure[{number}].groups", name, parameters) for name in drawn.groups]
        named += [(f"figure[{number}].where.{key}", key, parameters) for key in drawn.where]
        if drawn.across and all(
            isinstance(value, str) and not value.startswith("@") and not value[:1].isdigit()
            for value in experiment.parameters.get(drawn.across, (0,))
        ):
            raise table.error(
                f"figure[{number}].across", f"is {drawn.across!r}, which has no numbers."
            )
    for place, name, allowed in named:
        if name not in allowed:
            what = "is not a parameter" if place.endswith(f".{name}") else f"is {name!r}"
            raise table.error(place, f"{what}: {nearest(name, allowed)}")


def _parameters(table: Table) -> dict[str, tuple[Value, ...]]:
    parameters: dict[str, tuple[Value, ...]] = {}
    for name, values in table.lists().items():
        if name == "size":
            try:
                parameters[name] = tuple(parse_size(value) for value in values)
            except ValueError as error:
                raise table.error(name, f"cannot be read: {error}.") from None
        else:
            parameters[name] = values
    return parameters


def _root(table: Table) -> Packages | None:
    if not table.has("root"):
        return None
    entry = table.table("root")
    return read(entry, Packages, names=entry.strings("packages"), architecture=ARM64)


def _metrics(table: Table) -> tuple[Metric, ...]:
    metrics = tuple(read(entry, Metric) for entry in table.tables("metrics"))
    if not metrics:
        raise table.error("metrics", "is missing: add one [[metrics]] table per metric.")
    return metrics


def _published(table: Table) -> Iterator[Published]:
    for entry in table.tables("published"):
        change, at_most = (
            entry.optional(key, float) for key in ("change_percent", "at_most_percent")
        )
        published = read(entry, Published, change=change, at_most=at_most)
        if (published.change is None) == (published.at_most is None):
            raise entry.error(
                "change_percent", "or at_most_percent: give one of the two, which is the claim."
            )
        yield published
