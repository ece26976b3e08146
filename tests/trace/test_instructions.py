# SPDX-License-Identifier: GPL-2.0
"""What instructions do to memory: the disassembler's word, and the kernel's decoder's."""

import struct

import pytest

from firsttouch.trace.instructions import arm64_access, decode, distance
from firsttouch.trace.kinds import Access
from tests.linux.mnemonics import Intent, forms

X86 = [
    ("488b07", Access.READ),  # mov rax, [rdi]
    ("488907", Access.WRITE),  # mov [rdi], rax
    ("0f1107", Access.WRITE),  # movups [rdi], xmm0
    ("c5fe7f07", Access.WRITE),  # vmovdqu [rdi], ymm0
    ("62f1fe287f07", Access.WRITE),  # vmovdqu64 [rdi], ymm0
    ("c5fd7407", Access.READ),  # vpcmpeqb ymm0, ymm0, [rdi]
    ("833f00", Access.READ),  # cmp dword [rdi], 0
    ("f60701", Access.READ),  # test byte [rdi], 1
    ("ff07", Access.UPDATE),  # inc dword [rdi]
    ("0307", Access.READ),  # add eax, [rdi]
    ("0107", Access.UPDATE),  # add [rdi], eax
    ("f00fb10f", Access.UPDATE),  # lock cmpxchg [rdi], ecx
    ("8707", Access.UPDATE),  # xchg [rdi], eax
    ("0fab07", Access.UPDATE),  # bts [rdi], eax
    ("f3a4", Access.EITHER),  # rep movsb
    ("f3aa", Access.WRITE),  # rep stosb
    ("ac", Access.READ),  # lodsb
    ("50", Access.WRITE),  # push rax
    ("58", Access.READ),  # pop rax
    ("ff37", Access.EITHER),  # push [rdi]
    ("e800000000", Access.WRITE),  # call
    ("c3", Access.READ),  # ret
    ("0f9407", Access.WRITE),  # sete [rdi]
    ("dd1f", Access.WRITE),  # fstp qword [rdi]
    ("dd07", Access.READ),  # fld qword [rdi]
    ("0fae1f", Access.WRITE),  # stmxcsr [rdi]
    ("c4e27d900407", Access.READ),  # vpgatherdd
    ("06", Access.UNKNOWN),  # none in 64-bit mode
]


@pytest.mark.parametrize(("code", "access"), X86, ids=[code for code, _ in X86])
def test_x86_64(code: str, access: Access) -> None:
    assert decode("x86_64", bytes.fromhex(code), 0x1000).access is access


def test_the_same_bytes_are_another_instruction_in_32_bits() -> None:
    push_all, increment = bytes.fromhex("60"), bytes.fromhex("408807")  # pusha; inc, mov [edi], al
    assert decode("i386", push_all, 0x1000).access is Access.WRITE
    assert decode("x86_64", push_all, 0x1000).access is Access.UNKNOWN
    assert distance("i386", increment, 0x1000, 0x1001) == 1
    assert distance("x86_64", increment, 0x1000, 0x1001) is None
    assert decode("arm", bytes(4), 0x1000).access is Access.UNKNOWN


ARM64 = [
    (0xF9400020, Access.READ),  # ldr x0, [x1]
    (0x38401420, Access.READ),  # ldrb w0, [x1], #1
    (0xA9407C20, Access.READ),  # ldp
    (0xC8DFFC20, Access.READ),  # ldar x0, [x1]
    (0xF9000020, Access.WRITE),  # str x0, [x1]
    (0xA9007C20, Access.WRITE),  # stp
    (0xD50B7420, Access.WRITE),  # dc zva, x0
    (0xD50B7E20, Access.READ),  # dc civac, x0
    (0xD50B7520, Access.READ),  # ic ivau, x0
    (0x1D8D0583, Access.EITHER),  # cpye [x3]!, [x13]!, x12!
    (0x19CD06E3, Access.WRITE),  # setp [x3]!, x23!, x13
    (0x85C61AA8, Access.UNKNOWN),  # prfb pstl1keep, p6, [x21, #6, mul vl]
    (0xC8007C20, Access.WRITE),  # stxr w0, x0, [x1]
    (0xC85F7C20, Access.EXCLUSIVE),  # ldxr x0, [x1]
    (0xC87F7C20, Access.EXCLUSIVE),  # ldxp
    (0xF8200020, Access.ATOMIC),  # ldadd x0, x0, [x1]
    (0xF820003F, Access.ATOMIC),  # stadd x0, [x1]
    (0xC8A07C20, Access.ATOMIC),  # cas x0, x0, [x1]
    (0x48207C20, Access.ATOMIC),  # casp
    (0xB8208020, Access.ATOMIC),  # swp w0, w0, [x1]
    (0xD503201F, Access.UNKNOWN),  # nop
]


@pytest.mark.parametrize(("word", "access"), ARM64, ids=[f"{word:#x}" for word, _ in ARM64])
def test_arm64(word: int, access: Access) -> None:
    assert decode("aarch64", struct.pack("<I", word), 0x1000).access is access


@pytest.mark.parametrize(
    ("machine", "code", "words"),
    [("x86_64", "e8fb0f0000", "call {1:#x}"), ("aarch64", "00800058", "ldr x0, {0}{1:#x}")],
)
def test_words_with_an_address_are_those_of_each_place(machine: str, code: str, words: str) -> None:
    for pc in (0x1000, 0x70001000):
        assert decode(machine, bytes.fromhex(code), pc).text == words.format("#", pc + 0x1000)


def test_the_steps_between_a_load_and_its_store() -> None:
    code = bytes.fromhex("488b074883c001488907c3")  # load, add, store, ret
    assert distance("x86_64", code, 0x1000, 0x1007) == 2
    assert distance("x86_64", code, 0x1000, 0x1008) is None
    assert distance("x86_64", code, 0x1000, 0x2000) is None


def test_the_kernels_kinds_are_those_of_the_names() -> None:
    """The kernel's decoder knows instructions that the disassembler does not; none differs."""
    kinds = {Intent.RMW: Access.ATOMIC, Intent.EXCLUSIVE: Access.EXCLUSIVE}
    for form in forms():
        assert arm64_access(form.mnemonic) is kinds[form.intent], form.mnemonic
