# SPDX-License-Identifier: GPL-2.0
"""Measures times on real hardware: cells as guests of KVM, arms in turn, boot after boot.

A round boots every arm, in turn forwards and backwards (ABBA).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firsttouch.building.host_tools import (
    DTC,
    available_memory,
    compiler_version,
    find_tool,
    qemu_version,
)
from firsttouch.building.programs import init_of
from firsttouch.building.store import locked
from firsttouch.catalog.architectures import Architecture, load_architecture
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import Experiment
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.files import check_writable, digest, digest_bytes
from firsttouch.lab.cells import Cell, host_name
from firsttouch.lab.guests import (
    FTBENCH,
    Parts,
    arguments,
    build_parts,
    change_digests,
    disk_of,
    program_of,
)
from firsttouch.lab.outcomes import printed_objects
from firsttouch.lab.plan import HERE, Plan, Request, make_plan
from firsttouch.lab.results import (
    Boot,
    Provenance,
    Result,
    Times,
    check_replaceable,
    host_of,
    results_by_arm,
    write_results,
)
from firsttouch.lab.run import release_of, source_of
from firsttouch.progress import Reporter
from firsttouch.quantities import format_list, format_size
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.host import (
    check_kvm,
    choose_cpus,
    condition,
    disturbances,
    host_machine,
    read_host,
)
from firsttouch.vm.qemu import file_digest, guest_key
from firsttouch.vm.supervision import DEADLINE, run_guest

ROUNDS, QUICK_ROUNDS, MOST_ROUNDS = 20, 8, 1000
# Of a cell in one boot.
_REPEATS = 5
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
    note: str

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


def plan_times(request: Request, release: str, contract: Contract, rounds: int) -> TimedPlan:
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
        if not _can_be_timed(experiment, cell, most, architecture):
            left_out[experiment.name] = None
        elif cell.arm == BASE:
            # Experiments may have cells in common.
            timed = replace(cell, machine=host_name(architecture.name), timing="kvm")
            cells.setdefault(command_of(experiment, cell), timed)
    if not cells:
        raise UserError("--time can measure none of these cells: name populate or read-fault.")
    note = ""
    if left_out:
        note = (
            f"Without cells of {format_list(list(left_out), 9)} that need a disk, modelled caches, "
            "other instructions or more CPUs."
        )
    return TimedPlan(plan, tuple(cells.values()), arms, rounds, note)


def _can_be_timed(
    experiment: Experiment, cell: Cell, cpus: int, architecture: Architecture
) -> bool:
    """Tell whether a cell is first touches as a whole, which a guest of this host can do."""
    values = [str(value) for listed in experiment.parameters.values() for value in listed]
    return not (
        disk_of(experiment, cell.params)
        or experiment.scripts
        or any(value.startswith("@") for value in values)
        or "--timeline" in experiment.options
        or "page_faults" not in {metric.name for metric in experiment.metrics}
        or cell.params.get("by") in architecture.left_out
        or cell.cpus > cpus
    )


def size_of(cell: Cell) -> int:
    size = cell.params.get("size")
    return size if isinstance(size, int) else _SIZE


def command_of(experiment: Experiment, cell: Cell) -> str:
    return f"{arguments(experiment, cell.params)} --repeat {_REPEATS} --counters core"


# Memory of a guest beside a mapping, in bytes. With less than 512 MiB in all, Linux boots
# without the huge zero page (hugepage_init() in mm/huge_memory.c), and so takes other faults.
_REST = 768 << 20


def time_cells(request: Request, contract: Contract, rounds: int, reporter: Reporter) -> Times:
    """Measure rounds, and write all results after each.

    Raises HostError if this host has no KVM that boots the kernels, and GuestError if a later
    guest fails.
    """
    check_kvm(request.architecture)
    if load_architecture(request.architecture).device_tree:
        find_tool(DTC)
    check_writable(request.out)
    check_replaceable(request.out)
    release = release_of(request, reporter)
    timed = plan_times(request, release.name, contract, rounds)
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        parts = build_parts(source, timed.built(), request.out / "log", reporter)
        bench = _Bench(timed, parts, request)
        times = bench.unmeasured()
        if timed.note:
            reporter.say(timed.note)
        with reporter.step("Measuring", "rounds", rounds) as step:
            for number in range(1, rounds + 1):
                times = bench.round(times, number)
                write_results(request.out, times, "kvm")
                step.advance()
    return times


class _Bench:
    """Boots guests of a plan on this host."""

    def __init__(self, timed: TimedPlan, parts: Parts, request: Request) -> None:
        self._timed, self._parts, self._request = timed, parts, request
        self._arms = {name: timed.plan.catalog.arms[name] for name in timed.arms}
        self._architecture = load_architecture(request.architecture)
        self._commands = [
            command_of(timed.plan.catalog.experiments[cell.experiment], cell)
            for cell in timed.cells
        ]
        most = max(cell.cpus for cell in timed.cells)
        self.cpus = choose_cpus(os.sched_getaffinity(0))[:most]
        self._machine = host_machine(self.cpus[0], architecture=self._architecture.name)
        self._memory = max(map(size_of, timed.cells)) + _REST
        if self._memory > available_memory():
            raise HostError(
                f"a guest needs {format_size(self._memory)}, more than is available: end other "
                "programs, or give a smaller --size or --quick."
            )

    def _guest(self, arm: str, cpus: int, seed: int = 0) -> Guest:
        booted, places = self._arms[arm], self._timed.guests[cpus]
        first = self._timed.cells[places[0]]
        program = program_of(first, self._architecture.name)
        return Guest(
            image=self._parts.places[booted.kernel],
            init=self._parts.places[init_of(self._architecture.name)],
            machine=self._machine,
            boot=self._machine.boot_words(booted.boot),
            commands=tuple(self._commands[place] for place in places),
            files={FTBENCH: self._parts.places[program]},
            cpus=cpus,
            timing="hardware",
            memory=self._memory,
            port=port_for(booted.kernel),
            kaslr_seed=seed,
            pinned=tuple(self.cpus[:cpus]),
        )

    def unmeasured(self) -> Times:
        host = read_host(self.cpus)
        guests = [self._guest(arm, cpus) for arm in self._arms for cpus in self._timed.guests]
        plan = digest([host.processor, host.kernel, *map(guest_key, guests)])
        source = self._parts.source
        try:
            compiler = compiler_version()
        except HostError:
            # What was built elsewhere needs none.
            compiler = ""
        results = []
        for name, arm in self._arms.items():
            digests = {
                "kernel source": source.sha256,
                **change_digests(arm.kernel),
                "kernel image": file_digest(self._parts.places[arm.kernel]),
            }
            for cell, guest_command in zip(self._timed.cells, self._commands, strict=True):
                on_arm = replace(cell, arm=name)
                made = Provenance(
                    kernel_version=source.version,
                    qemu=qemu_version(self._architecture.qemu),
                    compiler=compiler,
                    digests=digests,
                    boot=self._guest(name, cell.cpus).command_line(),
                    commands=(guest_command,),
                    command=on_arm.command(source.given, arm if arm.tried else None),
                    tried=arm.meaning if arm.tried else "",
                    host=host,
                )
                key = digest([plan, on_arm.identity])
                results.append(Result(key, on_arm, (), None, made, self._request.quick))
        return tuple(results)

    def round(self, times: Times, number: int) -> Times:
        """Boot every arm once and return the times with that round.

        Raises GuestError if a guest fails, HostError if the first of all does.
        """
        arms = list(self._arms)[:: 1 if number % 2 else -1]
        try:
            booted = {arm: self._boot(number, arm) for arm in arms}
        except GuestError as error:
            if number > 1:
                raise
            raise HostError(
                f"KVM of this host did not run a guest ({str(error).rstrip('.')}): see the "
                "log below.",
                error.detail,
            ) from None
        by_arm = results_by_arm(times)
        firsts = [of_arm[0] for of_arm in by_arm.values()]
        during = [boot.host for result in firsts for boot in result.boots]
        during += [boot.host for boot, _ in booted.values()]
        disturbed = tuple(disturbances(host_of(times).before, during, self.cpus))
        results = []
        for arm, of_arm in by_arm.items():
            boot, printed = booted[arm]
            for result, lines in zip(of_arm, printed, strict=True):
                results.append(
                    replace(
                        result,
                        lines=(*result.lines, *({"round": number, **line} for line in lines)),
                        boots=(*result.boots, boot),
                        provenance=replace(result.provenance, disturbed=disturbed),
                    )
                )
        return tuple(results)

    def _boot(self, number: int, arm: str) -> tuple[Boot, Sequence[Sequence[Mapping[str, Json]]]]:
        # Every boot has a layout of its own, the same for everybody; 0 would be no seed. Without
        # a device tree the kernel takes its seed from the CPU, and tells nobody.
        seed = int(digest_bytes(f"{arm} round {number}".encode())[:16], 16) or 1
        seed_word = f"{seed:#x}" if self._architecture.device_tree else ""
        log = self._request.out / "log" / f"time-{number}-{arm}.log"
        printed: dict[int, Sequence[Mapping[str, Json]]] = {}
        begin = time.monotonic()
        for cpus, places in self._timed.guests.items():
            ended = run_guest(self._guest(arm, cpus, seed), log, deadline=DEADLINE)
            for place, done in zip(places, ended.commands, strict=True):
                printed[place] = printed_objects(place, done, log)
        log.unlink()
        taken = round(time.monotonic() - begin, 2)
        boot = Boot(number, seed_word, taken, condition(self.cpus))
        return boot, [printed[place] for place in sorted(printed)]
