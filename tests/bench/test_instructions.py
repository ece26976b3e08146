# SPDX-License-Identifier: GPL-2.0
"""The compiled loops touch memory with the instructions they are named for, and no others."""

import platform
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.files import REPOSITORY
from tests.bench.conftest import Ftbench

_FUNCTIONS = tomllib.loads((REPOSITORY / "tests/data/ftbench-instructions.toml").read_text())
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


def test_arm64_loops_do_what_they_are_named_for(arm64_ftbench: Path) -> None:
    functions = disassemble(cross_compile(), arm64_ftbench)
    for name, expected in _FUNCTIONS.items():
        accesses = [text.split()[0] for text in functions[name] if "[" in text]
        assert accesses == expected["arm64"], name
        # A measured loop calls no function.
        assert not {text.split()[0] for text in functions[name]} & {"bl", "blr", "br", "svc"}
    hints = [text for body in functions.values() for text in body if text.startswith("hint")]
    # populate has two regions, alone and with threads; the two that run programs share one, and
    # so do all tables of operations; the other ten have one each.
    for marker in ("#0x7e", "#0x7f"):
        assert sum(text.endswith(marker) for text in hints) == 15


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs a compiler for x86-64")
def test_x86_loops_do_what_they_are_named_for(ftbench: Ftbench) -> None:
    functions = disassemble("", ftbench.path)
    for name, expected in _FUNCTIONS.items():
        accesses = x86_accesses(functions.get(name, []))
        if name == "scan_rounds":
            # gcc 14 unrolls its first loop: the same reads, in more instructions.
            assert len(accesses) >= len(expected["x86"])
            accesses = [*dict.fromkeys(accesses)] * 2
        assert accesses == expected.get("x86", []), name
