# SPDX-License-Identifier: GPL-2.0
"""Finds double faults: a read of a missing page, then a write of it by the same process.

A fault has no read or write bit for perf; the instruction at its pc has. Where
that is unknown the order decides: a page that faults a second time while it is
mapped was read first. A fault on a page that is not mapped begins anew: what
was there was given back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from firsttouch.finder.events import Ended, Executed, Fault, Forked, Mapped, Upgraded
from firsttouch.finder.found import APART, ATOMIC, EXCLUSIVE, LOAD_STORE, Found, Pair
from firsttouch.finder.instructions import UNKNOWN, Access, Instruction, decode, distance
from firsttouch.finder.mapped_files import MappedFiles
from firsttouch.finder.records import Recording
from firsttouch.finder.spaces import (
    PROT_EXEC,
    Place,
    Space,
    is_anonymous,
    memory_kind,
    place_of,
)

# "A few instructions" between a load and the store to the same address.
_FEW = 16
# Bytes that hold any instruction, or some of arm64.
_CODE = 64
# Their registers tell what they read and what they write.
_COPIES = re.compile(r"(rep\w* )?movs")
_OF_32_BITS = {"x86_64": "i386", "aarch64": "arm"}
# An instruction is at most this long on x86-64.
_LONGEST = 15


class _First(NamedTuple):
    """A fault that may be the first of a double."""

    fault: Fault
    instruction: Instruction
    anonymous: bool


class _Process:
    """A process while its events are read."""

    def __init__(self, space: Space, name: int, *, executed: bool = False) -> None:
        self.space = space
        self.executed = executed
        self.name = name
        self.first: dict[int, _First] = {}
        # The last fault of each page, as its place among all faults.
        self.last: dict[int, int] = {}
        # The pcs of first faults of doubles.
        self.repeated: set[int] = set()
        self.places: dict[int, Place] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        # By pc, as at its last fault.
        self.code: dict[int, bytes] = {}
        self.decoded: dict[int, Instruction] = {}

    def place(self, pid: int, pc: int) -> Place:
        found = self.places.get(pc)
        if found is None:
            found = self.places[pc] = place_of(self.space, pid, pc)
        return found


def find(recording: Recording, root: Path = Path("/")) -> Found:
    """Return what the faults of `recording` show; `root` is where the program's files are."""
    return _Finder(recording, root).run()


class _Finder:
    def __init__(self, recording: Recording, root: Path) -> None:
        self._recording = recording
        self._mapped_files = MappedFiles(root)
        self._found = Found()
        self._processes: dict[int, _Process] = {}
        self._pairs: dict[Pair, int] = {}
        self._stacks: dict[tuple[Place, ...], int] = {}
        self._from_files: dict[Place, bytes] = {}
        self._shift = recording.page_size.bit_length() - 1

    def run(self) -> Found:
        for event in self._recording.events():
            if isinstance(event, Fault):
                self._fault(event)
            elif isinstance(event, Upgraded):
                self._upgrade(event)
            elif isinstance(event, Mapped):
                self._map(event)
            elif isinstance(event, Forked):
                self._fork(event)
            elif isinstance(event, Executed):
                self._execute(event)
            else:
                self._end(event)
        for process in self._processes.values():
            self._close(process)
        return self._found

    def _process(self, pid: int) -> _Process:
        found = self._processes.get(pid)
        if found is None:
            found = self._processes[pid] = _Process(Space(), self._name(f"process {pid}"))
        return found

    def _name(self, name: str) -> int:
        self._found.names.append(name)
        return len(self._found.names) - 1

    def _execute(self, event: Executed) -> None:
        old = self._processes.get(event.pid)
        if old:
            self._close(old)
        self._processes[event.pid] = _Process(Space(), self._name(event.name), executed=True)

    def _end(self, event: Ended) -> None:
        # A program that is executed maps its file at once.
        process = self._processes.get(event.pid)
        if process and not process.space and process.executed:
            self._found.detached.append(self._found.names[process.name])

    def _fork(self, event: Forked) -> None:
        parent = self._process(event.parent)
        name = self._name(self._found.names[parent.name])
        self._processes[event.pid] = _Process(parent.space.copy(), name)
        # A page that was written, in a way that is not known, is copied when it is written again.
        unsure = (Access.EITHER, Access.UNKNOWN)
        for page in [p for p, f in parent.first.items() if f.instruction.access in unsure]:
            del parent.first[page]

    def _map(self, event: Mapped) -> None:
        process = self._process(event.pid)
        if event.prot & PROT_EXEC:
            process.places.clear()
            process.stacks.clear()
        fresh = process.space.map(event)
        if self._recording.says_mapped:
            return
        for start, end in fresh:
            first, last = start >> self._shift, (end - 1) >> self._shift
            gone: Iterable[int] = range(first, last + 1)
            if last - first > len(process.first):
                gone = [page for page in process.first if first <= page <= last]
            for page in gone:
                process.first.pop(page, None)

    def _fault(self, fault: Fault) -> None:
        process = self._process(fault.pid)
        page = fault.address >> self._shift
        if fault.mapped == 0:
            process.first.pop(page, None)
        self._found.in_kernel += not fault.user
        instruction = self._instruction(process, fault)
        mapping = process.space.at(fault.address)
        anonymous = is_anonymous(mapping)
        self._found.anonymous += anonymous
        access = instruction.access
        first = self._first(process, fault, anonymous) if access.may_write else None
        pair = 0
        if first:
            pair = 1 + self._double(process, first, fault, instruction, memory_kind(mapping))
        elif access.may_read and not fault.mapped:
            process.first[page] = _First(fault, instruction, anonymous)
        columns = self._found.faults
        if self._recording.upgrades:
            process.last[page] = len(columns.time)
        columns.time.append(fault.time - self._recording.time)
        columns.page.append(page)
        columns.space.append(process.name)
        columns.stack.append(self._stack(process, fault))
        columns.double.append(pair)

    def _first(self, process: _Process, fault: Fault, anonymous: bool) -> _First | None:
        """Take away the read that mapped the page which a fault writes to, if there was one."""
        page = fault.address >> self._shift
        size = self._recording.page_size
        if page not in process.first and anonymous and fault.mapped == size * size // 8:
            # A read of any of its pages mapped the huge zero page.
            pages = range(page - page % (size // 8), page - page % (size // 8) + size // 8)
            page = next((page for page in pages if page in process.first), page)
        return process.first.pop(page, None)

    def _upgrade(self, event: Upgraded) -> None:
        row = self._process(event.pid).last.get(event.address >> self._shift)
        # The kernel asks again for one page if it has no huge one: that is one fault.
        if row is not None:
            self._found.upgrades.add(row)

    def _double(
        self, process: _Process, first: _First, fault: Fault, second: Instruction, memory: str
    ) -> int:
        read = process.place(fault.pid, first.fault.pc)
        pair = Pair(
            self._kind(first, fault),
            memory,
            read,
            process.place(fault.pid, fault.pc),
            first.instruction.text,
            second.text,
        )
        index = self._pairs.setdefault(pair, len(self._pairs))
        if index == len(self._found.pairs):
            self._found.pairs.append(pair)
        self._found.counts[index] += 1
        if first.fault.pc in process.repeated:
            self._found.repeats[index] += 1
        process.repeated.add(first.fault.pc)
        return index

    def _kind(self, first: _First, fault: Fault) -> str:
        access = first.instruction.access
        if access is Access.ATOMIC:
            return ATOMIC
        if access is Access.EXCLUSIVE:
            return EXCLUSIVE
        code = self._code(self._process(fault.pid), fault.pid, first.fault.pc)
        if first.fault.address == fault.address and code:
            steps = distance(self._machine(fault), code, first.fault.pc, fault.pc)
            if steps is not None and steps <= _FEW:
                return LOAD_STORE
        return APART

    def _instruction(self, process: _Process, fault: Fault) -> Instruction:
        """Return the instruction of a fault; that of a fetch is not decoded."""
        if not fault.user:
            return UNKNOWN
        if 0 <= fault.address - fault.pc <= _LONGEST and fault.address >> self._shift:
            mapping = process.space.at(fault.address)
            if mapping and mapping.prot & PROT_EXEC:
                return _FETCH
        if fault.code:
            process.code[fault.pc] = fault.code
            process.decoded.pop(fault.pc, None)
        found = process.decoded.get(fault.pc)
        if found is None:
            code = self._code(process, fault.pid, fault.pc)
            found = decode(self._machine(fault), code, fault.pc)
            # The recorder may read the code a little later than the fault.
            if code:
                process.decoded[fault.pc] = found
        self._found.undecoded += found.access is Access.UNKNOWN
        registers = fault.source or fault.destination
        if registers and found.access is Access.EITHER and _COPIES.match(found.text):
            reads = abs(fault.address - fault.source) <= abs(fault.address - fault.destination)
            return replace(found, access=Access.READ if reads else Access.WRITE)
        return found

    def _machine(self, fault: Fault) -> str:
        machine = self._recording.machine
        return machine if fault.bits == 64 else _OF_32_BITS[machine]

    def _code(self, process: _Process, pid: int, pc: int) -> bytes:
        """Return the code at a pc: as the recorder read it, or from its file."""
        # Of two processors' faults at a pc, that whose code was read may be the later one.
        read = process.code.get(pc) or self._recording.code[pid].get(pc)
        if read:
            return read
        place = process.place(pid, pc)
        if not place.path:
            return b""
        if place not in self._from_files:
            self._from_files[place] = self._mapped_files.read(place, _CODE)
        return self._from_files[place]

    def _stack(self, process: _Process, fault: Fault) -> int:
        chain = (fault.pc, *fault.chain)
        found = process.stacks.get(chain)
        if found is None:
            places = tuple(process.place(fault.pid, pc) for pc in chain)
            found = self._stacks.setdefault(places, len(self._stacks))
            if found == len(self._found.stacks):
                self._found.stacks.append(places)
            process.stacks[chain] = found
        return found

    def _close(self, process: _Process) -> None:
        """Keep what an address space is in the end, and its pages that were only read."""
        self._found.spaces[process.name] = process.space
        pages = {
            page
            for page, first in process.first.items()
            if first.anonymous and first.instruction.access is Access.READ
        }
        if pages:
            self._found.reads[process.name] = pages


_FETCH = Instruction("", Access.FETCH)
