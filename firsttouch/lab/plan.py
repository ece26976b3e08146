# SPDX-License-Identifier: GPL-2.0
"""The plan of a run: what was asked for, checked before anything is built."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.catalog.arms import Arm, find_arm
from firsttouch.lab.cells import Cell, arguments, check_size
from firsttouch.build.disks import Disk, FileDisk
from firsttouch.errors import UserError, nearest
from firsttouch.catalog.experiments import Experiment, Params, experiment_names, load_experiment
from firsttouch.vm.guest import Guest
from firsttouch.catalog.machine_values import expand
from firsttouch.catalog.machines import Machine, load_machine
from firsttouch.vm.pmu import COUNTED, MODELLED, Pmu
from firsttouch.build.sources import KernelSource

DEFAULT_RELEASE = "6.12"
DEFAULT_MACHINE = "neoverse-n1"


@dataclass(frozen=True)
class Request:
    """What the user asked the laboratory for; empty means the default plan's."""

    release: str = DEFAULT_RELEASE
    source: Path | None = None
    machines: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    size: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    out: Path = Path("out")


@dataclass(frozen=True)
class Run:
    """One cell to be: an experiment with its parameters, an arm and a machine."""

    experiment: Experiment
    params: Params
    arm: Arm
    machine: Machine

    @property
    def disk(self) -> Disk | None:
        """What the guest has on its disk; None if it needs none."""
        name = self.experiment.file_size
        return FileDisk(int(self.params[name])) if name else self.experiment.root


def make_plan(request: Request) -> list[Run]:
    """Return the runs that `request` asks for, in the order in which they are reported.

    Raises UserError for names, sizes and settings that do not exist.
    """
    known = [load_experiment(name) for name in request.experiments or experiment_names()]
    planned = {one.name: one for one in known if request.experiments or one.default}
    experiments = sorted(planned.values(), key=lambda one: (one.order, one.name))
    machines = [load_machine(name) for name in request.machines or (DEFAULT_MACHINE,)]
    arms = [find_arm(name) for name in dict.fromkeys(request.arms)]
    _check_settings(request.settings, experiments, machines)
    runs = []
    for machine in machines:
        for experiment in experiments:
            combinations = experiment.combinations()
            for params in itertools.chain(*(expand(each, machine) for each in combinations)):
                chosen = _chosen(params, request, experiment)
                if chosen is None:
                    continue
                for arm in arms or [find_arm(name) for name in experiment.arms]:
                    runs.append(Run(experiment, chosen, arm, machine))
    if not runs:
        wanted = " ".join(f"{name}={value}" for name, value in request.settings.items())
        raise UserError(f"no cell has {wanted}: give values that one experiment has together.")
    return list({_identity(run): run for run in runs}.values())


def _identity(run: Run) -> tuple[str, ...]:
    values = tuple(f"{name}={value}" for name, value in run.params.items())
    return (run.machine.name, run.experiment.name, run.arm.name, *values)


def _chosen(params: Params, request: Request, experiment: Experiment) -> Params | None:
    """Return `params` with the requested size; None if a setting rules them out."""
    for name, value in request.settings.items():
        if name in experiment.parameters and str(params[name]) != value:
            return None
    if request.size is not None and "size" in params:
        check_size(request.size)
        return {**params, "size": request.size}
    return params


def _check_settings(
    settings: Mapping[str, str], experiments: Sequence[Experiment], machines: Sequence[Machine]
) -> None:
    for name, value in settings.items():
        having = [experiment for experiment in experiments if name in experiment.parameters]
        known: set[str] = set()
        for experiment in having:
            for machine in machines:
                for params in experiment.combinations():
                    known.update(str(each[name]) for each in expand(params, machine))
        if not having:
            names = {key for experiment in experiments for key in experiment.parameters}
            raise UserError(f"--set {name}={value}: no such parameter; {nearest(name, names)}")
        if value not in known:
            raise UserError(f"--set {name}={value}: no such value; {nearest(value, known)}")


@dataclass(frozen=True)
class Parts:
    """What the guests of a run are made from, once it is built."""

    source: KernelSource
    images: Mapping[bool, Path]
    ftbench: Path
    init: Path
    pmu: Path
    disks: Mapping[Disk, Path]

    def cells(self, runs: Sequence[Run]) -> list[Cell]:
        """Return the cells that do `runs`, in order; some may share a guest."""
        groups: dict[tuple[str, ...], list[Run]] = {}
        for run in runs:
            shared = run.experiment.one_guest
            key = (run.machine.name, run.experiment.name, run.arm.name)
            groups.setdefault(key if shared else (*key, str(run.params)), []).append(run)
        found = {}
        for group in groups.values():
            guest = self._guest(group)
            for position, run in enumerate(group):
                found[_identity(run)] = Cell(
                    self.source.release.name, self.source.version, run.arm, run.machine,
                    run.experiment, run.params, guest, position,
                )  # fmt: skip
        return [found[_identity(run)] for run in runs]

    def _guest(self, runs: Sequence[Run]) -> Guest:
        """Return the guest that does `runs`, which differ in nothing but their parameters."""
        first = runs[0]
        commands = [arguments(run.experiment, run.params) for run in runs]
        disk = None
        if first.disk:
            disk = self.disks[first.disk]
            commands = [f"{command} {first.disk.arguments}" for command in commands]
        wanted = {metric.name for metric in first.experiment.metrics}
        pmu = None
        if wanted.intersection(COUNTED + MODELLED):
            pmu = Pmu(self.pmu, caches=bool(wanted.intersection(MODELLED)))
        return Guest(
            image=self.images[first.arm.changed],
            init=self.init,
            machine=first.machine,
            boot=first.arm.boot,
            commands=tuple(commands),
            files={"/ftbench": self.ftbench},
            disk=disk,
            pmu=pmu,
        )
