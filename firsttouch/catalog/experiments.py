# SPDX-License-Identifier: GPL-2.0
"""Experiments: the question, the parameters, the metrics and the published figures answered.

Each is one file, experiments/NAME.toml; docs/how-to/adding.md walks through one. A Catalog has
the experiments, machines and arms that a run or a set of results is about.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.catalog.arms import BASE, Arm, load_arm
from firsttouch.catalog.machines import Machine, load_machine
from firsttouch.errors import UserError, nearest
from firsttouch.files import ARMS, EXPERIMENTS, MACHINES
from firsttouch.quantities import parse_size
from firsttouch.tables import Fields, names_in, read, read_named

Value = str | int
Params = Mapping[str, Value]


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    shown: bool = False


PAGES = "pages"
BASE_PAGES = "base_pages"


@dataclass(frozen=True)
class Derived:
    """A quotient of two metrics, `of` / `per`, for the table on the terminal and the report.

    `per` may be `PAGES` of the size that the cell asks for, or `BASE_PAGES` of 4 KiB. `above` has
    the parameters of another cell of the same arm, the floor: the figure is
    (`of` - `of` of the floor) / (`per` of the floor), and the floor itself has none.
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
    Each cell has a row, and `groups` are the parameters whose values each have a heading.
    """

    metric: str
    caption: str
    per: str = ""
    groups: tuple[str, ...] = ()
    where: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """A published figure about the cells that match `where`: the change from stock in per cent.

    It is reproduced if the change is within `tolerance` percentage points of `change_percent`, or
    at most `tolerance` if that is 0, a claim that there is no regression. `remark`, the end of a
    sentence, says why the laboratory may measure something else. A `time` is not judged by counts.
    """

    metric: str
    where: Params
    figure: str
    source: str
    change_percent: float
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


@dataclass(frozen=True)
class UserProgram:
    """A command of the user's by its `words`, and the guest for it.

    The guest's root has Debian's `packages`, or the contents of `root`, a folder or a tar; the
    files `copies` are in the working directory. `memory` is in bytes, divided among NUMA `nodes`.
    """

    words: tuple[str, ...]
    packages: Packages | None = None
    root: Path | None = None
    copies: tuple[Path, ...] = ()
    cpus: int = 1
    memory: int = 4 << 30
    input: Path | None = None
    nodes: int = 1

    @property
    def name(self) -> str:
        """The command's name, as a word that ftbench takes."""
        return re.sub(r"[^\w.+-]", "_", self.words[0].rpartition("/")[2]) or "program"

    def command(self, release: str, arm: str) -> str:
        """Return the shell command that counts it on the kernel of a release and an arm."""
        words = ["firsttouch", "count", "--release", release, "--arm", arm]
        if self.packages:
            words += ["--packages", ",".join(self.packages.names)]
        words += ["--root", str(self.root)] if self.root else []
        words += [word for file in self.copies for word in ("--copy", str(file))]
        words += ["--nodes", str(self.nodes)] * (self.nodes > 1)
        words += ["--cpus", str(self.cpus), "--memory", str(self.memory), "--", *self.words]
        return shlex.join(words) + (f" <{shlex.quote(str(self.input))}" if self.input else "")


@dataclass(frozen=True)
class Experiment:
    """An experiment of the laboratory; experiments are reported by `order`, then by name.

    `runs`: the experiment of ftbench that it runs. `parameters`: every combination of their values
    is a cell; those that begin with ``@`` come from the machine: `expand`. `compare`:
    the arm whose change against stock is reported. `file_size`: the parameter with the size of a
    file on the guest's disk; `root`: packages there instead. `one_guest`: all cells of an arm and
    a machine run in one guest, because earlier cells do not affect later ones. `scripts`: what a
    shell runs, by the value of the parameter ``program``. `cited`: published figures that are no
    change from stock to `compare`. `quick`: the values of --quick; None: no quick form. `program`:
    the user's, which is in no file.
    """

    name: str
    runs: str
    title: str
    question: str
    parameters: Mapping[str, tuple[Value, ...]]
    file_size: str | None
    root: Packages | None
    scripts: Mapping[str, str]
    metrics: tuple[Metric, ...]
    arms: tuple[str, ...] = ("stock", "on")
    compare: str = "on"
    published: tuple[Published, ...] = ()
    # Those without one come last.
    order: int = 1000
    default: bool = False
    options: tuple[str, ...] = ()
    one_guest: bool = False
    derived: tuple[Derived, ...] = ()
    cited: tuple[str, ...] = ()
    quick: Mapping[str, tuple[Value, ...]] | None = None
    figure: tuple[Drawn, ...] = ()
    program: UserProgram | None = None

    def of_program(self, program: UserProgram) -> Experiment:
        """Return the experiment with cells that run `program`."""
        parameters = {**self.parameters, "program": (program.name,), "cpus": (program.cpus,)}
        # ftbench reads words that end in NUL.
        scripts = {program.name: "".join(f"{word}\0" for word in program.words)}
        return replace(self, parameters=parameters, scripts=scripts, program=program)

    def quickly(self) -> Experiment:
        """Return the quick form: the arms stock and `compare`, the values in `quick`."""
        arms = tuple(arm for arm in self.arms if arm in (BASE, self.compare))
        parameters = {**self.parameters, **(self.quick or {})}
        return replace(self, arms=arms, parameters=parameters)

    def combinations(self) -> list[Params]:
        return [
            dict(zip(self.parameters, values, strict=True))
            for values in itertools.product(*self.parameters.values())
        ]

    def shown(self) -> list[str]:
        """Return the names of the metrics, measured and derived, that tables have."""
        metrics = [metric.name for metric in self.metrics if metric.shown]
        return metrics + [figure.name for figure in self.derived]


def load_experiment(name: str, folder: Path = EXPERIMENTS) -> Experiment:
    """Return experiment `name`; UserError if there is no such experiment, or its file is wrong."""
    table = read_named("experiment", name, folder)
    programs = table
    if table.has("scripts_of"):
        owner = table.choice("scripts_of", names_in(folder))
        programs = read_named("experiment", owner, folder)
    scripts = programs.table("scripts").values_of(str)
    if not table.tables("metrics"):
        raise table.error("metrics", "is missing: add one [[metrics]] table per metric.")
    experiment = read(
        table,
        Experiment,
        name=name,
        runs=table.take("runs", str, name),
        parameters={
            **({"program": tuple(scripts)} if scripts else {}),
            **_parameters(table.table("parameters")),
        },
        root=_root(programs),
        scripts=scripts,
        quick=_parameters(table.table("quick")) if table.has("quick") else None,
    )
    if scripts and not experiment.root:
        raise table.error("scripts", "has no packages to run on: add [root].")
    for place, wanted, allowed in _references(experiment):
        for each in wanted:
            if each not in allowed:
                raise table.error(place, f"names {each!r}: {nearest(each, allowed)}")
    return experiment


def _references(
    experiment: Experiment,
) -> Iterator[tuple[str, Collection[str], Collection[str]]]:
    """Yield the names of arms, metrics and parameters in the file: key, names, what they may be."""
    metrics = [metric.name for metric in experiment.metrics]
    derived = [figure.name for figure in experiment.derived]
    parameters = list(experiment.parameters)
    yield "arms", experiment.arms, names_in(ARMS)
    yield "compare", [experiment.compare], names_in(ARMS)
    yield "file_size", [experiment.file_size] if experiment.file_size else [], parameters
    yield "quick", experiment.quick or (), parameters
    known = {
        "of": metrics, "per": [PAGES, BASE_PAGES, *metrics, *parameters],
        "above": parameters, "groups": parameters, "where": parameters,
    }  # fmt: skip
    for key, tables, measured in (
        ("derived", experiment.derived, metrics),
        ("figure", experiment.figure, metrics),
        ("published", experiment.published, metrics + derived),
    ):
        for number, table in enumerate(tables):
            for name, allowed in {**known, "metric": measured}.items():
                named = getattr(table, name, "") or ()
                names = [named] if isinstance(named, str) else named
                yield f"{key}[{number}].{name}", names, allowed


def _parameters(table: Fields) -> dict[str, tuple[Value, ...]]:
    parameters = table.values_of(tuple[Value, ...])
    if empty := [name for name, values in parameters.items() if not values]:
        raise table.error(empty[0], "is an empty list: give at least one value.")
    try:
        return {
            name: tuple(map(parse_size, values)) if name == "size" else values
            for name, values in parameters.items()
        }
    except ValueError as error:
        raise table.error("size", f"cannot be read: {error}.") from None


def _root(table: Fields) -> Packages | None:
    if not table.has("root"):
        return None
    entry = table.table("root")
    return read(entry, Packages, names=entry.strings("packages"), architecture=ARM64)


def expand(params: Params, machine: Machine) -> list[Params]:
    """Return `params` with the values of `machine` for ``@CACHE.PROPERTY``, in each combination.

    CACHE is ``l1d`` or ``l2`` of the first CPU, where experiments run, or ``level`` for the one
    that the parameter ``level`` names. Raises UserError for one that the machine lacks.
    """
    caches = {"l1d": machine.cpus[0].l1d, "l2": machine.cpus[0].l2}
    known = {f"@{name}.{key}": values for name, cache in caches.items() if cache
             for key, values in cache.values.items()}  # fmt: skip
    choices: list[Sequence[Value]] = []
    for value in params.values():
        text = str(value).replace("@level.", f"@{params.get('level')}.")
        if text.startswith("@") and text not in known:
            raise UserError(f"{text}: machine {machine.name} has none; {nearest(text, known)}")
        choices.append(known.get(text, [value]))
    return [dict(zip(params, values, strict=True)) for values in itertools.product(*choices)]


@dataclass(frozen=True)
class Catalog:
    """Experiments in the order in which they are reported, machines and arms, by name."""

    experiments: Mapping[str, Experiment]
    machines: Mapping[str, Machine]
    arms: Mapping[str, Arm]

    def adding(self, arms: Iterable[Arm]) -> Catalog:
        return replace(self, arms={**self.arms, **{arm.name: arm for arm in arms}})

    def arm_order(self, name: str) -> tuple[int, str]:
        return self.arms[name].order, name


def load_catalog(
    experiments: Iterable[str], machines: Iterable[str], arms: Iterable[str]
) -> Catalog:
    """Load these names; one without a file, which results may have, is left out."""
    loaded = map(load_experiment, {*experiments} & {*names_in(EXPERIMENTS)})
    return Catalog(
        {each.name: each for each in sorted(loaded, key=lambda each: (each.order, each.name))},
        {name: load_machine(name) for name in sorted({*machines} & {*names_in(MACHINES)})},
        {name: load_arm(name) for name in sorted({*arms} & {*names_in(ARMS)})},
    )
