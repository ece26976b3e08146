# SPDX-License-Identifier: GPL-2.0
"""The write-intent decoder against two disassemblers, on ten million words.

Half of the words are random, half are neighbours of instructions that have an intent. What the
disassembler calls by a name of mnemonics.py must have that name's kind, and everything else none.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Assemble
from .mnemonics import NEGATIVES, Intent, forms, kinds, lines, of_kernel

COUNT = 10_000_000

pytestmark = pytest.mark.long
SEED = 0x20240507  # arbitrary, but fixed: the run is repeatable

LLVM = Path("/usr/lib/llvm-22/bin")


@dataclass(frozen=True)
class Difference:
    """Words on which decoder and disassembler differ, and why the decoder is right.

    Covers the words with (word & mask) == value that are of kind decoder to the decoder and that
    the disassembler calls by a name beginning with name, ``*`` for any.
    """

    mask: int
    value: int
    decoder: Intent
    name: str
    reason: str


LLVM_DIFFERS = [
    Difference(
        0x3FA00000,
        0x09800000,
        Intent.NONE,
        "cas",
        "LLVM ignores Rt2 of CAST and CASPT. The architecture fixes it as 11111, not as (1) bits "
        "as for LDTXR, and leaves all else unallocated",
    ),
]

# Only what reads memory raises a data abort that is reported as a read. Of a store the decoder
# may say anything.
STORE = Difference(0xFFE0C000, 0xF8208000, Intent.RMW, "st64b", "a store")
LLVM_DIFFERS += [STORE]

# Of what is not allocated the decoder may say anything: it never raises a data abort.
UNALLOCATED = "<unknown>"
LLVM_DIFFERS += [Difference(0, 0, Intent.RMW, UNALLOCATED, "not allocated")]
# Not allocated, or not known to Binutils 2.40 (Debian 12).
UNKNOWN = ".inst"
BINUTILS_DIFFERS = [
    STORE,
    Difference(0, 0, Intent.RMW, UNKNOWN, "not known"),
]

Compare = Callable[[list[str | Path], int, list[Difference]], list[int]]


def _tool(name: str, package: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is missing: ./setup installs it with the package {package}"
    return path


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory, decoder: Path, assemble: Assemble) -> Path:
    """A file of COUNT words."""
    bases = assemble([line for form in forms() for line in lines(form)])
    bases += assemble(NEGATIVES.strip().splitlines())
    path = tmp_path_factory.mktemp("words") / "words.bin"
    with path.open("wb") as file:
        made: list[str | Path] = [decoder, "words", str(SEED), str(COUNT)]
        subprocess.run(made, input=bases, stdout=file, check=True)
    assert path.stat().st_size == 4 * COUNT
    return path


@pytest.fixture
def compare(tmp_path: Path, decoder: Path, words: Path) -> Compare:
    """Runs a disassembler over the words; fails on a difference that is not explained.

    Takes its command, the field of its lines that holds the name, and the explained differences;
    returns how many words each of these covered.
    """
    names, explained = tmp_path / "mnemonics", tmp_path / "explained"

    def run(command: list[str | Path], field: int, exceptions: list[Difference]) -> list[int]:
        names.write_text("".join(f"{name} {of_kernel(kind)}\n" for name, kind in kinds().items()))
        explained.write_text(
            "".join(f"{d.mask:x} {d.value:x} {d.decoder.value} {d.name}\n" for d in exceptions)
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE) as disassembler:
            comparison = subprocess.Popen(
                [decoder, "compare", words, names, explained, str(field)],
                stdin=disassembler.stdout,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert disassembler.stdout
            disassembler.stdout.close()  # so that it ends if the comparison ends early
            output, _ = comparison.communicate()
        assert comparison.returncode == 0
        assert disassembler.returncode == 0
        said = [line.split() for line in output.splitlines()]
        assert not [line for line in said if line[0] == "different"]
        assert said[-1] == ["compared", str(COUNT)]
        return [int(count) for word, count in (line[:2] for line in said) if word == "explained"]

    return run


def test_llvm_and_the_decoder_agree_on_ten_million_words(
    tmp_path: Path, words: Path, compare: Compare
) -> None:
    objct = tmp_path / "words.o"
    section = ".data=.text,code,alloc,load,readonly,contents"
    copy: list[str | Path] = [_tool(str(LLVM / "llvm-objcopy"), "llvm-22")]
    copy += ["-I", "binary", "-O", "elf64-littleaarch64", "--rename-section", section]
    copy += ["--strip-all", words, objct]
    subprocess.run(copy, check=True)
    disassemble: list[str | Path] = [_tool(str(LLVM / "llvm-objdump"), "llvm-22")]
    disassemble += ["-d", "-z", "--mattr=+all", "--no-show-raw-insn", "--no-leading-addr", objct]
    covered = compare(disassemble, 1, LLVM_DIFFERS)
    assert all(covered), "an explanation of a difference that does not occur"


def test_binutils_and_the_decoder_agree_on_ten_million_words(words: Path, compare: Compare) -> None:
    objdump = shutil.which("aarch64-linux-gnu-objdump") or _tool("objdump", "binutils")
    compare([objdump, "-D", "-z", "-b", "binary", "-m", "aarch64", words], 2, BINUTILS_DIFFERS)
