# SPDX-License-Identifier: GPL-2.0
"""What `firsttouch lab --time` measures: the cells that are about time, the arms, how long."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from firsttouch.catalog.architectures import Architecture, load_architecture
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import Experiment
from firsttouch.errors import UserError
from firsttouch.lab.cells import Cell, host_name
from firsttouch.lab.guests import arguments, disk_of
from firsttouch.lab.plan import HERE, Plan, Request, make_plan
from firsttouch.quantities import format_list
from firsttouch.vm.cpus import choose_cpus

ROUNDS, QUICK_ROUNDS, MOST_ROUNDS = 20, 8, 1000
# Of a cell in one boot.
_REPEATS = 5
# For --dry-run, in seconds: a boot, and a first touch of 4 KiB on a small core.
_BOOT, _TOUCH = 4.0, 2e-6
_SIZE = 64 << 20
# Only times show what a broadcast costs, so it is timed without being asked for.
_SEVERAL = "several-cpus"


@dataclass(frozen=True)
class TimedPlan:
    """The cells that are timed, each once, and the arms; those of a guest have as many CPUs."""

    plan: Plan
    cells: tuple[Cell, ...]
    arms: tuple[str, ...]
    rounds: int
    left_out: tuple[str, ...]

    @property
    def guests(self) -> dict[int, list[int]]:
        """The places of cells by number of CPUs: each group is a guest of every boot."""
        groups: dict[int, list[int]] = {}
        for place, cell in enumerate(self.cells):
            groups.setdefault(cell.cpus, []).append(place)
        return dict(sorted(groups.items()))

    def built(self) -> Plan:
        """Return the plan with what is timed alone, so that nothing else is built."""
        of_arms = [replace(cell, arm=arm) for arm in self.arms for cell in self.cells]
        return replace(self.plan, cells=tuple(of_arms), groups=())

    def seconds(self) -> float:
        """Return an estimate of how long it takes, by arithmetic."""
        touches = sum(size_of(cell) >> 12 for cell in self.cells) * _TOUCH * _REPEATS
        return self.rounds * len(self.arms) * (len(self.guests) * _BOOT + touches)


def plan_times(request: Request, release: str, contract: Contract, rounds: int) -> TimedPlan:
    """Return what `request` has to time, on all CPUs of this host that it may use.

    Raises UserError for what only counts can have, or if nothing is left.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise UserError(f"--boots {rounds} is out of range: give 1 to {MOST_ROUNDS:,}.")
    for option, given in (
        ("--machine", request.machines), ("--layouts", request.layouts),
        ("--on", request.on != HERE),
    ):  # fmt: skip
        if given:
            raise UserError(
                f"--time measures this host, each boot in another layout: leave out {option}."
            )
    tried = tuple(arm.name for arm in request.tried)
    arms = tuple(dict.fromkeys((BASE, CONTROL, *(request.arms or tried or ("on",)))))
    asked = request if tried else replace(request, arms=arms)
    architecture = load_architecture(request.architecture)
    plan = make_plan(asked, release, contract)
    if not (request.experiments or request.settings or request.quick):
        several = make_plan(replace(asked, experiments=(_SEVERAL,)), release, contract)
        plan = replace(plan, cells=(*plan.cells, *several.cells))
    plan = replace(plan, catalog=plan.catalog.of_architecture(architecture.name))
    most = len(choose_cpus(os.sched_getaffinity(0)))
    cells: dict[str, Cell] = {}
    left_out: dict[str, None] = {}
    for cell in plan.cells:
        experiment = plan.catalog.experiments[cell.experiment]
        if why := _why_not(experiment, cell, most, architecture):
            left_out[why] = None
        elif cell.arm == BASE:
            # Experiments may have cells in common.
            timed = replace(cell, machine=host_name(architecture.name), timing="kvm")
            cells.setdefault(command_of(experiment, cell), timed)
    if not cells:
        raise UserError(f"nothing is left that --time can measure: {'; '.join(left_out)}.")
    return TimedPlan(plan, tuple(cells.values()), arms, rounds, tuple(left_out))


def _why_not(experiment: Experiment, cell: Cell, cpus: int, architecture: Architecture) -> str:
    """Return why a cell is not timed; empty if it is."""
    values = [value for listed in experiment.parameters.values() for value in listed]
    if disk_of(experiment, cell.params) or experiment.scripts:
        return f"{experiment.name} needs a disk"
    if any(str(value).startswith("@") for value in values):
        return f"{experiment.name} is about the caches of a machine of the catalogue"
    if "--timeline" in experiment.options or "page_faults" not in _metrics(experiment):
        return f"{experiment.name} has no first touches as a whole"
    if cell.params.get("by") in architecture.left_out:
        ways = format_list(architecture.left_out, 9)
        return f"{experiment.name} by {ways}, because {architecture.why_left_out}"
    if cell.cpus > cpus:
        return f"this host has {cpus} CPUs of one kind, and {experiment.name} has cells with more"
    return ""


def _metrics(experiment: Experiment) -> set[str]:
    return {metric.name for metric in experiment.metrics}


def size_of(cell: Cell) -> int:
    """Return the bytes that a cell maps, about."""
    size = cell.params.get("size")
    return size if isinstance(size, int) else _SIZE


def command_of(experiment: Experiment, cell: Cell) -> str:
    """Return the command of a guest that repeats a cell."""
    return f"{arguments(experiment, cell.params)} --repeat {_REPEATS} --counters core"
