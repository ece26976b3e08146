# SPDX-License-Identifier: GPL-2.0
"""Reads experiments/NAME.toml, and checks every key and every name that it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from firsttouch.catalog.machines import MARKS
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
    if not table.tables("metrics"):
        raise table.error("metrics", "is missing: add one [[metrics]] table per metric.")
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
        metrics=tuple(read(entry, Metric) for entry in table.tables("metrics")),
        published=tuple(_published(table)),
        chart=table.choice("chart", CHARTS, CHARTS[0]),
        quick=_parameters(table.table("quick")) if table.has("quick") else None,
        figures=tuple(read(entry, Drawn) for entry in table.tables("figure")),
    )
    if experiment.figures and table.has("chart"):
        raise table.error("chart", "chooses the figure that [[figure]] describes: leave one out.")
    if experiment.layouts < 1:
        raise table.error("layouts", f"is {experiment.layouts}: give how many, at least 1.")
    if scripts and not experiment.root:
        raise table.error("scripts", "has no packages to run on: add [root].")
    for place, wanted, allowed in _references(experiment):
        if wanted not in allowed:
            what = "is not a parameter" if place.endswith(f".{wanted}") else f"is {wanted!r}"
            raise table.error(place, f"{what}: {nearest(wanted, allowed)}")
    for number, drawn in enumerate(experiment.figures):
        if drawn.across and all(
            isinstance(value, str) and not value.startswith("@") and not value[:1].isdigit()
            for value in experiment.parameters[drawn.across]
        ):
            raise table.error(
                f"figure[{number}].across", f"is {drawn.across!r}, which has no numbers."
            )
    return experiment


def _references(experiment: Experiment) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield each name of a metric or parameter in the file: its key, the name, what it may be."""
    metrics = [metric.name for metric in experiment.metrics]
    derived = [figure.name for figure in experiment.derived]
    parameters = list(experiment.parameters)
    if experiment.file_size:
        yield "file_size", experiment.file_size, parameters
    for number, figure in enumerate(experiment.derived):
        yield f"derived[{number}].of", figure.of, metrics
        yield f"derived[{number}].per", figure.per, [*metrics, PAGES, BASE_PAGES]
        yield from ((f"derived[{number}].above.{key}", key, parameters) for key in figure.above)
    for number, published in enumerate(experiment.published):
        yield f"published[{number}].metric", published.metric, metrics + derived
        yield from (
            (f"published[{number}].where.{key}", key, parameters) for key in published.where
        )
    for number, drawn in enumerate(experiment.figures):
        yield f"figure[{number}].metric", drawn.metric, metrics
        if drawn.per:
            yield f"figure[{number}].per", drawn.per, [PAGES, *metrics, *parameters]
        if drawn.across:
            yield f"figure[{number}].across", drawn.across, parameters
        if drawn.mark:
            yield f"figure[{number}].mark", drawn.mark, MARKS
        yield from ((f"figure[{number}].groups", name, parameters) for name in drawn.groups)
        yield from ((f"figure[{number}].where.{key}", key, parameters) for key in drawn.where)
    yield from ((f"quick.{name}", name, parameters) for name in experiment.quick or ())


def _parameters(table: Table) -> dict[str, tuple[Value, ...]]:
    parameters = table.lists()
    try:
        return {
            name: tuple(map(parse_size, values)) if name == "size" else values
            for name, values in parameters.items()
        }
    except ValueError as error:
        raise table.error("size", f"cannot be read: {error}.") from None


def _root(table: Table) -> Packages | None:
    if not table.has("root"):
        return None
    entry = table.table("root")
    return read(entry, Packages, names=entry.strings("packages"), architecture=ARM64)


def _published(table: Table) -> Iterator[Published]:
    for entry in table.tables("published"):
        change, at_most = (
            entry.optional(key, float) for key in ("change_percent", "at_most_percent")
        )
        if (change is None) == (at_most is None):
            raise entry.error(
                "change_percent", "or at_most_percent: give one of the two, which is the claim."
            )
        yield read(entry, Published, change=change, at_most=at_most)
