# SPDX-License-Identifier: GPL-2.0
"""Callers by .eh_frame and the top of the stack, where a program keeps no frame pointers."""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from elftools.dwarf.callframe import FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from firsttouch.trace.events import Call, Fault
from firsttouch.trace.mapped_files import MappedFile, MappedFiles
from firsttouch.trace.spaces import Place

if TYPE_CHECKING:
    from firsttouch.trace.process import Process

_WORD = struct.Struct("<Q")
# DWARF's numbers of the frame pointer, the stack pointer and the return address.
_REGISTERS = {"x86_64": (6, 7, 16), "aarch64": (29, 31, 30)}
# Of .eh_frame_hdr, the table of functions by address: all linkers write this form.
_FORM = b"\x01\x1b\x03\x3b"
_COUNT, _ROW = struct.Struct("<I"), struct.Struct("<ii")
# An address without the signature that arm64 may put above it.
_ADDRESS = (1 << 48) - 1
# Bytes of .eh_frame that are read whole, in seconds.
_MOST = 1 << 20


class Rule(NamedTuple):
    """How a frame ends: the caller's SP is `size` above SP, or above FP if not `by_sp`.

    The caller's FP and the return address are so far from that, None for what is still in its
    register. Both are None, and `last` is true, where there is no caller.
    """

    by_sp: bool
    size: int
    fp: int | None
    back: int | None
    last: bool = False


# A function that makes a system call has no frame, also where a C library has no rules, as musl.
_CALLS = {"x86_64": Rule(True, 8, None, -8), "aarch64": Rule(True, 0, None, None)}


class Frames(CallFrameInfo):
    """The rules of an ELF file, each decoded when it is first asked for."""

    def __init__(self, elf: ELFFile, *, machine: str) -> None:
        """Raises ValueError without a table, and whatever a damaged file makes of the reader."""
        head, frames = (elf.get_section_by_name(n) for n in (".eh_frame_hdr", ".eh_frame"))
        if frames is None or elf.elfclass != 64:
            raise ValueError
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
        super().__init__(
            io.BytesIO(frames.data()), frames["sh_size"], frames["sh_addr"], structs,
            for_eh_frame=True,
        )  # fmt: skip
        self._fp, self._sp, self._back = _REGISTERS[machine]
        if head and head.data()[:4] == _FORM:
            (count,) = _COUNT.unpack_from(head.data(), 8)
            rows = _ROW.iter_unpack(head.data()[12 : 12 + count * _ROW.size])
            at, by = head["sh_addr"], head["sh_addr"] - frames["sh_addr"]
            self._table = [(at + start, by + entry) for start, entry in rows]
        elif frames["sh_size"] <= _MOST:
            # A static program has no table.
            entries = (entry for entry in self.get_entries() if isinstance(entry, FDE))
            self._table = sorted((entry["initial_location"], entry.offset) for entry in entries)
        else:
            raise ValueError

    def rule(self, address: int) -> Rule | None:
        """Return the rule at an address, as the file counts them; None if there is none."""
        number = bisect_right(self._table, address, key=itemgetter(0)) - 1
        entry = self._parse_entry_at(self._table[number][1]) if number >= 0 else None
        if not isinstance(entry, FDE):
            return None
        start = entry["initial_location"]
        if not start <= address < start + entry["address_range"]:
            return None
        line = [line for line in entry.get_decoded().table if line["pc"] <= address][-1]
        base, fp, back = line["cfa"], line.get(self._fp), line.get(self._back)
        if back and back.type == RegisterRule.UNDEFINED:
            return Rule(True, 0, None, None, last=True)
        if base.reg not in (self._sp, self._fp):
            return None
        fp_at, back_at = (
            each.arg if each and each.type == RegisterRule.OFFSET else None for each in (fp, back)
        )
        return Rule(base.reg == self._sp, base.offset, fp_at, back_at)


class Unwinder:
    """Follows the frames of a recording's events, by the files that are mapped."""

    def __init__(self, machine: str, mapped_files: MappedFiles) -> None:
        self._machine = machine
        self._mapped_files = mapped_files
        self._frames: dict[MappedFile, Frames | None] = {}
        self._rules: dict[Place, Rule | None] = {}

    def chain(self, process: Process, event: Fault | Call) -> tuple[int, ...]:
        """Return where the callers of an event's code go on, the nearest first.

        Frames are followed until the recorded part of the stack ends, or code has no rules, as
        that of JIT compilers and Go. There the chain that the kernel found by frame pointers
        goes on, if it joins.
        """
        frame = event.frame
        if frame is None:
            return event.chain
        found: list[int] = []
        rules, stack, first = process.rules, frame.stack, frame.sp
        at, sp, fp, back = event.pc, frame.sp, frame.fp, frame.back
        end = len(stack) - 8
        while len(found) < 64:
            # A call is the end of its function where that does not return.
            where = at - 1 if found else at
            if where not in rules:
                rules[where] = self._rule(process, where)
            rule = rules[where]
            if rule is None and not found and not isinstance(event, Fault):
                rule = _CALLS[self._machine]
            if rule is None:
                break
            if rule.last:
                return tuple(found)
            caller = (sp if rule.by_sp else fp) + rule.size
            if rule.back is not None:
                place = caller + rule.back - first
                if not 0 <= place <= end:
                    break
                back = _WORD.unpack_from(stack, place)[0] & _ADDRESS
            elif found:
                break
            if rule.fp is not None:
                place = caller + rule.fp - first
                if not 0 <= place <= end:
                    break
                (fp,) = _WORD.unpack_from(stack, place)
            at, sp = back, caller
            found.append(at)
        chain = event.chain
        if found and found[-1] in chain:
            chain = chain[chain.index(found[-1]) + 1 :]
        elif found and fp != frame.fp:
            chain = ()
        return (*found, *chain)

    def _rule(self, process: Process, pc: int) -> Rule | None:
        place = process.place(pc)
        if place not in self._rules:
            self._rules[place] = None
            file = self._mapped_files.at(place)
            if file and file not in self._frames:
                self._frames[file] = file.read(lambda elf: Frames(elf, machine=self._machine))
            if file and (frames := self._frames[file]):
                # The library raises whatever a damaged file makes of it.
                with suppress(Exception):
                    self._rules[place] = frames.rule(file.address(place.offset))
        return self._rules[place]
