# SPDX-License-Identifier: GPL-2.0
"""A Processor Properties Topology Table, right or wrong, for a guest booted by ACPI.

Layouts: ACPI Specification 6.5, 5.2.30 (PPTT), 5.2.6 (table header).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

HEADER = struct.Struct("<4sIBB6s8sI4sI")
_PROCESSOR = struct.Struct("<BBHIIII")
_CACHE = struct.Struct("<BBHIIIIBBHI")
# Cache structure flags, bit by bit: which fields are valid.
SIZE, SETS, WAYS, ALLOCATION, TYPE, POLICY, LINE = (1 << bit for bit in range(7))
_ALL = SIZE | SETS | WAYS | ALLOCATION | TYPE | POLICY | LINE
DATA, INSTRUCTION, UNIFIED = 0x0, 0x4, 0x8
_PACKAGE, _ID_VALID, _LEAF = 0x1, 0x2, 0x8


@dataclass(frozen=True)
class Cache:
    """One cache structure; `flags` says which of its fields count.

    `below` names the next level: a number counts the caches of the same CPU,
    in the order they are given.
    """

    size: int
    sets: int
    line: int
    ways: int
    kind: int = DATA
    below: int | None = None
    flags: int = _ALL

    def without(self, flag: int) -> Cache:
        """Return the same cache with one field not valid."""
        return replace(self, flags=self.flags & ~flag)


@dataclass(frozen=True)
class Cpu:
    """The caches of one CPU; the first `direct` of them are its private resources."""

    caches: tuple[Cache, ...]
    direct: int = 2


def table(cpus: tuple[Cpu, ...], *, parent_is_itself: bool = False) -> bytes:
    """Return a PPTT of one package with these CPUs, whose UIDs count from 0."""
    body = b""

    def here() -> int:
        return HEADER.size + len(body)

    package = here()
    body += _PROCESSOR.pack(
        0, _PROCESSOR.size, 0, _PACKAGE, package if parent_is_itself else 0, 0, 0
    )
    for uid, cpu in enumerate(cpus):
        first = here()
        for cache in cpu.caches:
            below = 0 if cache.below is None else first + cache.below * _CACHE.size
            body += _CACHE.pack(
                1, _CACHE.size, 0, cache.flags, below, cache.size, cache.sets,
                cache.ways & 0xFF, cache.kind, cache.line & 0xFFFF, 0,
            )  # fmt: skip
        direct = [first + number * _CACHE.size for number in range(cpu.direct)]
        body += _PROCESSOR.pack(
            0, _PROCESSOR.size + 4 * len(direct), 0, _ID_VALID | _LEAF, package, uid, len(direct)
        ) + struct.pack(f"<{len(direct)}I", *direct)
    return sealed(HEADER.pack(b"PPTT", 0, 3, 0, b"BOCHS ", b"BXPC    ", 2, b"BXPC", 1) + body)


def sealed(data: bytes, length: int | None = None) -> bytes:
    """Return `data` with its length (or the one given) and its checksum filled in."""
    data = data[:4] + struct.pack("<I", len(data) if length is None else length) + data[8:]
    data = data[:9] + b"\0" + data[10:]
    return data[:9] + bytes([-sum(data) & 0xFF]) + data[10:]
