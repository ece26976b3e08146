# SPDX-License-Identifier: GPL-2.0
"""The plan of a run: the cells of a request, checked before anything is built."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.building.overlay import patches_of
from firsttouch.catalog.arms import BARE, BASE, CONTROL, Arm, Setting, load_arm, matrix_settings
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import (
    Catalog,
    Experiment,
    Params,
    UserProgram,
    expand,
    load_catalog,
    load_experiment,
)
from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, load_release, release_names
from firsttouch.catalog.machines import DEFAULT_MACHINE, Machine, load_machine
from firsttouch.errors import UserError, nearest
from firsttouch.files import ARMS, EXPERIMENTS
from firsttouch.lab.cells import Cell
from firsttouch.quantities import format_list, format_size, parse_size
from firsttouch.tables import names_in
from firsttouch.vm.guest import MEMORY

DEFAULT_RELEASE = "6.12"
# The largest mapping, in bytes: a guest also has the kernel, its struct pages, and programs.
_LARGEST = MEMORY - (512 << 20)
# The experiment that runs a program of the user's.
COUNT = "count"
# Its parameter: whether a run is traced for the instructions of each process.
PROCESSES, NO, YES = "processes", "no", "yes"
# Where guests run.
HERE, SLURM = "here", "slurm"
# The variable of a task of Slurm's: the file with the keys of the guests that all tasks share.
TASK = "FIRSTTOUCH_GUESTS"


@dataclass(frozen=True)
class Request:
    """What the user asked for; an empty field means that of the default plan.

    `tried` are arms without a file, which run with stock and its control.
    `settings` are values of parameters, `around` settings of the catalogue. `quick` asks for
    the quick form of experiments, `profile` for counts by function. `architecture` is that of
    guests of KVM. `program` is what the experiment `COUNT` runs. `argv` are the words that ask for
    this on the command line.
    """

    release: str = DEFAULT_RELEASE
    source: Path | None = None
    machines: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    tried: tuple[Arm, ...] = ()
    size: int | None = None
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    around: tuple[Setting, ...] = (BARE,)
    layouts: tuple[int, ...] = ()
    jobs: int | None = None
    quick: bool = False
    profile: bool = False
    out: Path = Path("out")
    on: str = HERE
    architecture: str = DEFAULT_ARCHITECTURE
    program: UserProgram | None = None
    argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The cells that the user asked for, in the order of reports, and groups of cells by guest.

    A group of a `one_guest` experiment has all its cells, also those that nobody asked for: what a
    guest counts must not depend on the request. `around` has the settings of cells by name.
    """

    cells: tuple[Cell, ...]
    groups: tuple[tuple[Cell, ...], ...]
    catalog: Catalog
    quick: bool = False
    around: Mapping[str, Setting] = field(default_factory=lambda: {BARE.name: BARE})

    def arm(self, cell: Cell) -> Arm:
        """Return the arm of a cell as it is in the cell's setting."""
        return self.around[cell.setting].applied(self.catalog.arms[cell.arm])


def make_plan(request: Request, release: str, contract: Contract) -> Plan:
    for setting in request.around:
        if not setting.is_of(release):
            there = format_list([each.name for each in matrix_settings(release, quick=False)[1:]])
            raise UserError(
                f"--setting {setting.name}: kernels of {release} lack it; they have {there}."
            )
    names = request.machines or (DEFAULT_MACHINE,)
    # A setting may have a machine of its own, in place of all others.
    where = dict.fromkeys(
        (name, setting)
        for setting in request.around
        for name in ([setting.machine] if setting.machine else names)
    )
    machines = {name: load_machine(name) for name, _ in where}
    beside = [BASE, CONTROL] if request.tried else dict.fromkeys(request.arms)
    asked = [*map(load_arm, beside), *request.tried]
    catalog = load_catalog(names_in(EXPERIMENTS), machines, names_in(ARMS)).adding(request.tried)
    if request.program:
        counted = load_experiment(COUNT).of_program(request.program)
        catalog = replace(catalog, experiments={**catalog.experiments, COUNT: counted})
    experiments = _experiments(request, catalog)
    for experiment in experiments:
        contract.check(experiment)
    if (request.size or 0) > _LARGEST:
        raise UserError(
            f"--size {request.size} is larger than a guest of {format_size(MEMORY)} can map: "
            f"give at most {format_size(_LARGEST)}."
        )
    wanted = {name: _meant(given) for name, given in request.settings.items()}
    cells: list[Cell] = []
    groups: list[tuple[Cell, ...]] = []
    seen: list[Params] = []
    for (machine, setting), experiment in itertools.product(where, experiments):
        every = _all_params(experiment, machines[machine], request.size)
        seen += every
        chosen = [
            params
            for params in every
            if all(str(params.get(name)) in values for name, values in wanted.items())
        ]
        if not chosen:
            continue
        measured = every if experiment.one_guest else chosen
        for params in measured:
            contract.check_params(experiment, params)
            if request.profile and params.get("cpus", 1) != 1:
                raise UserError(
                    f"a profile follows one CPU, and {experiment.name} has cells with "
                    f"{params['cpus']}: select others by --set cpus=1."
                )
        arms = asked or [load_arm(arm) for arm in dict.fromkeys(experiment.arms)]
        for arm in arms:
            if arm.kernel.kind.endswith("changed") and release not in release_names():
                patches_of(load_release(release))  # refuses it
            if arm.kernel.kind == "debian" and (experiment.file_size or experiment.root):
                raise UserError(
                    f"{experiment.name} needs a disk, whose driver is a module of Debian's kernel: "
                    f"leave out the arm {arm.name}, or name other experiments."
                )
        made = [
            Cell(release, arm.name, machine, experiment.name, params, layout, request.profile,
                 setting.name)
            for params in measured
            for arm in arms
            for layout in request.layouts or (0,)
        ]  # fmt: skip
        cells += [cell for cell in made if cell.params in chosen]
        guests = defaultdict[object, list[Cell]](list)
        for place, cell in enumerate(made):
            guests[(cell.arm, cell.layout) if experiment.one_guest else place].append(cell)
        groups += map(tuple, guests.values())
    # The first layout of all cells first.
    groups.sort(key=lambda group: group[0].layout)
    _check_settings(request, seen)
    if not cells:
        values = " ".join(
            f"{name}={' or '.join(given)}" for name, given in request.settings.items()
        )
        raise UserError(f"no cell has {values}: give values that occur together in an experiment.")
    around = {setting.name: setting for setting in request.around}
    return Plan(tuple(cells), tuple(groups), catalog, request.quick, around)


def _experiments(request: Request, catalog: Catalog) -> list[Experiment]:
    """Return the named experiments, or those of the default plan, in the order of reports."""
    names = request.experiments
    if COUNT in names and not request.program:
        raise UserError(f"{COUNT} runs a program of yours: firsttouch count -- COMMAND.")
    for name in names:
        if name not in catalog.experiments:
            load_experiment(name)
        if request.quick and catalog.experiments[name].quick is None:
            raise UserError(f"{name} has no quick form: leave out --quick.")
    return [
        experiment.quickly() if request.quick else experiment
        for experiment in catalog.experiments.values()
        if (experiment.name in names if names else experiment.default)
        and not (request.quick and experiment.quick is None)
    ]


def _all_params(experiment: Experiment, machine: Machine, size: int | None) -> list[Params]:
    """Return the parameters of each cell on a machine, with the size that was asked for.

    That may make several combinations equal: one of them is left.
    """
    sized = {} if size is None or "size" not in experiment.parameters else {"size": size}
    every = [
        {**params, **sized}
        for listed in experiment.combinations()
        for params in expand(listed, machine)
    ]
    return list({tuple(params.items()): params for params in every}.values())


def _meant(given: Iterable[str]) -> set[str]:
    """Return the values that --set gives a parameter; as a size, 64M is 67108864, too."""
    values = set(given)
    for text in given:
        with contextlib.suppress(ValueError):
            values.add(str(parse_size(text)))
    return values


def _check_settings(request: Request, seen: Sequence[Params]) -> None:
    """Raise UserError for --set of a parameter or value that no cell has."""
    for name, given in request.settings.items():
        values = {str(params[name]) for params in seen if name in params}
        for wanted in given:
            if not values:
                near = nearest(name, {each for params in seen for each in params})
                raise UserError(f"--set {name}={wanted}: no such parameter; {near}")
            if values.isdisjoint(_meant([wanted])):
                raise UserError(f"--set {name}={wanted}: no such value; {nearest(wanted, values)}")
