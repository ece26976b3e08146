# SPDX-License-Identifier: GPL-2.0
"""The code at the pcs of faults, and what its instruction does to memory, by a disassembler."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import capstone
from capstone import x86_const

from firsttouch.trace.events import Fault
from firsttouch.trace.kinds import UNKNOWN, Access, Instruction
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.records import Recording
from firsttouch.trace.spaces import PROT_EXEC, Place


@functools.lru_cache(1 << 14)
def decode(machine: str, code: bytes) -> Instruction:
    """Return the first instruction of `code`, x86_64's or aarch64's; UNKNOWN if it is none."""
    for instruction in _disassembler(machine).disasm(code, 0, 1):
        text = f"{instruction.mnemonic} {instruction.op_str}".strip()
        access = arm64_access(text) if machine == "aarch64" else _x86_access(instruction)
        return Instruction(text, access)
    return UNKNOWN


@functools.cache
def _disassembler(machine: str) -> capstone.Cs:
    if machine == "aarch64":
        disassembler = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    else:
        disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.detail = True
    return disassembler


# The stores without a result, such as STADD, are LDADD with the zero register.
_OPERATIONS = "add|clr|eor|set|[su]?(max|min)(nm)?"
_ARM64 = (
    (re.compile(rf"(ld|st)(t|bf|f)?({_OPERATIONS})|swp|cas|rcw"), Access.ATOMIC),
    (re.compile("lda?t?x[rp]"), Access.EXCLUSIVE),
    # Copies of memory; sets of it.
    (re.compile("cpy"), Access.EITHER),
    (re.compile("setg?[pme]"), Access.WRITE),
    (re.compile("ld"), Access.READ),
    (re.compile("st(?!mopa)|gcsst|dc g?z?va"), Access.WRITE),
    # The kernel takes a fault of cache maintenance for a read.
    (re.compile("[di]c "), Access.READ),
)


def arm64_access(text: str) -> Access:
    return next((access for form, access in _ARM64 if form.match(text)), Access.UNKNOWN)


# capstone's own flags of operands are wrong for many vector stores, so the place of the
# operand decides: the first one is the destination, except in these.
_FIRST_IS_READ = {"cmp", "test", "bt", "jmp", "ljmp", "mul", "imul", "div", "idiv", "nop"}
_FIRST_IS_UPDATED = {
    "adc", "add", "and", "btc", "btr", "bts", "cmpxchg", "cmpxchg8b", "cmpxchg16b", "dec", "inc",
    "neg", "not", "or", "rcl", "rcr", "rol", "ror", "sal", "sar", "sbb", "shl", "shld", "shr",
    "shrd", "sub", "xadd", "xchg", "xor",
}  # fmt: skip
_ONE_OPERAND_STORES = re.compile("set|v?stmxcsr|fn?st|fistt?p?|fbstp|fn?save|fxsave|xsave")
_STRING = re.compile("(stos|lods|scas)[bwdq]")
# Instructions that name no operand in memory, or two.
_IMPLICIT = (
    (re.compile("movs[bwlq]|movsd$"), Access.EITHER),
    (re.compile("stos|enter|v?maskmov(dq)?[qu]$"), Access.WRITE),
    (re.compile("lods|scas|cmps|xlat|ret|leave|iret|pop"), Access.READ),
    (re.compile("push|call|lcall"), Access.WRITE),
)


def _x86_access(instruction: capstone.CsInsn) -> Access:
    # Prefixes such as lock and rep are part of capstone's mnemonic.
    name = instruction.mnemonic.split()[-1]
    places = [
        number
        for number, operand in enumerate(instruction.operands)
        if operand.type == x86_const.X86_OP_MEM
    ]
    if name in ("push", "call", "pop") and places:
        return Access.EITHER
    if len(places) != 1 or _STRING.fullmatch(name):
        return next((access for form, access in _IMPLICIT if form.match(name)), Access.UNKNOWN)
    if name == "lea":
        return Access.UNKNOWN
    if name in _FIRST_IS_UPDATED:
        return Access.UPDATE if places == [0] or name == "xchg" else Access.READ
    if places != [0] or name in _FIRST_IS_READ:
        return Access.READ
    stores = len(instruction.operands) > 1 or _ONE_OPERAND_STORES.match(name)
    return Access.WRITE if stores else Access.READ


# Bytes that hold any instruction, or some of arm64.
_CODE = 64
# Their registers tell what they read and what they write.
_COPIES = re.compile(r"(rep\w* )?movs")
# An instruction is at most this long on x86-64.
_LONGEST = 15


class Code:
    """Code as its file has it, or as the recorder read it."""

    def __init__(self, recording: Recording, mapped_files: MappedFiles) -> None:
        self._recording = recording
        self._mapped_files = mapped_files
        self._from_files: dict[Place, bytes] = {}

    def instruction(self, process: Process, fault: Fault) -> Instruction:
        """Return the instruction of a fault; that of a fetch or of 32 bits is not decoded."""
        if not fault.user or fault.bits == 32:
            return UNKNOWN
        if 0 <= fault.address - fault.pc <= _LONGEST and fault.address >= self._recording.page_size:
            mapping = process.space.at(fault.address)
            if mapping and mapping.prot & PROT_EXEC:
                return _FETCH
        instruction = None if fault.code else process.decoded.get(fault.pc)
        if instruction is None:
            # The recorder may read so late that the process has executed another program, with
            # other code at this pc, or a little later than the fault.
            code = self._file_code(process.place(fault.pc)) or fault.code
            instruction = decode(self._recording.machine, code)
            if code:
                process.decoded[fault.pc] = instruction
        if instruction.access is Access.EITHER and _COPIES.match(instruction.text):
            source, destination = fault.source, fault.destination
            if source or destination:
                reads = abs(fault.address - source) <= abs(fault.address - destination)
                return replace(instruction, access=Access.READ if reads else Access.WRITE)
        return instruction

    def _file_code(self, place: Place) -> bytes:
        if place not in self._from_files:
            file = self._mapped_files.at(place)
            self._from_files[place] = file.code(place.offset, _CODE) if file else b""
        return self._from_files[place]


_FETCH = Instruction("", Access.FETCH)
