# SPDX-License-Identifier: GPL-2.0
"""Measures times on real hardware: cells as guests of KVM, arms in turn, boot after boot.

A round boots every arm, in turn forwards and backwards (ABBA). hardware.json is
written after each round; the same command goes on after the last.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import replace

from firsttouch.building.host_tools import DTC, available_memory, find_tool, qemu_version
from firsttouch.building.programs import init_of
from firsttouch.building.store import locked
from firsttouch.catalog.architectures import load_architecture
from firsttouch.catalog.contract import Contract
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.files import check_writable, digest, digest_bytes
from firsttouch.lab.guests import FTBENCH, change_digests
from firsttouch.lab.outcomes import printed_objects
from firsttouch.lab.parts import Parts, build_parts, program_of
from firsttouch.lab.plan import Request
from firsttouch.lab.run import release_of, source_of
from firsttouch.lab.timed_plan import TimedPlan, command_of, plan_times, size_of
from firsttouch.lab.times import (
    FILE_NAME,
    Boot,
    Host,
    Sample,
    TimedArm,
    TimedCell,
    Times,
    has_times,
    read_times,
    write_times,
)
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size
from firsttouch.tables import Json, Table
from firsttouch.vm.cpus import choose_cpus
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.kvm import check_kvm, condition, disturbances, host_machine
from firsttouch.vm.qemu import file_digest, guest_key
from firsttouch.vm.supervision import DEADLINE, run_guest

# Memory of a guest beside a mapping, in bytes. With less than 512 MiB in all, Linux boots
# without the huge zero page (hugepage_init() in mm/huge_memory.c), and so takes other faults.
_REST = 768 << 20


def time_cells(request: Request, contract: Contract, rounds: int, reporter: Reporter) -> Times:
    """Measure the rounds that `request.out` does not have yet; return all that it then has.

    Raises HostError if this host has no KVM that boots the kernels, UserError if
    `request.out` has times of another plan, and GuestError if a later guest fails.
    """
    check_kvm(request.architecture)
    if load_architecture(request.architecture).device_tree:
        find_tool(DTC)
    check_writable(request.out)
    release = release_of(request, reporter)
    timed = plan_times(request, release.name, contract, rounds)
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        parts = build_parts(source, timed.built(), request.out / "log", reporter)
        bench = _Bench(timed, parts, request)
        times = bench.begun(bench.host())
        if times.boots:
            reporter.say(f"{request.out} has {times.rounds} of {rounds} rounds.")
        for why in timed.left_out:
            reporter.say(f"Left out: {why}.")
        with reporter.step("Measuring", "rounds", rounds) as step:
            step.go_on_from(min(times.rounds, rounds))
            for number in range(times.rounds + 1, rounds + 1):
                times = replace(times, boots=(*times.boots, *bench.round(number)))
                during = [boot.host for boot in times.boots]
                said = disturbances(times.host.before, during, bench.cpus)
                times = replace(times, disturbed=tuple(said))
                write_times(request.out, times)
                step.advance()
    return times


class _Bench:
    """Boots guests of a plan on this host."""

    def __init__(self, timed: TimedPlan, parts: Parts, request: Request) -> None:
        self._timed, self._parts, self._request = timed, parts, request
        catalog = timed.plan.catalog
        self._arms = {name: catalog.arms[name] for name in timed.arms}
        self._architecture = load_architecture(request.architecture)
        self._commands = [
            command_of(catalog.experiments[cell.experiment], cell) for cell in timed.cells
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

    def host(self) -> Host:
        """Return this host as it is now."""
        cpus = tuple(map(str, self.cpus))
        return Host(self._machine.title, platform.release(), cpus, condition(self.cpus))

    def _guest(self, arm: str, cpus: int, seed: int) -> Guest:
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

    def begun(self, host: Host) -> Times:
        """Return the times that the directory has of this plan, none if it has no file."""
        guests = [
            self._guest(arm, cpus, 0) for arm in self._timed.arms for cpus in self._timed.guests
        ]
        plan = digest([host.processor, host.kernel, *map(guest_key, guests)])
        out = self._request.out
        if has_times(out):
            times = read_times(out)
            if times.plan != plan:
                raise UserError(
                    f"{out / FILE_NAME} has times of another host or plan: give another --out."
                )
            if times.rounds < self._timed.rounds:
                return replace(times, resumed=(*times.resumed, str(times.rounds)))
            return times
        source = self._parts.source
        return Times(
            plan,
            source.release.name,
            source.version,
            qemu_version(self._architecture.qemu),
            host,
            tuple(
                TimedArm(
                    name,
                    file_digest(self._parts.places[arm.kernel]),
                    self._guest(name, next(iter(self._timed.guests)), 0).command_line(),
                    change_digests(arm.kernel),
                )
                for name, arm in self._arms.items()
            ),
            tuple(
                TimedCell(cell.experiment, cell.params, command)
                for cell, command in zip(self._timed.cells, self._commands, strict=True)
            ),
            architecture=self._architecture.name,
        )

    def round(self, number: int) -> list[Boot]:
        """Boot every arm once; GuestError if a guest fails, HostError if the first of all does."""
        arms = self._timed.arms if number % 2 else self._timed.arms[::-1]
        try:
            return [self._boot(number, arm) for arm in arms]
        except GuestError as error:
            if number > 1:
                raise
            raise HostError(
                f"KVM of this host did not run a guest ({str(error).rstrip('.')}): see the "
                "log below.",
                error.detail,
            ) from None

    def _boot(self, number: int, arm: str) -> Boot:
        # Every boot has a layout of its own, the same for everybody; 0 would be no seed. Without
        # a device tree the kernel takes its seed from the CPU, and tells nobody.
        seed = int(digest_bytes(f"{arm} round {number}".encode())[:16], 16) or 1
        seed_word = f"{seed:#x}" if self._architecture.device_tree else ""
        log = self._request.out / "log" / f"time-{number}-{arm}.log"
        samples: list[Sample] = []
        begin = time.monotonic()
        for cpus, places in self._timed.guests.items():
            ended = run_guest(self._guest(arm, cpus, seed), log, deadline=DEADLINE)
            for place, done in zip(places, ended.commands, strict=True):
                lines = printed_objects(place, done, log)
                samples += [_sample(place, line) for line in lines]
        log.unlink()
        taken = round(time.monotonic() - begin, 2)
        return Boot(number, arm, seed_word, taken, condition(self.cpus), tuple(samples))


def _sample(place: int, line: Mapping[str, Json]) -> Sample:
    table = Table("a line of ftbench", line)
    return Sample(
        place, table.table("metrics").numbers(), table.table("unavailable").values_of(str)
    )
