# SPDX-License-Identifier: GPL-2.0
"""Measures times on real hardware: cells as guests of KVM, arms in turn, boot after boot.

A round boots every arm, in turn forwards and backwards (ABBA).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.host_tools import DTC, find_tool
from firsttouch.building.store import locked
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import Experiment
from firsttouch.catalog.kernels import Architecture, load_architecture
from firsttouch.errors import UserError
from firsttouch.files import check_writable, digest, digest_bytes
from firsttouch.lab.cells import HOST, Cell
from firsttouch.lab.guests import Job, arguments, build_parts, make_jobs
from firsttouch.lab.outcomes import printed_objects
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.results import Boot, Result, write_results
from firsttouch.lab.run import release_of, source_of
from firsttouch.progress import Reporter
from firsttouch.quantities import format_list
from firsttouch.tables import Json
from firsttouch.vm.host import (
    check_kvm,
    choose_cpus,
    condition,
    host_machine,
    read_host,
)
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import DEADLINE, run_guest

ROUNDS, QUICK_ROUNDS = 20, 8
# Of a cell in one boot.
_REPEATS = 5
# Memory of a guest, in bytes: a mapping without a size, and the rest. With less than 512 MiB in
# all, Linux boots without the huge zero page (hugepage_init() in mm/huge_memory.c), and so takes
# other faults.
_SIZE, _REST = 64 << 20, 768 << 20
# Only times show what a broadcast costs, so it is timed without being asked for.
_SEVERAL = "several-cpus"


@dataclass(frozen=True)
class TimedPlan:
    """What is timed: a group of a plan's cells is a guest of every boot of an arm.

    `cpus` are those of this host that vCPUs are pinned to, `note` says what cannot be timed.
    """

    plan: Plan
    arms: tuple[str, ...]
    cpus: tuple[int, ...]
    note: str


def plan_times(request: Request, release: str, contract: Contract) -> TimedPlan:
    """Return what this host times; HostError if its KVM cannot run the kernels."""
    tried = tuple(arm.name for arm in request.tried)
    arms = tuple(dict.fromkeys((BASE, CONTROL, *(request.arms or tried or ("on",)))))
    asked = request if tried else replace(request, arms=arms)
    architecture = load_architecture(request.architecture)
    host = f"{HOST}{architecture.suffix}"
    plan = make_plan(asked, release, contract)
    if not (request.experiments or request.settings or request.quick):
        several = make_plan(replace(asked, experiments=(_SEVERAL,)), release, contract)
        plan = replace(plan, cells=(*plan.cells, *several.cells))
    cpus = choose_cpus(os.sched_getaffinity(0))
    # The cells of a guest have as many CPUs; experiments may have cells in common.
    guests: dict[int, dict[str, Cell]] = {}
    left_out: dict[str, None] = {}
    for cell in plan.cells:
        experiment = plan.catalog.experiments[cell.experiment]
        if not _can_be_timed(experiment, cell, len(cpus), architecture):
            left_out[experiment.name] = None
        elif cell.arm == BASE:
            timed = replace(cell, machine=host, timing="kvm")
            guests.setdefault(cell.cpus, {}).setdefault(arguments(experiment, cell.params), timed)
    if not guests:
        raise UserError("--time can measure none of these cells: name populate or read-fault.")
    check_kvm(request.architecture)
    note = (
        f"Without cells of {format_list(list(left_out), 9)} that need a disk, modelled caches, "
        "other instructions or more CPUs."
    )
    groups = [
        tuple(replace(cell, arm=arm) for cell in guests[number].values())
        for arm in arms
        for number in sorted(guests)
    ]
    machine = host_machine(cpus[0], architecture=architecture.name)
    booted = {
        name: replace(arm, kernel=replace(arm.kernel, architecture=architecture.name))
        for name, arm in plan.catalog.arms.items()
    }
    catalog = replace(plan.catalog, arms=booted, machines={host: machine})
    cells = tuple(cell for group in groups for cell in group)
    plan = replace(plan, cells=cells, groups=tuple(groups), catalog=catalog)
    return TimedPlan(plan, arms, tuple(cpus[: max(guests)]), note if left_out else "")


def _can_be_timed(
    experiment: Experiment, cell: Cell, cpus: int, architecture: Architecture
) -> bool:
    """Tell whether a cell is first touches as a whole, which a guest of this host can do."""
    values = [str(value) for listed in experiment.parameters.values() for value in listed]
    return not (
        experiment.file_size
        or experiment.root
        or experiment.scripts
        or any(value.startswith("@") for value in values)
        or "--timeline" in experiment.options
        or "page_faults" not in {metric.name for metric in experiment.metrics}
        or cell.params.get("by") in architecture.left_out
        or cell.cpus > cpus
    )


def time_cells(
    request: Request, contract: Contract, rounds: int, reporter: Reporter
) -> tuple[Result, ...]:
    """Measure rounds, and write all results after each; GuestError if a guest fails."""
    release = release_of(request)
    timed = plan_times(request, release.name, contract)
    if load_architecture(request.architecture).device_tree:
        find_tool(DTC)
    check_writable(request.out)
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        parts = build_parts(source, timed.plan, reporter)
        jobs = [_timed_job(job, timed) for job in make_jobs(timed.plan, source, parts)]
        host = read_host(timed.cpus)
        results = {
            cell.identity: Result(
                digest([job.key, host.processor, host.kernel, cell.identity]),
                cell,
                (),
                None,
                replace(job.provenance(cell), host=host),
                request.quick,
            )
            for job in jobs
            for cell in job.cells
        }
        if timed.note:
            reporter.say(timed.note)
        with reporter.step("Measuring", "rounds", rounds) as step:
            for number in range(1, rounds + 1):
                for arm in timed.arms[:: 1 if number % 2 else -1]:
                    of_arm = [job for job in jobs if job.arm.name == arm]
                    log = request.out / "log" / f"time-{number}-{arm}.log"
                    boot, printed = _boot(of_arm, number, log, timed.cpus)
                    for cell, lines in printed.items():
                        was = results[cell]
                        boots = (*was.boots, boot)
                        results[cell] = replace(was, lines=(*was.lines, *lines), boots=boots)
                write_results(request.out, results.values(), "kvm")
                step.advance()
    return tuple(results.values())


def _timed_job(job: Job, timed: TimedPlan) -> Job:
    """Return a job whose guest KVM runs, with memory for any cell of the plan."""
    sizes = [cell.params.get("size") for cell in timed.plan.cells]
    more = f" --repeat {_REPEATS} --counters core"
    guest = replace(
        job.guest,
        commands=tuple(command + more for command in job.guest.commands),
        timing="hardware",
        pmu=None,
        memory=max(size if isinstance(size, int) else _SIZE for size in sizes) + _REST,
        pinned=timed.cpus[: job.guest.cpus],
    )
    return replace(job, guest=guest, key=guest_key(guest))


def _boot(
    jobs: Sequence[Job], number: int, log: Path, cpus: Sequence[int]
) -> tuple[Boot, Mapping[str, Sequence[Mapping[str, Json]]]]:
    """Boot the guests of an arm in a round; return what each cell, by identity, printed.

    Raises GuestError if one of them fails.
    """
    machine, arm = jobs[0].guest.machine, jobs[0].arm.name
    # Every boot has a layout of its own, the same for everybody; 0 would be no seed. Without
    # a device tree the kernel takes its seed from the CPU, and tells nobody.
    seed = int(digest_bytes(f"{arm} round {number}".encode())[:16], 16) or 1
    seed_word = f"{seed:#x}" if load_architecture(machine.architecture).device_tree else ""
    printed: dict[str, list[Mapping[str, Json]]] = {}
    for job in jobs:
        ended = run_guest(replace(job.guest, kaslr_seed=seed), log, deadline=DEADLINE)
        for place, (cell, done) in enumerate(zip(job.cells, ended.commands, strict=True)):
            objects = printed_objects(place, done, log)
            printed[cell.identity] = [{"round": number, **line} for line in objects]
    log.unlink()
    return Boot(number, seed_word, condition(cpus)), printed
