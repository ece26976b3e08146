# SPDX-License-Identifier: GPL-2.0
"""Times of cells on real hardware, as hardware.json has them: every sample of every boot.

The file is fit to be sent: it holds no serial number, no address and no name of a
host or a user. Times never stand among counts: results.jsonl holds none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE
from firsttouch.catalog.experiments import Value
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.tables import Table, dump_json, read, read_document
from firsttouch.vm.kvm import Condition

SCHEMA = 1
FILE_NAME = "hardware.json"
_ADVICE = "give a directory that `firsttouch lab --time --out` has filled"


@dataclass(frozen=True)
class TimedCell:
    """A cell, and the command of a guest that repeats it."""

    experiment: str
    params: Mapping[str, Value]
    command: str


@dataclass(frozen=True)
class Sample:
    """One repetition of the cell at a place: what ftbench printed, and why the rest is missing."""

    cell: int
    metrics: Mapping[str, float]
    unavailable: Mapping[str, str]


@dataclass(frozen=True)
class Boot:
    """One guest: its round, arm and seed of KASLR, the host at its end, and its samples."""

    round: int
    arm: str
    kaslr_seed: str
    seconds: float
    host: Condition
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Host:
    """The machine, without anything that names it; `cpus` are those with a pinned vCPU each."""

    processor: str
    kernel: str
    cpus: tuple[str, ...]
    before: Condition


@dataclass(frozen=True)
class TimedArm:
    """An arm: the digest of its kernel image, and the kernel's command line.

    `changes` has the digest of each patch and fragment of `firsttouch try`.
    """

    name: str
    image: str
    boot: str
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Times:
    """All that a run measured. `plan` is the digest of all that decided its guests.

    `resumed` are the rounds before which it was interrupted. `disturbed` has a
    sentence for each thing that may have disturbed it.
    """

    plan: str
    release: str
    kernel: str
    qemu: str
    host: Host
    arms: tuple[TimedArm, ...]
    cells: tuple[TimedCell, ...]
    boots: tuple[Boot, ...] = ()
    resumed: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    timing: Literal["hardware"] = "hardware"
    architecture: str = DEFAULT_ARCHITECTURE

    @property
    def rounds(self) -> int:
        """Number of rounds: each booted every arm."""
        return max((boot.round for boot in self.boots), default=0)


def has_times(place: Path) -> bool:
    """Tell whether `place` is a file of times, or a directory with one."""
    return place.name == FILE_NAME or (place / FILE_NAME).is_file()


def read_times(place: Path) -> Times:
    """Return the times in a file, or a directory that has one; UserError if it holds none."""
    file = place if place.name == FILE_NAME else place / FILE_NAME
    table = read_document(file, "the times of a machine", _ADVICE)
    if table.take("schema", int) != SCHEMA:
        raise UserError(
            f"{file} has schema {table.take('schema', int)}, but this firsttouch reads schema "
            f"{SCHEMA}: read it with the version that wrote it."
        )
    return _checked(read(table, Times, strict=False), table)


def _checked(times: Times, table: Table) -> Times:
    places = range(len(times.cells))
    if any(sample.cell not in places for boot in times.boots for sample in boot.samples):
        raise table.error("boots", f"has a sample of a cell that is not among {len(times.cells)}.")
    return times


def write_times(directory: Path, times: Times) -> None:
    """Write `directory`/hardware.json."""
    document = {"schema": SCHEMA, **asdict(times)}
    write_atomically(directory / FILE_NAME, dump_json(document))
