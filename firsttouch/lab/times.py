# SPDX-License-Identifier: GPL-2.0
"""Times of cells in guests of KVM, read from results.jsonl: every sample of every boot.

Times never stand among counts: `read_results` reads one timing only.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.catalog.experiments import Value
from firsttouch.errors import UserError
from firsttouch.lab.results import Result, file_of_results, read_results, timings_in
from firsttouch.tables import Table
from firsttouch.vm.host import Host
from firsttouch.vm.kvm import Condition


@dataclass(frozen=True)
class TimedCell:
    """A cell, and the command of a guest that repeats it."""

    experiment: str
    params: Mapping[str, Value]
    command: str


@dataclass(frozen=True)
class Repetition:
    """One repetition of the cell at a place: what ftbench printed, and why the rest is missing."""

    cell: int
    metrics: Mapping[str, float]
    unavailable: Mapping[str, str]


@dataclass(frozen=True)
class TimedBoot:
    """One boot of an arm: its round and seed of KASLR, the host at its end, and its samples."""

    round: int
    arm: str
    kaslr_seed: str
    host: Condition
    samples: tuple[Repetition, ...]


@dataclass(frozen=True)
class TimedArm:
    """An arm: the digest of its kernel image, and the kernel's command line.

    `changes` has the digest of each patch and fragment of `firsttouch try`.
    """

    name: str
    image: str
    boot: str
    changes: Mapping[str, str]


@dataclass(frozen=True)
class Times:
    """The results of a run of `lab --time`: those of the first arm's cells, of the next, ..."""

    results: tuple[Result, ...]
    timing: Literal["kvm"] = "kvm"

    @property
    def host(self) -> Host:
        """The machine on which guests ran."""
        host = self.results[0].provenance.host
        assert host is not None
        return host

    @property
    def architecture(self) -> str:
        """That of guests, which is the host's."""
        return self.host.architecture

    @property
    def kernel(self) -> str:
        """The version of the guests' kernels."""
        return self.results[0].provenance.kernel_version

    @property
    def disturbed(self) -> tuple[str, ...]:
        """A sentence for each thing that may have disturbed the run."""
        return self.results[0].provenance.disturbed

    @property
    def rounds(self) -> int:
        """Number of rounds: each booted every arm."""
        return max((boot.round for boot in self.results[0].boots), default=0)

    @property
    def resumed(self) -> tuple[str, ...]:
        """The rounds after which the run was interrupted."""
        return tuple(str(boot.round - 1) for boot in self.results[0].boots if boot.resumed)

    @functools.cached_property
    def by_arm(self) -> Mapping[str, Sequence[Result]]:
        """The results of each arm, in the order of cells."""
        arms: dict[str, list[Result]] = {}
        for result in self.results:
            arms.setdefault(result.cell.arm, []).append(result)
        return arms

    @functools.cached_property
    def arms(self) -> tuple[TimedArm, ...]:
        """The arms, in the order in which odd rounds boot them."""
        arms = []
        for name, (first, *_) in self.by_arm.items():
            made = first.provenance
            changes = {
                what: digest
                for what, digest in made.digests.items()
                if what.startswith(("patch ", "fragment "))
            }
            arms.append(TimedArm(name, made.digests["kernel image"], made.boot, changes))
        return tuple(arms)

    @functools.cached_property
    def cells(self) -> tuple[TimedCell, ...]:
        """The cells, each once."""
        first = next(iter(self.by_arm.values()))
        return tuple(
            TimedCell(each.cell.experiment, each.cell.params, *each.provenance.commands)
            for each in first
        )

    @functools.cached_property
    def boots(self) -> tuple[TimedBoot, ...]:
        """All boots, in order: each round boots the arms in turn forwards and backwards."""
        boots = []
        for number in range(1, self.rounds + 1):
            for arm, results in list(self.by_arm.items())[:: 1 if number % 2 else -1]:
                samples = [
                    Repetition(place, line.table("metrics").numbers(),
                           line.table("unavailable").values_of(str))
                    for place, result in enumerate(results)
                    for line in (Table("a line of ftbench", each) for each in result.lines)
                    if line.take("round", int) == number
                ]  # fmt: skip
                boot = results[0].boots[number - 1]
                boots.append(TimedBoot(number, arm, boot.kaslr_seed, boot.host, tuple(samples)))
        return tuple(boots)


def has_times(place: Path) -> bool:
    """Tell whether a directory or file of results has times."""
    return "kvm" in timings_in(place)


def read_times(place: Path) -> Times:
    """Return the times in a directory or file of results; UserError if it has none."""
    results = read_results(place, "kvm").results
    if not results:
        raise UserError(
            f"{place} has no times: give a directory that `firsttouch lab --time --out` has filled."
        )
    times = Times(results)
    cells = [len(of_arm) for of_arm in times.by_arm.values()]
    boots = {len(result.boots) for result in results}
    if len(set(cells)) > 1 or len(boots) > 1 or any(not r.provenance.host for r in results):
        raise UserError(
            f"{file_of_results(place)} lacks some of its times: measure again, with another --out."
        )
    return times
