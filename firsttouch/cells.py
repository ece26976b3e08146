# SPDX-License-Identifier: GPL-2.0
"""Cells: single runs, named by the hash of all that decides their outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firsttouch.arms import Arm
from firsttouch.errors import UserError
from firsttouch.experiments import Experiment, Params
from firsttouch.guest import MEMORY, RESERVED_MEMORY, Guest, qemu_version, recipe_key
from firsttouch.machines import Machine
from firsttouch.quantities import format_size
from firsttouch.toolchain import compiler_identity

SCHEMA = 1
# What ftbench prints of single faults, where an experiment asks for them.
_SAMPLES = ("timeline", "timeline_lost", "timeline_absent")


@dataclass(frozen=True)
class Cell:
    """One run: (release, arm, machine, experiment, parameters), and the guest that does it.

    `position` is that of the cell's command among those of the guest, which
    may do several cells.
    """

    release: str
    kernel_version: str
    arm: Arm
    machine: Machine
    experiment: Experiment
    params: Params
    guest: Guest
    position: int = 0

    @property
    def key(self) -> str:
        """The digest of all that decides the outcome."""
        return recipe_key({"schema": SCHEMA, "position": self.position, **self.guest.identity()})

    @property
    def title(self) -> str:
        """The cell in a person's words, and in the name of its log."""
        values = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.experiment.name} {values} {self.arm.name} {self.machine.name} {self.release}"

    @property
    def log_name(self) -> str:
        """The name of the file that gets the guest's kernel log."""
        return self.title.replace(" ", "_").replace("/", "-") + ".log"

    def result(self, lines: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the cell's line of results.jsonl from what its command printed."""
        measured = lines[-1]
        missing = dict(measured.get("unavailable", {}))
        metrics = dict(measured.get("metrics", {}))
        for metric in self.experiment.metrics:
            if metric.name not in metrics and metric.name not in missing:
                missing[metric.name] = _why_not(metric.name, metrics, missing)
        return {
            "schema": SCHEMA,
            "cell": self.key,
            "release": self.release,
            "kernel_version": self.kernel_version,
            "arm": self.arm.name,
            "machine": self.machine.name,
            "experiment": self.experiment.name,
            "params": self.params,
            "metrics": metrics,
            "unavailable": sorted(missing),
            "reasons": missing,
            **{name: measured[name] for name in _SAMPLES if name in measured},
            "provenance": {
                "qemu": qemu_version(),
                "gcc": compiler_identity(),
                **self.guest.hashes(),
                "boot": self.guest.command_line(),
                "commands": list(self.guest.commands),
                "command": self.command(),
            },
        }

    def command(self) -> str:
        """Return the command that runs this cell alone."""
        size = f" --size {self.params['size']}" if "size" in self.params else ""
        others = " ".join(
            f"--set {name}={value}" for name, value in self.params.items() if name != "size"
        )
        return (
            f"firsttouch lab --release {self.release} --machine {self.machine.name} "
            f"--experiment {self.experiment.name} --arm {self.arm.name}{size} {others}"
        ).rstrip()


def _why_not(metric: str, metrics: dict[str, float], missing: dict[str, str]) -> str:
    """Return why the guest did not report `metric`."""
    if not metrics and missing:
        # The CPU lacks the instruction, or the kernel the page size: one
        # reason for everything.
        return next(iter(missing.values()))
    return f"nothing in this setting counts {metric}: it takes the modelled PMU"


def arguments(experiment: Experiment, params: Params) -> str:
    """Return the command that the guest runs for a cell."""
    words = ["/ftbench", experiment.runs, *experiment.options]
    for name, value in params.items():
        words += [f"--{name}", str(value)]
    return " ".join(words)


def check_size(size: int) -> None:
    """Raise UserError if a mapping of `size` bytes does not fit into a guest."""
    largest = MEMORY - RESERVED_MEMORY
    if size > largest:
        raise UserError(
            f"--size {size} is larger than a guest of {format_size(MEMORY)} can map: "
            f"give at most {format_size(largest)}."
        )
