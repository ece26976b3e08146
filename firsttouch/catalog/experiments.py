# SPDX-License-Identifier: GPL-2.0
"""Experiments: the question, the parameters, the metrics and the published figures answered.

Each is one file, experiments/NAME.toml, which catalog/experiment_files.py
reads; docs/adding.md walks through one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firsttouch.catalog.arms import BASE

Value = str | int
Params = Mapping[str, Value]


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
    `remark` says why the laboratory may measure something else; it is the end
    of a sentence.
    """

    metric: str
    where: Params
    figure: str
    source: str
    change: float | None
    tolerance: float
    at_most: float | None
    remark: str = ""


@dataclass(frozen=True)
class Packages:
    """Debian packages for arm64 that a guest finds on its disk, and the suite they come from."""

    suite: str
    names: tuple[str, ...]


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
    (see catalog/machine_values.py). `cited` are published figures that are
    no change from stock to `compare`: shown, with their source, beside what is
    measured. `chart` names the picture in the report: a special one, or one
    of the two that any experiment can have, ``dumbbells`` and ``lines``.
    `quick` has the values that `firsttouch lab --quick` uses instead of those
    of `parameters`; an experiment where it is None has no quick form.
    """

    name: str
    runs: str
    title: str
    question: str
    order: int
    default: bool
    arms: tuple[str, ...]
    compare: str
    parameters: Mapping[str, tuple[Value, ...]]
    options: tuple[str, ...]
    file_size: str | None
    root: Packages | None
    one_guest: bool
    metrics: tuple[Metric, ...]
    derived: tuple[Derived, ...]
    published: tuple[Published, ...]
    cited: tuple[str, ...]
    chart: str
    quick: Mapping[str, tuple[Value, ...]] | None = None

    def quickly(self) -> Experiment:
        """Return the experiment in its quick form: fewest cells, smaller, stock and `compare`."""
        arms = tuple(arm for arm in self.arms if arm in (BASE, self.compare))
        parameters = {**self.parameters, **(self.quick or {})}
        return replace(self, arms=arms, parameters=parameters)

    def combinations(self) -> list[Params]:
        """Return the parameters of each cell, in the order in which they are reported."""
        return [
            dict(zip(self.parameters, values, strict=True))
            for values in itertools.product(*self.parameters.values())
        ]

    def shown(self) -> list[str]:
        """Return the metrics, measured and derived, that stand in tables."""
        metrics = [metric.name for metric in self.metrics if metric.shown]
        return metrics + [figure.name for figure in self.derived]

    def claim(self, metric: str, params: Params) -> Published | None:
        """Return the published figure that answers to `metric` of the cell with `params`."""
        for published in self.published:
            if published.metric == metric and published.where.items() <= params.items():
                return published
        return None

    def place(self, params: Params) -> Sequence[tuple[int, int, str]]:
        """Return what a cell's parameters sort by: the order in which the values are listed."""
        places = []
        for name, listed in self.parameters.items():
            value = params.get(name, "")
            place = listed.index(value) if value in listed else len(listed)
            places.append((place, value if isinstance(value, int) else 0, str(value)))
        return places
