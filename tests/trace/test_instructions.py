# SPDX-License-Identifier: GPL-2.0
"""What instructions do to memory: the disassembler's word, and the kernel's decoder's."""

import struct
import tomllib

import pytest

from firsttouch.files import REPOSITORY
from firsttouch.trace.instructions import arm64_access, decode
from firsttouch.trace.kinds import Access
from tests.linux.mnemonics import Intent, forms

_ACCESSES = tomllib.loads((REPOSITORY / "tests/data/accesses.toml").read_text())


@pytest.mark.parametrize(("code", "access"), _ACCESSES["x86-64"].items())
def test_x86_64(code: str, access: str) -> None:
    assert decode("x86_64", bytes.fromhex(code)).access is Access[access]


@pytest.mark.parametrize(("word", "access"), _ACCESSES["arm64"].items())
def test_arm64(word: str, access: str) -> None:
    code = struct.pack("<I", int(word, 16))
    assert decode("aarch64", code).access is Access[access]


def test_the_kernels_kinds_are_those_of_the_names() -> None:
    """The kernel's decoder knows instructions that the disassembler does not; none differs."""
    kinds = {Intent.RMW: Access.ATOMIC, Intent.EXCLUSIVE: Access.EXCLUSIVE}
    for form in forms():
        assert arm64_access(form.mnemonic) is kinds[form.intent], form.mnemonic
