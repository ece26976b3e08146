# SPDX-License-Identifier: GPL-2.0
"""The code at the pcs of faults, and the instruction of each fault."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from firsttouch.trace.debug_files import MappedFiles
from firsttouch.trace.events import Fault
from firsttouch.trace.instructions import decode
from firsttouch.trace.kinds import UNKNOWN, Access, Instruction
from firsttouch.trace.process import Process
from firsttouch.trace.records import Recording
from firsttouch.trace.spaces import PROT_EXEC, Place

# Bytes that hold any instruction, or some of arm64.
_CODE = 64
# Their registers tell what they read and what they write.
_COPIES = re.compile(r"(rep\w* )?movs")
_OF_32_BITS = {"x86_64": "i386", "aarch64": "arm"}
# An instruction is at most this long on x86-64.
_LONGEST = 15


class Code:
    """Code as its file has it, or as the recorder read it; `undecoded` counts faults without."""

    def __init__(self, recording: Recording, mapped_files: MappedFiles) -> None:
        self.undecoded = 0
        self._recording = recording
        self._mapped_files = mapped_files
        self._from_files: dict[Place, bytes] = {}
        self._shift = recording.page_size.bit_length() - 1

    def instruction(self, process: Process, fault: Fault) -> Instruction:
        """Return the instruction of a fault; that of a fetch is not decoded."""
        if not fault.user:
            return UNKNOWN
        if 0 <= fault.address - fault.pc <= _LONGEST and fault.address >> self._shift:
            mapping = process.areas.at(fault.address).mapping
            if mapping and mapping.prot & PROT_EXEC:
                return _FETCH
        pc = fault.pc
        if fault.code:
            process.code[pc] = fault.code
            process.decoded.pop(pc, None)
        instruction = process.decoded.get(pc)
        if instruction is None:
            code = self.code(process, fault.pid, pc)
            instruction = decode(self.machine(fault), code, pc)
            # The recorder may read the code a little later than the fault.
            if code:
                process.decoded[pc] = instruction
        if instruction.access is Access.UNKNOWN:
            self.undecoded += 1
        elif instruction.access is Access.EITHER and _COPIES.match(instruction.text):
            source, destination = fault.source, fault.destination
            if source or destination:
                reads = abs(fault.address - source) <= abs(fault.address - destination)
                return _reading(instruction) if reads else _writing(instruction)
        return instruction

    def machine(self, fault: Fault) -> str:
        """Return whose instructions the program of a fault executes."""
        machine = self._recording.machine
        return machine if fault.bits == 64 else _OF_32_BITS[machine]

    def code(self, process: Process, pid: int, pc: int) -> bytes:
        """Return the code at a pc: from its file, or as the recorder read it.

        The recorder may read so late that the process has executed another program, with
        other code at this pc. So a file comes first that is the mapped one.
        Then comes what was read with a fault of this program. What was read with any fault of
        the process comes last: of two processors' faults at a pc, that may be the later one.
        """
        place = process.place(pid, pc)
        code = self._file_code(place) if place.identity else b""
        code = code or process.code.get(pc) or self._file_code(place)
        return code or self._recording.code[pid].get(pc, b"")

    def _file_code(self, place: Place) -> bytes:
        """Return the code at a place as its file has it; none if no file does."""
        if not place.path:
            return b""
        if place not in self._from_files:
            self._from_files[place] = self._mapped_files.read(place, _CODE)
        return self._from_files[place]


_FETCH = Instruction("", Access.FETCH)


@functools.cache
def _reading(copy: Instruction) -> Instruction:
    return replace(copy, access=Access.READ)


@functools.cache
def _writing(copy: Instruction) -> Instruction:
    return replace(copy, access=Access.WRITE)
