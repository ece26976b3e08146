# SPDX-License-Identifier: GPL-2.0
"""A guest: a machine under QEMU that runs a few commands and powers off.

docs/explanation/identical-runs.md has the reason for each of its flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.kernels import Port, load_architecture
from firsttouch.catalog.machines import Machine
from firsttouch.tables import Json

MEMORY = 4 << 30
# How a guest's CPUs run. identical: the clock counts instructions (icount), so
# that all runs are bit for bit the same; only this timing is fit to count
# with. interleaved: round-robin TCG in real time. parallel: MTTCG, where QEMU
# reports the first access of an LSE atomic as a write. hardware: KVM, for times.
Clock = Literal["identical", "interleaved", "parallel", "hardware"]
# Where a kernel with KASLR puts itself: somewhere, and the same place each time.
KASLR_SEED = 0x6669_7273_7474_6F75
# vmstat_update() runs every second by default and also drains free pages: it
# cost 820,000 instructions in one cell and none in the next.
_QUIET = "sysctl.vm.stat_interval=3600"
_BOOT = ("panic=-1", "oops=panic", "loglevel=7")


@dataclass(frozen=True)
class Guest:
    """Everything that decides what a guest does.

    `boot` is added to the kernel's command line. `commands` run in order; blanks separate their
    words. `files` go into the initial RAM disk, which `archive` follows. `disk` is an image that
    the guest sees as RAM-backed /dev/pmem0, and mounts on /data; only an architecture with a
    device tree has one. `memory` is in bytes; `nodes` divides it into equal NUMA nodes, and all
    CPUs are on the first. `board` has properties of the board, such as ``mte=on``. `port` is the
    bus of the results channel. `pinned` are the host's CPUs for each of the guest's, of timing
    ``hardware``.
    """

    image: Path
    init: Path
    machine: Machine
    boot: tuple[str, ...]
    commands: tuple[str, ...]
    files: Mapping[str, Path | bytes] = field(default_factory=dict)
    disk: Path | None = None
    archive: Path | None = None
    cpus: int = 1
    timing: Clock = "identical"
    memory: int = MEMORY
    nodes: int = 1
    board: tuple[str, ...] = ()
    pmu: Pmu | None = None
    port: Port = "mmio"
    kaslr_seed: int = KASLR_SEED
    pinned: tuple[int, ...] = ()

    @property
    def measures(self) -> bool:
        """Whether the guest is to be quiet, because its counts or times are figures."""
        return self.timing in ("identical", "hardware")

    def command_line(self) -> str:
        # A disk's RAM lies above the RAM that the kernel may use.
        limit = [f"mem={self.memory >> 20}M"] if self.disk else []
        quiet = [_QUIET] if self.measures else []
        console = f"console={load_architecture(self.machine.architecture).console}"
        return " ".join([console, *_BOOT, *quiet, *limit, *self.boot])


def port_for(kernel: Kernel) -> Port:
    """Return the port whose driver is built into the kernel that an arm boots."""
    # Debian has virtio's MMIO driver in a module.
    return "pci" if kernel.kind == "debian" else load_architecture(kernel.architecture).port


@dataclass(frozen=True)
class Pmu:
    """The plugin; `caches` tells whether it models caches too.

    With `symbols`, the System.map of the guest's kernel, it also counts by function and by call.
    """

    plugin: Path
    caches: bool
    symbols: Path | None = None

    def options(self, machine: Machine, cpus: int) -> list[str]:
        levels = [
            (f"{level}@{number}", cache)
            for number, kind in enumerate(machine.kinds_of(cpus))
            for level, cache in (("l1i", kind.l1i), ("l1d", kind.l1d), ("l2", kind.l2))
        ]
        return [
            f"{level}={cache.size}:{cache.ways}:{cache.line}:{cache.policy}"
            for level, cache in (*levels, ("l3", machine.l3))
            if cache and self.caches
        ]


@dataclass(frozen=True)
class Counts:
    """What the PMU counted: an object for each region, in the order of the markers.

    `not_modelled` names the kinds of access that QEMU does not show to plugins.
    """

    regions: tuple[Mapping[str, Json], ...]
    not_modelled: tuple[str, ...]
