# SPDX-License-Identifier: GPL-2.0
"""The write-intent decoder against an assembler, and a disassembler on ten million words.

Half of the words are random, half are neighbours of instructions that have an intent. What the
disassembler calls by a name of mnemonics.toml must have that name's kind, and everything else none.
"""

import subprocess
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


_LLVM_DIFFERS = [
    # LLVM ignores Rt2 of CAST and CASPT. The architecture fixes it as 11111, not as (1) bits as
    # for LDTXR, and leaves all else unallocated.
    Difference(0x3FA00000, 0x09800000, Intent.NONE, "cas"),
    # Only what reads memory raises a data abort that is reported as a read: a store may be either.
    Difference(0xFFE0C000, 0xF8208000, Intent.RMW, "st64b"),
    # What is not allocated never raises a data abort.
    Difference(0, 0, Intent.RMW, "<unknown>"),
]


@pytest.mark.long
def test_llvm_and_the_decoder_agree_on_ten_million_words(
    tmp_path: Path, decoder: Path, assemble: Assemble
) -> None:
    words, elf, names, explained = (tmp_path / name for name in ("words", "elf", "names", "why"))
    bases = assemble([line for form in forms() for line in lines(form)]) + assemble(_NONE)
    with words.open("wb") as file:
        made: list[str | Path] = [decoder, "words", str(_SEED), str(_COUNT)]
        subprocess.run(made, input=bases, stdout=file, check=True)
    assert words.stat().st_size == 4 * _COUNT
    names.write_text("".join(f"{name} {of_kernel(kind)}\n" for name, kind in kinds().items()))
    explained.write_text(
        "".join(f"{d.mask:x} {d.value:x} {d.decoder.value} {d.name}\n" for d in _LLVM_DIFFERS)
    )
    section = ".data=.text,code,alloc,load,readonly,contents"
    subprocess.run(
        [LLVM / "llvm-objcopy", "-I", "binary", "-O", "elf64-littleaarch64", "--rename-section",
         section, "--strip-all", words, elf],
        check=True,
    )  # fmt: skip
    disassemble: list[str | Path] = [LLVM / "llvm-objdump", "-d", "-z", "--mattr=+all"]
    disassemble += ["--no-show-raw-insn", "--no-leading-addr", elf]
    with subprocess.Popen(disassemble, stdout=subprocess.PIPE) as disassembler:
        comparison = subprocess.Popen(
            # The field of its lines that has the name.
            [decoder, "compare", words, names, explained, "1"],
            stdin=disassembler.stdout, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert disassembler.stdout
        disassembler.stdout.close()  # so that it ends if the comparison ends early
        output, _ = comparison.communicate()
    assert comparison.returncode == disassembler.returncode == 0
    said = [line.split() for line in output.splitlines()]
    assert not [line for line in said if line[0] == "different"]
    assert said[-1] == ["compared", str(_COUNT)]
    covered = [int(line[1]) for line in said if line[0] == "explained"]
    assert all(covered), "an explanation of a difference that does not occur"
