# SPDX-License-Identifier: GPL-2.0
"""Reads a recorder's file: faults and what changed address spaces, in the order of time.

recorder/format.h, perf_event_open(2) and proc(5) describe what it has.
"""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from firsttouch.errors import UserError
from firsttouch.trace.events import INODE, Changed, Event, Fate, Fault, Mapped, Samples

# Types of the kernel's records.
_COMM, _EXIT, _FORK, _MMAP2 = 3, 4, 7, 10
_COMM_EXEC, _WITH_BUILD_ID = 1 << 13, 1 << 14

# Where a record has its thread and its time, if the recording asked for them.
TRAILER = struct.Struct("<IIQ")
_MAPPING = struct.Struct("<IIQQQ24sII")
_COUNT = struct.Struct("<Q")
# Of proc(5): limits, permissions, the offset, the device, the inode and the path.
_ADDRESS = "([0-9a-f]{1,16})"
_LINE = re.compile(rf"{_ADDRESS}-{_ADDRESS} (\S+) {_ADDRESS} \S+ (\d+) *(.*)")


def change_of(data: bytes, kind: int, misc: int) -> Event | None:
    """Return the event of a record of the kernel's; None for one that changes no space."""
    _, _, time = TRAILER.unpack_from(data, len(data) - TRAILER.size)
    if kind == _MMAP2:
        pid, tid, start, length, offset, identity, prot, flags = _MAPPING.unpack_from(data)
        name = data[_MAPPING.size : -TRAILER.size].split(b"\0", 1)[0]
        path = name.decode(errors="surrogateescape")
        # Either the device and the inode, or the length of a build ID, and that.
        if misc & _WITH_BUILD_ID:
            file = identity[4:][: identity[0]].hex()
        else:
            file = _inode(*_COUNT.unpack_from(identity, 8))
        return Mapped(time, pid, start, start + length, offset, prot, flags, path, file, tid)
    if kind == _FORK:
        pid, parent = struct.unpack_from("<II", data)
        return Changed(time, pid, Fate.FORKED if pid != parent else Fate.THREADED, parent)
    if kind == _EXIT:
        pid, _, tid = struct.unpack_from("<III", data)
        return Changed(time, pid, Fate.ENDED) if pid == tid else None
    if kind == _COMM:
        pid, tid = struct.unpack_from("<II", data)
        words = data[8 : -TRAILER.size].split(b"\0", 1)[0].decode(errors="replace")
        what = Fate.EXECUTED if misc & _COMM_EXEC else Fate.NAMED
        return Changed(time, pid, what, tid, words)
    return None


def _inode(number: int) -> str:
    """Return the identity of a file without a build ID; "" for the 0 of what is no file."""
    return f"{INODE} {number}" if number else ""


_TIME = attrgetter("time")

_MAGIC = b"FTTRACE3"
# Types of records: one of the kernel's, then those of recorder/format.h.
_SAMPLE = 9
_START, _ROUND, _CODE, _MAPS, _END, _ERROR = range(100, 106)
_NAMES, _BUILD_IDS, _NO_THP, _CALLS = 107, 109, 112, 113
_CALL_CHAINS, _ATTACHED, _SAYS_MAPPED, _SAYS_CALLS = 1, 4, 32, 128
_PAGE_SIZES = 4096, 16384, 65536
_MACHINES = {62: "x86_64", 183: "aarch64"}

_HEADER = struct.Struct("<IHH")
_STARTED = struct.Struct("<IIIIQQ")
# A struct ft_end, but for its `samples`.
_ENDED = struct.Struct("<iIQQ8xQQQ")
_CODE_HEAD = struct.Struct("<IIQ")
_DATA_HEAD = struct.Struct("<II")
_FORBADE = struct.Struct("<IIQ")
# Bytes that are read at a time; no record is longer than 64 KiB.
_PART = 1 << 20


@dataclass(frozen=True)
class Ending:
    """How a recording ended: a struct ft_end; `status` is None if the program goes on."""

    status: int | None
    resident: int
    time: int
    faults: int
    minor: int
    major: int
    system: int


class Recording:
    """A recorder's file. `ending` is there once `events` has run to its end.

    `ending` is None if the recorder was killed. `command` has the words of the
    command, none for a process that ran already.
    """

    def __init__(self, file: Path) -> None:
        """Raises UserError if `file` is no recording, or says why there is no trace."""
        flags, machine, self.page_size, self.pid, self.time, _ = _started(file)
        self.file = file
        self.machine = _MACHINES[machine]
        self.call_chains = bool(flags & _CALL_CHAINS)
        self.attached = bool(flags & _ATTACHED)
        # Whether it has system calls.
        self.says_calls = bool(flags & _SAYS_CALLS)
        self.kernel_release = ""
        self.command: tuple[str, ...] = ()
        self.ending: Ending | None = None
        # Of files that a process had mapped before, by path.
        self._build_ids: dict[str, str] = {}
        # The begin of a line or a word that goes on in the next record.
        self._rest = b""

    def events(self) -> Iterator[Event]:
        """Yield all events in the order of time; the file may end anywhere.

        Raises UserError if a record is damaged.
        """
        self.kernel_release, self.command, self._rest = "", (), b""
        with self.file.open("rb") as file:
            try:
                yield from self._ordered(file)
            except (struct.error, ValueError, OverflowError):
                raise UserError(_damaged(self.file)) from None

    def _ordered(self, file: BinaryIO) -> Iterator[Event]:
        """Yield events round by round: a ring may lag behind others, but not by two rounds."""
        samples = Samples(self.machine, self.call_chains)
        fault = samples.fault
        waiting: list[Event] = []
        before = 0
        for kind, misc, data in _records(file):
            if kind == _SAMPLE:
                waiting.append(fault(data, misc))
            elif kind == _ROUND:
                waiting.sort(key=_TIME)
                ready = bisect_right(waiting, before, key=_TIME)
                yield from waiting[:ready]
                del waiting[:ready]
                (before,) = _COUNT.unpack_from(data)
            elif kind == _CODE:
                self._code(data, waiting)
            elif kind >= _CALLS:
                waiting += samples.calls(data, kind - _CALLS)
            elif kind < _START:
                event = change_of(data, kind, misc)
                if event:
                    waiting.append(event)
            else:
                waiting += self._keep(data, kind)
        waiting.sort(key=_TIME)
        yield from waiting

    def _whole(self, data: bytes, end: bytes) -> list[str]:
        """Return the whole parts of text that goes on in other records; each has `end`."""
        _, size = _DATA_HEAD.unpack_from(data)
        *parts, self._rest = (self._rest + data[_DATA_HEAD.size :][:size]).split(end)
        return [part.decode(errors="replace") for part in parts]

    def _code(self, data: bytes, waiting: list[Event]) -> None:
        """Keep the code at a pc: that of the fault whose sample was read before it."""
        pid, size, pc = _CODE_HEAD.unpack_from(data)
        code = data[_CODE_HEAD.size :][:size]
        last = waiting[-1] if waiting else None
        if isinstance(last, Fault) and (last.pid, last.pc) == (pid, pc):
            waiting[-1] = last._replace(code=code)

    def _keep(self, data: bytes, kind: int) -> Iterator[Event]:
        """Keep what a record of the recorder's own says; yield the events that it has."""
        if kind == _MAPS:
            pid, _ = _DATA_HEAD.unpack_from(data)
            yield from self._mapped_before(pid, self._whole(data, b"\n"))
        elif kind == _NO_THP:
            pid, _, time = _FORBADE.unpack_from(data)
            yield Changed(time, pid, Fate.FORBADE_HUGE_PAGES)
        elif kind == _BUILD_IDS:
            for line in self._whole(data, b"\n"):
                build_id, _, path = line.partition(" ")
                self._build_ids[path] = build_id
        elif kind == _NAMES:
            names = self._whole(data, b"\0")
            if names and not self.kernel_release:
                self.kernel_release = names.pop(0)
            self.command += tuple(names)
        elif kind == _END:
            status, *rest = _ENDED.unpack_from(data)
            if status >= 0:
                os.waitstatus_to_exitcode(status)
            self.ending = Ending(None if status < 0 else status, *rest)

    def _mapped_before(self, pid: int, lines: Iterable[str]) -> Iterator[Mapped]:
        """Yield what lines of /proc/PID/maps say."""
        for match in filter(None, map(_LINE.fullmatch, lines)):
            start, end, offset = (int(match[number], 16) for number in (1, 2, 4))
            prot = sum(1 << bit for bit, letter in enumerate("rwx") if letter in match[3])
            flags = 1 if match[3].endswith("s") else 2
            path = match[6] or "//anon"
            file = self._build_ids.get(path, _inode(int(match[5])))
            yield Mapped(self.time, pid, start, end, offset, prot, flags, path, file)


def _started(file: Path) -> tuple[int, ...]:
    """Return what the start of a recording says; UserError if it is not one to read."""
    started = None
    try:
        with file.open("rb") as opened:
            if opened.read(len(_MAGIC)) != _MAGIC:
                raise UserError(f"{file} is no trace of this firsttouch: record it again.")
            for kind, _, data in _records(opened):
                if kind == _ERROR:
                    # After the start, if the command could not be executed.
                    _, length = _DATA_HEAD.unpack_from(data)
                    raise UserError(data[_DATA_HEAD.size :][:length].decode(errors="replace"))
                if kind == _START and len(data) >= _STARTED.size:
                    started = _STARTED.unpack_from(data)
                if kind == _ROUND:
                    break
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    if started is None or started[1] not in _MACHINES:
        raise UserError(f"{file}: nothing was recorded; run the same command again.")
    if started[2] not in _PAGE_SIZES:
        raise UserError(_damaged(file))
    if not started[0] & _SAYS_MAPPED:
        raise UserError(f"{file} does not say what was mapped: trace on Linux 5.11 or later.")
    return started


def _damaged(file: Path) -> str:
    return f"{file} is damaged: record the program again."


def _records(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield the kind, the misc field and the bytes after the head of each record.

    The last record is left out if the recorder was killed while it wrote it.
    """
    file.seek(len(_MAGIC))
    rest, head, unpack = b"", _HEADER.size, _HEADER.unpack_from
    while part := file.read(_PART):
        data = rest + part
        at, end = 0, len(data)
        while at + head <= end:
            kind, misc, size = unpack(data, at)
            if size < head:
                return
            if at + size > end:
                break
            yield kind, misc, data[at + head : at + size]
            at += size
        rest = data[at:]
