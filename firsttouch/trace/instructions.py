# SPDX-License-Identifier: GPL-2.0
"""What the instruction at a pc does to memory, by a disassembler."""

from __future__ import annotations

import functools
import re

import capstone
from capstone import x86_const

from firsttouch.trace.kinds import UNKNOWN, Access, Instruction


def decode(machine: str, code: bytes, pc: int) -> Instruction:
    """Return the first instruction of `code`, which is at `pc`; UNKNOWN if it is none.

    `machine` is x86_64, i386 or aarch64. Of any other, such as the 32-bit arm, which has
    two encodings that look alike, all is UNKNOWN.
    """
    if machine not in _ACCESS:
        return UNKNOWN
    # Many processes have the same code, each at other addresses.
    return _anywhere(machine, code) or _decode(machine, code, pc)


@functools.lru_cache(1 << 14)
def _anywhere(machine: str, code: bytes) -> Instruction | None:
    """Return the first instruction of `code`; None if its words depend on where it is."""
    low, high = (_decode(machine, code, pc) for pc in (0, 1 << 24))
    return low if low == high else None


def _decode(machine: str, code: bytes, pc: int) -> Instruction:
    for instruction in _disassembler(machine).disasm(code, pc, 1):
        return Instruction(_text(instruction), _ACCESS[machine](instruction))
    return UNKNOWN


def _text(instruction: capstone.CsInsn) -> str:
    return f"{instruction.mnemonic} {instruction.op_str}".strip()


@functools.lru_cache(1 << 16)
def distance(machine: str, code: bytes, pc: int, later: int) -> int | None:
    """Return how many instructions after `pc` the one at `later` is.

    `code` begins at `pc`. Returns None if `later` is not in it, or not where an
    instruction begins.
    """
    if machine not in _ACCESS:
        return None
    for number, instruction in enumerate(_disassembler(machine).disasm(code, pc)):
        if instruction.address >= later:
            return number if instruction.address == later else None
    return None


@functools.cache
def _disassembler(machine: str) -> capstone.Cs:
    if machine == "aarch64":
        disassembler = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    else:
        bits = capstone.CS_MODE_32 if machine == "i386" else capstone.CS_MODE_64
        disassembler = capstone.Cs(capstone.CS_ARCH_X86, bits)
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


def _arm64_access(instruction: capstone.CsInsn) -> Access:
    return arm64_access(_text(instruction))


def arm64_access(text: str) -> Access:
    """Return the access of an instruction in the assembler's words."""
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
    if len(places) != 1 or _is_string(name):
        return next((access for form, access in _IMPLICIT if form.match(name)), Access.UNKNOWN)
    if name == "lea":
        return Access.UNKNOWN
    if name in _FIRST_IS_UPDATED:
        return Access.UPDATE if places == [0] or name == "xchg" else Access.READ
    if places != [0] or name in _FIRST_IS_READ:
        return Access.READ
    stores = len(instruction.operands) > 1 or _ONE_OPERAND_STORES.match(name)
    return Access.WRITE if stores else Access.READ


def _is_string(name: str) -> bool:
    return bool(re.fullmatch("(stos|lods|scas)[bwdq]", name))


_ACCESS = {"x86_64": _x86_access, "i386": _x86_access, "aarch64": _arm64_access}
