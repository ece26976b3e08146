# SPDX-License-Identifier: GPL-2.0
"""A guest: an arm64 machine under QEMU that runs a few commands and is gone.

Its flags make each run the same to the last instruction; why each is there
stands in docs/identical-runs.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from firsttouch.catalog.machines import Machine
from firsttouch.errors import UserError
from firsttouch.quantities import format_size
from firsttouch.vm.pmu import Pmu

MEMORY = 4 << 30
# The kernel, its page tables and its struct pages, the programs: what a
# measured mapping cannot have.
_RESERVED_MEMORY = 512 << 20
# How a guest's CPUs run. identical: on a clock made of instructions (icount),
# bit for bit the same each time; the only timing to measure with. interleaved:
# round-robin TCG in real time. parallel: MTTCG, where QEMU reports the first
# access of an LSE atomic as a write.
Timing = Literal["identical", "interleaved", "parallel"]
# Every second the kernel brings its statistics up to date, and gives back free
# pages by the way: 820,000 instructions in one cell and none in its neighbour.
_QUIET = "sysctl.vm.stat_interval=3600"
_BOOT = ("console=ttyAMA0", "nokaslr", "panic=-1", "oops=panic", "loglevel=7")


@dataclass(frozen=True)
class Guest:
    """All that decides what a guest does.

    `boot` is added to the kernel's command line; `commands` are run in
    order, words separated by blanks; `files` go into its initial RAM disk;
    `disk` is an image that the guest sees as RAM-backed /dev/pmem0, and
    finds mounted on /data unless `mounted` is not set.
    Its memory lies in `nodes` equal nodes, all CPUs on the first. `cpu` and
    `board` ask QEMU for another CPU than the machine's, such as ``max``, and
    for properties of the board, such as ``mte=on``. A guest with `firmware`
    boots by it and learns of the machine's caches from ACPI tables, which
    `tables`, an archive for its initial RAM disk, may replace; the others,
    which alone can have a disk, learn of them from a device tree.
    """

    image: Path
    init: Path
    machine: Machine
    boot: tuple[str, ...]
    commands: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict)
    disk: Path | None = None
    mounted: bool = True
    cpus: int = 1
    timing: Timing = "identical"
    memory: int = MEMORY
    nodes: int = 1
    cpu: str | None = None
    board: tuple[str, ...] = ()
    pmu: Pmu | None = None
    firmware: Path | None = None
    tables: bytes = b""

    def command_line(self) -> str:
        """Return the kernel's command line."""
        # A disk's RAM lies behind the RAM that the kernel may use.
        limit = [f"mem={self.memory >> 20}M"] if self.disk else []
        acpi = ["acpi=force"] if self.firmware else []
        quiet = [_QUIET] if self.timing == "identical" else []
        return " ".join([*_BOOT, *quiet, *acpi, *limit, *self.boot])


def check_size(size: int) -> None:
    """Raise UserError if a mapping of `size` bytes does not fit into a guest."""
    largest = MEMORY - _RESERVED_MEMORY
    if size > largest:
        raise UserError(
            f"--size {size} is larger than a guest of {format_size(MEMORY)} can map: "
            f"give at most {format_size(largest)}."
        )
