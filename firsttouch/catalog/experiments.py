# SPDX-License-Identifier: GPL-2.0
"""Experiments: the question, the parameters, the metrics and the published figures answered.

Each is one file, experiments/NAME.toml, which catalog/experiment_files.py
reads; docs/how-to/adding.md walks through one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from firsttouch.catalog.arms import BASE

Value = str | int
Params = Mapping[str, Value]


@dataclass(frozen=True)
class Metric:
    """A metric of an experiment; the table on the terminal has it if `shown`."""

    name: str
    unit: str
    shown: bool = False


PAGES = "pages"
BASE_PAGES = "base_pages"


@dataclass(frozen=True)
class Derived:
    """A quotient of two metrics, `of` / `per`, for the table on the terminal and the report.

    `per` may be `PAGES` instead of a metric: pages of the size that the cell
    asks for. `BASE_PAGES` are pages of 4 KiB, whatever it asks for.

    `above` has the parameters of another cell of the same arm, the floor. If it
    is set, the figure is (`of` - `of` of the floor) / (`per` of the floor). The
    floor itself has no such figure.
    """

    name: str
    unit: str
    of: str
    per: str
    above: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Drawn:
    """A figure of the report: a metric of the cells that match `where`, divided by `per` if set.

    `per` is `PAGES` as in `Derived`, another metric, or a parameter that is a number.
    Each cell has a row, and `groups` are the parameters whose values each have a heading;
    or the values are drawn `across` a parameter that is a number, in a figure for each
    combination of the others. A line joins an arm's values if they are `joined`;
    otherwise the numbers are names, and a table has the spread of each arm's values.
    `mark` names a property of the machine, such as ``@l1d.ways``, which is marked.
    """

    metric: str
    caption: str
    per: str = ""
    groups: tuple[str, ...] = ()
    where: Params = field(default_factory=dict)
    across: str = ""
    joined: bool = True
    mark: str = ""


@dataclass(frozen=True)
class Published:
    """A published figure: the change from stock in per cent, as its author says it.

    It is about the cells whose parameters match `where`. It is reproduced if the
    change is within `tolerance` percentage points of `change`, or, where
    `at_most` is set instead, does not exceed that.
    `remark` is the end of a sentence; it says why the laboratory may measure
    something else. A `time` is set beside a count and not judged.
    """

    metric: str
    where: Params
    figure: str
    source: str
    change: float | None
    at_most: float | None
    tolerance: float = 0.0
    remark: str = ""
    time: bool = False


# Debian's name of the guests' architecture.
ARM64 = "arm64"


@dataclass(frozen=True)
class Packages:
    """Debian packages, such as those on a guest's disk, and the suite that they come from."""

    suite: str
    names: tuple[str, ...]
    architecture: str = ARM64


# Experiments without an `order` come after those that have one.
_LAST = 1000


@dataclass(frozen=True)
class Experiment:
    """An experiment of the laboratory; experiments are reported by `order`, then by name.

    `runs`: the experiment of ftbench that it runs, usually of the same name.
    `parameters`: the values of each parameter; every combination is a cell.
    Values that begin with ``@`` come from the machine (see
    catalog/machines.py). `compare`: the arm whose change against stock
    is reported. `file_size`: the parameter with the size of a file on the
    guest's disk. `root`: the packages on the guest's disk, in place of such a
    file. `one_guest`: all cells of an arm and a machine run one after the
    other in one guest, because earlier cells do not affect later ones.
    `scripts`: what a shell runs, by the value of the parameter ``program``.
    `cited`: published figures that are not a change from stock to `compare`;
    the report shows them, with their source, beside what is measured.
    `chart`: the picture in the report, unless `figures` say what it shows. `quick`: the
    values that `firsttouch lab --quick` uses instead of those in `parameters`; an experiment
    where it is None has no quick form.
    `layouts`: how many layouts (lab/cells.py) each cell runs in.
    """

    name: str
    runs: str
    title: str
    question: str
    arms: tuple[str, ...]
    compare: str
    parameters: Mapping[str, tuple[Value, ...]]
    file_size: str | None
    root: Packages | None
    scripts: Mapping[str, str]
    metrics: tuple[Metric, ...]
    published: tuple[Published, ...]
    chart: str
    order: int = _LAST
    default: bool = False
    options: tuple[str, ...] = ()
    one_guest: bool = False
    derived: tuple[Derived, ...] = ()
    cited: tuple[str, ...] = ()
    quick: Mapping[str, tuple[Value, ...]] | None = None
    layouts: int = 1
    figures: tuple[Drawn, ...] = ()

    def quickly(self) -> Experiment:
        """Return the quick form: the arms stock and `compare`, the values in `quick`, 1 layout."""
        arms = tuple(arm for arm in self.arms if arm in (BASE, self.compare))
        parameters = {**self.parameters, **(self.quick or {})}
        return replace(self, arms=arms, parameters=parameters, layouts=1)

    def combinations(self) -> list[Params]:
        """Return the parameters of each cell, in the order in which they are reported."""
        return [
            dict(zip(self.parameters, values, strict=True))
            for values in itertools.product(*self.parameters.values())
        ]

    def shown(self) -> list[str]:
        """Return the names of the metrics, measured and derived, that tables have."""
        metrics = [metric.name for metric in self.metrics if metric.shown]
        return metrics + [figure.name for figure in self.derived]

    def figure(self, metric: str, params: Params) -> Published | None:
        """Return the published figure about `metric` of the cell with `params`, if any."""
        for published in self.published:
            if published.metric == metric and published.where.items() <= params.items():
                return published
        return None

    def place(self, params: Params) -> Sequence[tuple[int, int, str]]:
        """Return the sort key of a cell's parameters: values sort in the order of their list."""
        places = []
        for name, listed in self.parameters.items():
            value = params.get(name, "")
            place = listed.index(value) if value in listed else len(listed)
            places.append((place, value if isinstance(value, int) else 0, str(value)))
        return places
