# SPDX-License-Identifier: GPL-2.0
"""A machine's caches as firmware describes them: ACPI's Processor Properties Topology Table.

Layouts: ACPI Specification 6.5, 5.2.6 (table header), 5.2.30 (PPTT). The
kernel takes the table from kernel/firmware/acpi/pptt.aml of the initial RAM
disk, an uncompressed archive, in place of the firmware's
(Documentation/admin-guide/acpi/initrd_table_override.rst).
"""

from __future__ import annotations

import struct
from pathlib import Path

from firsttouch.catalog.machines import Cache, CpuKind, Machine
from firsttouch.errors import UserError
from firsttouch.vm import initramfs

# Of Debian's qemu-efi-aarch64: ACPI tables reach a guest through UEFI.
FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")

# It replaces QEMU's table: same makers' names, a higher revision.
_OEM, _OEM_TABLE, _OEM_REVISION, _CREATOR = b"BOCHS ", b"BXPC    ", 2, b"FTCH"
_REVISION = 3
_HEADER = struct.Struct("<4sIBB6s8sI4sI")
# type, length, reserved, flags, parent, processor ID, number of resources
_PROCESSOR = struct.Struct("<BBHIIII")
_PACKAGE, _ID_VALID, _LEAF = 1 << 0, 1 << 1, 1 << 3
# type, length, reserved, flags, next level, size, sets, ways, attributes, line, cache ID
_CACHE = struct.Struct("<BBHIIIIBBHI")
# Flags: size, sets, ways, allocation, type, write policy and line size are valid;
# the last, of the cache ID, is not set.
_ALL_VALID = 0x7F
# Attributes: read and write allocate in bits 1:0, the type in bits 3:2, write-back in bit 4.
_ALLOCATE = 0x2
_DATA, _INSTRUCTION, _UNIFIED = 0x0, 0x4, 0x8


def archive(machine: Machine, cpus: int) -> bytes:
    """Return the table of `table` as the archive to put first in an initial RAM disk."""
    return as_archive(table(machine, cpus))


def as_archive(contents: bytes) -> bytes:
    """Return the archive from which the kernel takes `contents` for its PPTT."""
    return initramfs.archive({"kernel/firmware/acpi/pptt.aml": contents})


def table(machine: Machine, cpus: int) -> bytes:
    """Return the table for a guest of `cpus` CPUs, which take the machine's kinds in turn.

    Raises UserError for a cache whose figures do not fit the table's fields.
    """
    body = bytearray(_HEADER.size)
    l3 = _add_cache(body, machine.l3, _UNIFIED, 0) if machine.l3 else 0
    package = _add_processor(body, _PACKAGE, 0, 0, [l3] if l3 else [])
    for number, kind in enumerate(machine.kinds_of(cpus)):
        caches = _add_cpu_caches(body, kind)
        _add_processor(body, _ID_VALID | _LEAF, package, number, caches)
    header = (
        b"PPTT", len(body), _REVISION, 0, _OEM, _OEM_TABLE, _OEM_REVISION, _CREATOR, 1,
    )  # fmt: skip
    _HEADER.pack_into(body, 0, *header)
    # All bytes of a table add up to 0.
    body[9] = -sum(body) & 0xFF
    return bytes(body)


def _add_cpu_caches(body: bytearray, kind: CpuKind) -> list[int]:
    """Add a CPU's own caches; return where those are that hang on it directly.

    The L3 hangs on the package, and there alone: the kernel would count a
    level for it each way.
    """
    below = _add_cache(body, kind.l2, _UNIFIED, 0) if kind.l2 else 0
    return [
        _add_cache(body, kind.l1d, _DATA, below),
        _add_cache(body, kind.l1i, _INSTRUCTION, below),
    ]


def _add_cache(body: bytearray, cache: Cache, kind: int, below: int) -> int:
    """Add a cache; return its place, by which others refer to it."""
    place = len(body)
    try:
        body += _CACHE.pack(
            1, _CACHE.size, 0, _ALL_VALID, below, cache.size, cache.sets, cache.ways,
            _ALLOCATE | kind, cache.line, 0,
        )  # fmt: skip
    except struct.error as error:
        raise UserError(
            f"a cache of {cache.size} bytes in {cache.ways} ways does not fit a PPTT: {error}."
        ) from None
    return place


def _add_processor(
    body: bytearray, flags: int, parent: int, number: int, resources: list[int]
) -> int:
    place = len(body)
    length = _PROCESSOR.size + 4 * len(resources)
    body += _PROCESSOR.pack(0, length, 0, flags, parent, number, len(resources))
    body += struct.pack(f"<{len(resources)}I", *resources)
    return place
