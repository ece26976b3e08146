# SPDX-License-Identifier: GPL-2.0
"""The compiled loops touch memory with the instructions they are named for, and no others."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from tests.bench.conftest import Ftbench

ARM64 = {
    "touch_load": ["ldr"],
    "touch_store": ["str"],
    "touch_load_store": ["ldr", "str"],
    "touch_ldadd": ["ldadd"],
    "touch_swp": ["swp"],
    "touch_cas": ["cas"],
    "touch_casp": ["casp"],
    "touch_ldxr": ["ldxr", "stxr"],
    "read_independent": ["ldr"],
    "read_dependent": ["ldr"],
    "conflict_rounds": ["ldr", "ldr"],
    "scan_rounds": ["ldr", "ldr"],
}

X86 = {
    "touch_load": ["mov"],
    "touch_store": ["mov"],
    "touch_load_store": ["mov", "mov"],
    "touch_ldadd": ["lock xadd"],
    "touch_swp": ["xchg"],
    "touch_cas": ["lock cmpxchg"],
    "touch_casp": ["lock cmpxchg16b"],
    "read_independent": ["mov"],
    "read_dependent": ["mov"],
    "conflict_rounds": ["mov", "mov"],
    "scan_rounds": ["mov", "mov"],
}

LINE = re.compile(r"^ *[0-9a-f]+:\t(?:[0-9a-f]{2,8} )+\s*(.*)$")


def disassemble(prefix: str, program: Path) -> dict[str, list[str]]:
    """Return each function's instructions."""
    text = subprocess.run(
        [f"{prefix}objdump", "-dw", program], capture_output=True, text=True, check=True
    ).stdout
    functions: dict[str, list[str]] = {}
    body: list[str] = []
    for line in text.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            body = functions.setdefault(head[1], [])
        elif match := LINE.match(line):
            body.append(match[1].strip())
    return functions


def arm64_accesses(body: list[str]) -> list[str]:
    return [text.split()[0] for text in body if "[" in text]


def x86_accesses(body: list[str]) -> list[str]:
    """Return the mnemonics with a memory operand, without the stack's on entry and exit."""
    accesses: list[str] = []
    for text in body:
        words = re.match(r"(?:lock )?\S+", text)
        mnemonic = re.sub(r"[lq]$", "", words[0]) if words else ""
        if mnemonic.startswith(("nop", "cs", "data16", "lea")):
            continue
        if "(" in text and not ("(%rsp)" in text and not accesses):
            accesses.append(mnemonic)
    return accesses


@pytest.fixture(scope="module")
def arm64_functions(arm64_ftbench: Path) -> dict[str, list[str]]:
    return disassemble(cross_compile(), arm64_ftbench)


@pytest.mark.parametrize(("function", "expected"), ARM64.items())
def test_arm64_accesses(
    arm64_functions: dict[str, list[str]], function: str, expected: list[str]
) -> None:
    assert arm64_accesses(arm64_functions[function]) == expected


def test_arm64_functions_have_a_single_exit(arm64_functions: dict[str, list[str]]) -> None:
    """A measured loop calls no function."""
    for function in ARM64:
        body = arm64_functions[function]
        assert not [text for text in body if text.split()[0] in ("bl", "blr", "br", "svc")]


def test_arm64_markers_come_in_pairs(arm64_functions: dict[str, list[str]]) -> None:
    hints = [text for body in arm64_functions.values() for text in body if text.startswith("hint")]
    begins = [text for text in hints if text.endswith("#0x7e")]
    ends = [text for text in hints if text.endswith("#0x7f")]
    # populate has two regions, alone and with threads; the two that run programs
    # share one, and so do all tables of operations; the other nine have one each.
    assert len(begins) == len(ends) == 14


@pytest.fixture(scope="module")
def x86_functions(ftbench: Ftbench) -> dict[str, list[str]]:
    return disassemble("", ftbench.path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs a compiler for x86-64")
@pytest.mark.parametrize(("function", "expected"), X86.items())
def test_x86_accesses(
    x86_functions: dict[str, list[str]], function: str, expected: list[str]
) -> None:
    accesses = x86_accesses(x86_functions[function])
    if function == "scan_rounds":
        # gcc 14 unrolls its first loop: the same reads, in more instructions.
        assert len(accesses) >= len(expected)
        assert set(accesses) == set(expected)
    else:
        assert accesses == expected
