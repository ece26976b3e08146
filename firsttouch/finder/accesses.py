# SPDX-License-Identifier: GPL-2.0
"""What an instruction does to memory."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple

# Instructions of x86-64 and arm64 that write more than a word: their vectors and repetitions.
_BLOCKS = re.compile(r"\b[xyz]mm\d|\b[qvz]\d|^(rep|dc|set|cpy)")


class Access(enum.Enum):
    """What the first fault of an instruction on a missing page asks for."""

    READ = "load"
    WRITE = "store"
    # Reads and writes in one go: a write fault on x86-64.
    UPDATE = "update"
    # The same on arm64, where the fault is reported as a read.
    ATOMIC = "atomic"
    EXCLUSIVE = "load-exclusive"
    # Reads one place and writes another, such as movs.
    EITHER = "load and store"
    FETCH = "fetch"
    UNKNOWN = "unknown"

    def __init__(self, word: str) -> None:
        # Whether a fault of it on a missing page may be a read fault of data, and a write fault.
        self.may_read = word not in ("store", "update", "fetch")
        self.may_write = word not in ("load", "load-exclusive", "fetch")
        # Whether it needs no more than itself to tell what a fault of it was.
        self.clear = word not in ("load and store", "fetch", "unknown")


@dataclass(frozen=True)
class Instruction:
    """An instruction in the assembler's words, and its access to memory."""

    text: str
    access: Access

    @property
    def of_words(self) -> bool:
        """Whether it writes no more than a word, as code does that keeps books."""
        return not _BLOCKS.search(self.text)


UNKNOWN = Instruction("", Access.UNKNOWN)


class First(NamedTuple):
    """A fault that may be the first of a double."""

    pc: int
    address: int
    instruction: Instruction
    anonymous: bool
