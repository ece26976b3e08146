# SPDX-License-Identifier: GPL-2.0
"""Reads what changed an address space: records of perf_event_open(2), and /proc/PID/maps."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from firsttouch.finder.events import INODE, Ended, Event, Executed, Forked, Mapped, Named, Threaded

# Types of the kernel's records.
_COMM, _EXIT, _FORK, _MMAP2 = 3, 4, 7, 10
_COMM_EXEC, _WITH_BUILD_ID = 1 << 13, 1 << 14

# Where a record has its thread and its time, if the recording asked for them.
TRAILER = struct.Struct("<IIQ")
_MAPPING = struct.Struct("<IIQQQ24sII")
_COUNT = struct.Struct("<Q")


def change_of(data: bytes, kind: int, misc: int) -> Event | None:
    """Return the event of a record of the kernel's; None for one that changes no space."""
    if len(data) < TRAILER.size:
        raise struct.error
    _, _, time = TRAILER.unpack_from(data, len(data) - TRAILER.size)
    if kind == _MMAP2:
        pid, _, start, length, offset, identity, prot, flags = _MAPPING.unpack_from(data)
        name = data[_MAPPING.size : -TRAILER.size].split(b"\0", 1)[0]
        path = name.decode(errors="surrogateescape")
        # Either the device and the inode, or the length of a build ID, and that.
        if misc & _WITH_BUILD_ID:
            file = identity[4:][: identity[0]].hex()
        else:
            file = _inode(*_COUNT.unpack_from(identity, 8))
        return Mapped(time, pid, start, start + length, offset, prot, flags, path, file)
    if kind == _FORK:
        pid, parent = struct.unpack_from("<II", data)
        return Forked(time, pid, parent) if pid != parent else Threaded(time, pid)
    if kind == _EXIT:
        pid, _, tid = struct.unpack_from("<III", data)
        return Ended(time, pid) if pid == tid else None
    if kind == _COMM:
        pid, tid = struct.unpack_from("<II", data)
        words = data[8 : -TRAILER.size].split(b"\0", 1)[0].decode(errors="replace")
        return Executed(time, pid, words) if misc & _COMM_EXEC else Named(time, pid, tid, words)
    return None


def mappings(time: int, pid: int, text: str) -> Iterator[Mapped]:
    """Yield the mappings in /proc/PID/maps."""
    for line in text.splitlines():
        words = line.split(maxsplit=5)
        if len(words) < 5:
            continue
        start, _, end = words[0].partition("-")
        prot = sum(1 << bit for bit, letter in enumerate("rwx") if letter in words[1])
        path = words[5] if len(words) > 5 else "//anon"
        flags = 1 if words[1].endswith("s") else 2
        first, last, offset = int(start, 16), int(end, 16), int(words[2], 16)
        if (first | last | offset) >> 64:
            raise ValueError
        file = _inode(int(words[4]))
        yield Mapped(time, pid, first, last, offset, prot, flags, path, file)


def _inode(number: int) -> str:
    """Return the identity of a file without a build ID; "" for the 0 of what is no file."""
    return f"{INODE} {number}" if number else ""
