# SPDX-License-Identifier: GPL-2.0
"""Experiments: the question, the parameters, the metrics and the published figures answered.

Each is one file, experiments/NAME.toml; docs/adding.md walks through one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from firsttouch.arms import ARMS
from firsttouch.disks import RootDisk
from firsttouch.errors import nearest
from firsttouch.quantities import parse_size
from firsttouch.schema import Table, names_in, read_named
from firsttouch.sources import REPOSITORY

# Experiments that ask for no place of their own come after those that do.
_LAST = 1000

Value = str | int
Params = dict[str, Value]


@dataclass(frozen=True)
class Metric:
    """A metric of an experiment; `shown` ones stand in the table on the terminal."""

    name: str
    unit: str
    shown: bool


@dataclass(frozen=True)
class Derived:
    """A quotient of two metrics, `of` by `per`, for the table on the terminal and the report.

    Where `above` is set, the same arm's figures in the cell with those
    parameters are a floor: what `of` is above the floor's, by the floor's
    `per`. The cell that is the floor itself has no such figure.
    """

    name: str
    unit: str
    of: str
    per: str
    above: Params


@dataclass(frozen=True)
class Published:
    """A figure that was published, as a claim on the change from stock in per cent.

    The claim holds for the cells whose parameters match `where`. It is
    reproduced if the change is within `tolerance` percentage points of
    `change`; where `at_most` is set, if the change does not exceed it.
    """

    metric: str
    where: Params
    figure: str
    source: str
    change: float | None
    tolerance: float
    at_most: float | None


@dataclass(frozen=True)
class Experiment:
    """An experiment of the laboratory; they are reported by `order`, then by name.

    `parameters` maps each name to the values it takes; every combination is
    a cell. `runs` is what ftbench is asked for: the experiment's own name,
    unless it looks at another one in its own way. `compare` is the arm whose
    change against stock is reported. `file_size` names the parameter that
    sizes a file on the guest's disk; `root` is a disk with programs for it
    instead. `one_guest`: all cells of an arm and a
    machine run in one guest, one after the other, where what ran before
    does not matter to them. Values that begin with ``@`` come from the machine
    (see firsttouch/machine_values.py). `cited` are published figures that are
    no change from stock to `compare`: shown, with their source, beside what is
    measured.
    """

    name: str
    runs: str
    title: str
    question: str
    order: int
    default: bool
    arms: tuple[str, ...]
    compare: str
    parameters: dict[str, tuple[Value, ...]]
    options: tuple[str, ...]
    file_size: str | None
    root: RootDisk | None
    one_guest: bool
    metrics: tuple[Metric, ...]
    derived: tuple[Derived, ...]
    published: tuple[Published, ...]
    cited: tuple[str, ...]

    def combinations(self) -> list[Params]:
        """Return the parameters of each cell, in the order in which they are reported."""
        return [
            dict(zip(self.parameters, values, strict=True))
            for values in itertools.product(*self.parameters.values())
        ]

    def claim(self, metric: str, params: Params) -> Published | None:
        """Return the published figure that answers to `metric` of the cell with `params`."""
        for published in self.published:
            if published.metric == metric and published.where.items() <= params.items():
                return published
        return None


def experiment_names(folder: Path = REPOSITORY / "experiments") -> list[str]:
    """Return the names of all experiments."""
    return names_in(folder)


def load_experiment(name: str, folder: Path = REPOSITORY / "experiments") -> Experiment:
    """Return experiment `name`; UserError if there is none, or its file is wrong."""
    table = read_named("experiment", name, folder)
    arms = table.strings("arms", ["stock", "on"])
    for arm in arms:
        if arm not in ARMS:
            raise table.error("arms", f"names {arm!r}: {nearest(arm, ARMS)}")
    experiment = Experiment(
        name=name,
        runs=table.take("runs", str, name),
        title=table.take("title", str),
        question=table.take("question", str),
        order=table.take("order", int, _LAST),
        default=table.take("default", bool, False),
        arms=arms,
        compare=table.choice("compare", tuple(ARMS), "on"),
        parameters=_parameters(table.table("parameters")),
        options=table.strings("options", []),
        file_size=table.take("file_size", str, "") or None,
        root=_root(table),
        one_guest=table.take("one_guest", bool, False),
        metrics=tuple(_metrics(table)),
        derived=tuple(_derived(table)),
        published=tuple(_published(table)),
        cited=table.strings("cited", []),
    )
    table.done()
    if experiment.file_size and experiment.file_size not in experiment.parameters:
        raise table.error(
            "file_size",
            f"is {experiment.file_size!r}: {nearest(experiment.file_size, experiment.parameters)}",
        )
    _check_references(table, experiment)
    return experiment


def _check_references(table: Table, experiment: Experiment) -> None:
    """Raise UserError if a derived or published figure names what the experiment has not."""
    metrics = [metric.name for metric in experiment.metrics]
    derived = [figure.name for figure in experiment.derived]
    named: list[tuple[str, str, list[str]]] = []
    for number, figure in enumerate(experiment.derived):
        named += [
            (f"derived[{number}].{key}", getattr(figure, key), metrics) for key in ("of", "per")
        ]
        named += [
            (f"derived[{number}].above.{key}", key, list(experiment.parameters))
            for key in figure.above
        ]
    for number, claim in enumerate(experiment.published):
        named.append((f"published[{number}].metric", claim.metric, metrics + derived))
        named += [
            (f"published[{number}].where.{key}", key, list(experiment.parameters))
            for key in claim.where
        ]
    for place, name, known in named:
        if name not in known:
            what = "is not a parameter" if place.endswith(f".{name}") else f"is {name!r}"
            raise table.error(place, f"{what}: {nearest(name, known)}")


def _parameters(table: Table) -> dict[str, tuple[Value, ...]]:
    parameters = {}
    for name, values in table.items().items():
        entries = values if isinstance(values, list) else [values]
        if not entries or not all(
            isinstance(entry, (str, int)) and not isinstance(entry, bool) for entry in entries
        ):
            raise table.error(name, "must be a value or a list of values, strings or numbers.")
        if name == "size":
            try:
                entries = [parse_size(entry) for entry in entries]
            except ValueError as error:
                raise table.error(name, f"cannot be read: {error}.") from None
        parameters[name] = tuple(entries)
    return parameters


def _root(table: Table) -> RootDisk | None:
    if not table.has("root"):
        return None
    entry = table.table("root")
    root = RootDisk(entry.take("suite", str), entry.strings("packages"))
    entry.done()
    return root


def _metrics(table: Table) -> list[Metric]:
    metrics = []
    for entry in table.tables("metrics"):
        metrics.append(
            Metric(
                entry.take("name", str), entry.take("unit", str), entry.take("shown", bool, False)
            )
        )
        entry.done()
    if not metrics:
        raise table.error("metrics", "is missing: add one [[metrics]] table per metric.")
    return metrics


def _derived(table: Table) -> list[Derived]:
    derived = []
    for entry in table.tables("derived"):
        figure = Derived(
            name=entry.take("name", str),
            unit=entry.take("unit", str),
            of=entry.take("of", str),
            per=entry.take("per", str),
            above=entry.table("above").items(),
        )
        entry.done()
        derived.append(figure)
    return derived


def _published(table: Table) -> list[Published]:
    published = []
    for entry in table.tables("published"):
        where = entry.table("where").items()
        claim = Published(
            metric=entry.take("metric", str),
            where=where,
            figure=entry.take("figure", str),
            source=entry.take("source", str),
            change=entry.take("change_percent", float) if entry.has("change_percent") else None,
            tolerance=entry.take("tolerance", float, 0.0),
            at_most=entry.take("at_most_percent", float) if entry.has("at_most_percent") else None,
        )
        entry.done()
        if (claim.change is None) == (claim.at_most is None):
            raise entry.error(
                "change_percent", "or at_most_percent: give one of the two, to say what is claimed."
            )
        published.append(claim)
    return published
