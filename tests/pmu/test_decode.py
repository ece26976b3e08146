# SPDX-License-Identifier: GPL-2.0
"""The PMU's decoder and the finder's: both say the same of what an instruction does to memory."""

import random
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from firsttouch.trace.instructions import arm64_access, decode
from firsttouch.trace.kinds import Access
from tests.linux.conftest import LLVM
from tests.pmu.conftest import HERE, PMU, must_run

pytestmark = pytest.mark.long

_COUNT = 100_000
# Which bits are given, and how, in loads and stores, those of SVE, SME, and in all words.
_GROUPS = (
    (0x0A000000, 0x08000000), (0x0A000000, 0x08000000), (0x9E000000, 0x84000000),
    (0x9E000000, 0x80000000), (0, 0),
)  # fmt: skip
_KINDS = {
    Access.READ: ("load", "maintenance"),
    Access.EXCLUSIVE: ("load",),
    Access.WRITE: ("store", "maintenance"),
    Access.ATOMIC: ("load and store",),
    Access.EITHER: ("load and store",),
    Access.UNKNOWN: ("none",),
}
# Words that random ones are not, or rarely: fields with all bits set.
_RARE = (
    0xF83F9036,  # st64b x22, [x1]
    0xF83FD020,  # ld64b x0, [x1]
    0xF820B020,  # st64bv x0, x0, [x1]
    0xF820A020,  # st64bv0 x0, x0, [x1]
    0xD91F0C20,  # gcsstr x0, [x1]
    0xD9E000C1,  # ldgm x1, [x6]
    0xD9200391,  # stzgm x17, [x28]
    0xE1000187,  # ldr za[w12, 7], [x12, #7, mul vl]
    0xE1204141,  # str za[w14, 1], [x10, #1, mul vl]
    0xD50B7420,  # dc zva, x0
    0xD50B7463,  # dc gva, x3
    0xD50B7E20,  # dc civac, x0
    0xD50B7520,  # ic ivau, x0
)


def _words() -> list[int]:
    chance = random.Random(23)
    words = list(_RARE)
    while len(words) < _COUNT:
        mask, value = chance.choice(_GROUPS)
        words.append(chance.getrandbits(32) & ~mask | value)
    return words


def _llvm(folder: Path, code: bytes) -> Iterator[str]:
    """Yield the text of each word in the words of a recent LLVM, "" if it has none."""
    words, objct = folder / "words", folder / "words.o"
    words.write_bytes(code)
    section = ".data=.text,code,alloc,load,readonly,contents"
    must_run(
        LLVM / "llvm-objcopy", "-I", "binary", "-O", "elf64-littleaarch64", "--rename-section",
        section, "--strip-all", words, objct,
    )  # fmt: skip
    lines = must_run(
        LLVM / "llvm-objdump", "-d", "-z", "--mattr=+all", "--no-show-raw-insn",
        "--no-leading-addr", objct,
    ).splitlines()  # fmt: skip
    for line in lines[-len(code) // 4 :]:
        text = " ".join(line.split())
        yield "" if text == "<unknown>" else text


def _differences(words: list[int], kinds: list[str], texts: Iterable[str]) -> list[str]:
    """Return what differs; words that are no instruction, or have no name, do not count."""
    return [
        f"{word:#x}, {text}: {kind}"
        for word, kind, text in zip(words, kinds, texts, strict=True)
        if text and not text.startswith("sys ") and kind not in _KINDS[arm64_access(text)]
    ]


def test_both_say_the_same_of_all_words_that_a_disassembler_knows(
    build_model: Callable[..., Path], tmp_path: Path
) -> None:
    words = _words()
    code = struct.pack(f"<{len(words)}I", *words)
    program = build_model("kinds", HERE / "kinds.c", PMU / "decode.c")
    done = subprocess.run([program], input=code, capture_output=True, check=True)
    kinds = done.stdout.decode().splitlines()
    texts = list(_llvm(tmp_path, code))
    assert sum(map(bool, texts)) > _COUNT // 2
    assert all(texts[: len(_RARE)])
    assert not _differences(words, kinds, texts)
    capstone = (decode("aarch64", word).text for (word,) in struct.iter_unpack("4s", code))
    assert not _differences(words, kinds, capstone)
