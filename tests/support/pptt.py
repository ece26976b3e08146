# SPDX-License-Identifier: GPL-2.0
"""Caches as firmware describes them: ACPI's Processor Properties Topology Table, right or wrong.

Layouts: ACPI Specification 6.5, 5.2.6 (table header), 5.2.30 (PPTT). The kernel takes the
table from the initial RAM disk instead of the firmware's
(Documentation/admin-guide/acpi/initrd_table_override.rst).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.program_root import archive

# Of Debian's qemu-efi-aarch64: ACPI tables reach a guest through UEFI.
FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")

_HEADER = struct.Struct("<4sIBB6s8sI4sI")
# type, length, reserved, flags, parent, processor ID, number of resources
_PROCESSOR = struct.Struct("<BBHIIII")
_PACKAGE, _ID_VALID, _LEAF = 1 << 0, 1 << 1, 1 << 3
# type, length, reserved, flags, next level, size, sets, ways, attributes, line, cache ID
_CACHE = struct.Struct("<BBHIIIIBBHI")
# Attributes: read and write allocate in bits 1:0, the type in bits 3:2.
_ALLOCATE = 0x2
_DATA, _INSTRUCTION, _UNIFIED = 0x0, 0x4, 0x8


@dataclass(frozen=True)
class Entry:
    """A cache structure; `below` is the next level's place among the caches of the same CPU.

    Flags: size, sets, ways, allocation, type, write policy and line size are valid.
    """

    size: int
    sets: int
    ways: int
    line: int
    below: int | None = None
    kind: int = _DATA
    flags: int = 0x7F

    def packed(self, first: int) -> bytes:
        below = 0 if self.below is None else first + self.below * _CACHE.size
        return _CACHE.pack(
            1, _CACHE.size, 0, self.flags, below, self.size, self.sets, self.ways & 0xFF,
            _ALLOCATE | self.kind, self.line & 0xFFFF, 0,
        )  # fmt: skip


def cpu(l1d: Entry, l1i: Entry, l2: Entry) -> list[Entry]:
    """The caches of a CPU, in the order in which `below` counts them."""
    return [l1d, replace(l1i, kind=_INSTRUCTION), replace(l2, kind=_UNIFIED)]


def table(cpus: Sequence[Sequence[Entry]], *, parent_is_itself: bool = False) -> bytes:
    """A package with these CPUs, whose UIDs count from 0."""
    body = bytearray(_HEADER.size)
    package = len(body)
    body += _processor(_PACKAGE, package if parent_is_itself else 0, 0, ())
    for uid, caches in enumerate(cpus):
        first = len(body)
        for cache in caches:
            body += cache.packed(first)
        own = [first + n * _CACHE.size for n, c in enumerate(caches) if c.kind != _UNIFIED]
        body += _processor(_ID_VALID | _LEAF, package, uid, own)
    # It replaces QEMU's table: same makers' names, a higher revision.
    _HEADER.pack_into(body, 0, b"PPTT", 0, 3, 0, b"BOCHS ", b"BXPC    ", 2, b"FTCH", 1)
    return sealed(bytes(body))


def _processor(flags: int, parent: int, number: int, resources: Sequence[int]) -> bytes:
    length = _PROCESSOR.size + 4 * len(resources)
    head = _PROCESSOR.pack(0, length, 0, flags, parent, number, len(resources))
    return head + struct.pack(f"<{len(resources)}I", *resources)


def sealed(data: bytes) -> bytes:
    """`data` with its length and its checksum: all bytes of a table add up to 0."""
    data = data[:4] + struct.pack("<I", len(data)) + data[8:9] + b"\0" + data[10:]
    return data[:9] + bytes([-sum(data) & 0xFF]) + data[10:]


def as_archive(contents: bytes) -> bytes:
    """The archive to put first in an initial RAM disk, from which the kernel takes its PPTT."""
    return archive({"kernel/firmware/acpi/pptt.aml": contents})
