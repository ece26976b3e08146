# SPDX-License-Identifier: GPL-2.0
"""The catalogue of machines: a CPU's caches, each figure with its source, from machines/*.toml."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.errors import UserError, nearest
from firsttouch.files import MACHINES
from firsttouch.tables import Bytes, Fields, file_of, read, read_named

# The machine of a request that names none.
DEFAULT_MACHINE = "neoverse-n1"
Policy = Literal["lru", "plru", "random"]
# Bytes in a page of the laboratory's kernels.
PAGE_SIZE = 4096


@dataclass(frozen=True)
class Cache:
    """One cache: `size` and `line` in bytes, `sets` = size / ways / line."""

    size: Bytes
    ways: int
    source: str
    line: int = 64
    policy: Policy = "lru"

    @property
    def sets(self) -> int:
        return self.size // self.ways // self.line

    @property
    def way_size(self) -> int:
        return self.size // self.ways

    @property
    def colors(self) -> int:
        return max(1, self.way_size // PAGE_SIZE)

    @property
    def values(self) -> Mapping[str, Sequence[int]]:
        """What ``@CACHE.PROPERTY`` stands for as the value of a parameter, by PROPERTY."""
        return {
            "way_size": [self.way_size], "size": [self.size], "ways": [self.ways],
            "colors": range(self.colors), "places": range(1, 2 * self.ways + 3),
        }  # fmt: skip


@dataclass(frozen=True)
class CpuKind:
    """CPUs of one kind: how many there are, and the private caches of each."""

    count: int
    l1d: Cache
    l1i: Cache
    l2: Cache | None


@dataclass(frozen=True)
class Machine:
    """A machine of the catalogue; `cpu` is QEMU's name of its nearest CPU model.

    `midr` is the MIDR_EL1 of the machine's own CPU: the kernel chooses errata workarounds by it.
    None: that of QEMU's model. CPUs of several kinds all get the same. `board` has properties that
    QEMU's board needs for the CPU. `used_in` is for readers of the file.
    """

    name: str
    title: str
    cpu: str
    midr: int | None
    cpus: tuple[CpuKind, ...]
    l3: Cache | None
    board: tuple[str, ...] = ()
    used_in: str = ""
    architecture: str = DEFAULT_ARCHITECTURE

    @property
    def qemu_cpu(self) -> str:
        return self.cpu if self.midr is None else f"{self.cpu},midr={self.midr:#x}"

    @property
    def count(self) -> int:
        return sum(kind.count for kind in self.cpus)

    def kinds_of(self, cpus: int) -> list[CpuKind]:
        """Return the kind of each of a guest's `cpus`; they repeat the machine's CPUs in turn."""
        kinds = [kind for kind in self.cpus for _ in range(kind.count)]
        return list(itertools.islice(itertools.cycle(kinds), cpus))

    def boot_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return an arm's boot words, with this machine's figures in place of their names.

        ``{l2_colors}`` is the number of colours of the L2 that has most, 1 without one.
        Words of features that the machine's kernels cannot have are left out.
        """
        left_out = load_architecture(self.architecture).boot_words_left_out
        colors = max((kind.l2.colors for kind in self.cpus if kind.l2), default=1)
        return tuple(
            word.format(l2_colors=colors)
            for word in words
            if word.partition("=")[0] not in left_out
        )

    def check_cpu(self, cpus: Collection[str]) -> None:
        """Raise UserError if the machine's CPU is not in `cpus`, the CPUs that QEMU has."""
        # Features may follow the name: "max,sve=off".
        name = self.cpu.partition(",")[0]
        if name not in cpus:
            file = file_of("machine", self.name, MACHINES)
            near = nearest(name, cpus)
            raise UserError(f"{file}: cpu is {name!r}, which QEMU does not have: {near}")


def load_machine(name: str) -> Machine:
    table = read_named("machine", name, MACHINES)
    machine = read(table, Machine, name=name, midr=_midr(table), architecture=DEFAULT_ARCHITECTURE)
    if not 1 <= machine.count <= 8:
        raise table.error("cpus", f"has {machine.count} CPUs: give 1 to 8.")
    for cache in [machine.l3, *(c for kind in machine.cpus for c in (kind.l1d, kind.l1i, kind.l2))]:
        # A power of two has one bit.
        if cache and (
            min(cache.ways, cache.line) < 1
            or cache.sets * cache.ways * cache.line != cache.size
            or {cache.sets.bit_count(), cache.line.bit_count()} != {1}
        ):
            raise table.error(
                "cpus",
                f"has an impossible cache: {cache.size} bytes in {cache.ways} ways of {cache.line}-"
                "byte lines do not give a power of two of sets: correct size, ways or line.",
            )
    return machine


def _midr(parent: Fields) -> int | None:
    if not parent.has("midr"):
        return None
    table = parent.table("midr")
    text = table.take("value", str)
    table.take("source", str)
    if not re.fullmatch(r"0x[0-9a-f]{8}", text):
        raise table.error("value", f"is {text!r}: write MIDR_EL1 as 0x and 8 digits, 0x413fd0c1.")
    return int(text, 16)
