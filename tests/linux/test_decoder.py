# SPDX-License-Identifier: GPL-2.0
"""The write-intent decoder against an assembler, and two disassemblers on ten million words.

Half of the words are random, half are neighbours of instructions that have an intent. What the
disassembler calls by a name of mnemonics.py must have that name's kind, and everything else none.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from firsttouch.files import REPOSITORY
from tests.linux.conftest import LLVM, Assemble
from tests.linux.mnemonics import Intent, forms, kinds, lines, of_kernel

_COUNT = 10_000_000
_SEED = 0x20240507  # arbitrary, but fixed: the run is repeatable
# Instructions that read or write and are neither: each is NONE.
_NONE = (REPOSITORY / "tests/data/no-intent.s").read_text().splitlines()[2:]


def test_every_mnemonic_size_ordering_and_alias_has_its_kind(
    decoder: Path, assemble: Assemble
) -> None:
    wanted = [(line, of_kernel(form.intent)) for form in forms() for line in lines(form)]
    wanted += [(line, Intent.NONE) for line in _NONE]
    words = assemble([line for line, _ in wanted])
    digits = subprocess.run([decoder, "kinds"], input=words, capture_output=True, check=True).stdout
    wrong = [
        f"{line}: {digit}"
        for (line, intent), digit in zip(wanted, digits.decode(), strict=True)
        if int(digit) != intent
    ]
    assert not wrong


class Difference(NamedTuple):
    """Words on which decoder and disassembler differ, and the decoder is right.

    Those with (word & mask) == value that are of kind `decoder` to the decoder and that the
    disassembler calls by a name beginning with `name`.
    """

    mask: int
    value: int
    decoder: Intent
    name: str


# Only what reads memory raises a data abort that is reported as a read. Of a store the decoder
# may say anything.
_STORE = Difference(0xFFE0C000, 0xF8208000, Intent.RMW, "st64b")
_LLVM_DIFFERS = [
    # LLVM ignores Rt2 of CAST and CASPT. The architecture fixes it as 11111, not as (1) bits as
    # for LDTXR, and leaves all else unallocated.
    Difference(0x3FA00000, 0x09800000, Intent.NONE, "cas"),
    _STORE,
    # What is not allocated never raises a data abort.
    Difference(0, 0, Intent.RMW, "<unknown>"),
]
# Not allocated, or not known to Binutils 2.40 (Debian 12).
_BINUTILS_DIFFERS = [_STORE, Difference(0, 0, Intent.RMW, ".inst")]

Compare = Callable[[list[str | Path], int, list[Difference]], list[int]]


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory, decoder: Path, assemble: Assemble) -> Path:
    """A file of `_COUNT` words."""
    bases = assemble([line for form in forms() for line in lines(form)]) + assemble(_NONE)
    path = tmp_path_factory.mktemp("words") / "words.bin"
    with path.open("wb") as file:
        made: list[str | Path] = [decoder, "words", str(_SEED), str(_COUNT)]
        subprocess.run(made, input=bases, stdout=file, check=True)
    assert path.stat().st_size == 4 * _COUNT
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
                stdin=disassembler.stdout, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert disassembler.stdout
            disassembler.stdout.close()  # so that it ends if the comparison ends early
            output, _ = comparison.communicate()
        assert comparison.returncode == disassembler.returncode == 0
        said = [line.split() for line in output.splitlines()]
        assert not [line for line in said if line[0] == "different"]
        assert said[-1] == ["compared", str(_COUNT)]
        return [int(count) for word, count in (line[:2] for line in said) if word == "explained"]

    return run


@pytest.mark.long
def test_llvm_and_the_decoder_agree_on_ten_million_words(
    tmp_path: Path, words: Path, compare: Compare
) -> None:
    elf = tmp_path / "words.o"
    section = ".data=.text,code,alloc,load,readonly,contents"
    subprocess.run(
        [LLVM / "llvm-objcopy", "-I", "binary", "-O", "elf64-littleaarch64", "--rename-section",
         section, "--strip-all", words, elf],
        check=True,
    )  # fmt: skip
    disassemble: list[str | Path] = [LLVM / "llvm-objdump", "-d", "-z", "--mattr=+all"]
    disassemble += ["--no-show-raw-insn", "--no-leading-addr", elf]
    covered = compare(disassemble, 1, _LLVM_DIFFERS)
    assert all(covered), "an explanation of a difference that does not occur"


@pytest.mark.long
def test_binutils_and_the_decoder_agree_on_ten_million_words(words: Path, compare: Compare) -> None:
    objdump = shutil.which("aarch64-linux-gnu-objdump") or "objdump"
    compare([objdump, "-D", "-z", "-b", "binary", "-m", "aarch64", words], 2, _BINUTILS_DIFFERS)
