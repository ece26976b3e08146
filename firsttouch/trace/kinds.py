# SPDX-License-Identifier: GPL-2.0
"""What a page fault is: each has exactly one kind."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple

from firsttouch.trace.events import Mapped
from firsttouch.trace.spaces import ANONYMOUS, PRIVATE_FILE, SHARED, STACK

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
    """The first fault of a page that may have read it."""

    pc: int
    access: Access


# The kinds by their number: faults are counted by it, because a recording may have 100 million.
NAMES = (
    "first write", "zero page", "read, then written", "again", "after fork", "file",
    "private file", "shared", "in the kernel", "stack", "vdso", "no memory", "unknown",
)  # fmt: skip


class Kind(enum.IntEnum):
    """The kind of a fault, as of NAMES."""

    (
        FIRST_WRITE, ZERO_PAGE, SECOND, AGAIN, AFTER_FORK, FILE, PRIVATE, SHARED_MEMORY, IN_KERNEL,
        STACK, VDSO, NO_MEMORY, UNKNOWN,
    ) = range(len(NAMES))  # fmt: skip


_VDSO = ("[vdso]", "[vvar", "[vsyscall]")
# Files of memory that processes share: mmap(MAP_SHARED), memfd_create(2), POSIX and System V.
TMPFS = "/dev/shm/"
_SHMEM = ("/dev/zero", "/memfd:", TMPFS, "/SYSV", "//anon")


def kind_of(
    access: Access,
    mapped: int,
    mapping: Mapped | None,
    memory: str,
    *,
    user: bool,
    before: bool,
    forked: bool,
) -> Kind:
    """Return the kind of a fault that is not the second of a double.

    `mapped` is as in `Fault`. `before` tells whether the page had a fault in this address
    space, or before its fork; `forked` whether it was shared with a child or a parent.
    """
    if not user:
        return Kind.IN_KERNEL
    copied = memory == ANONYMOUS or (before and memory == PRIVATE_FILE)
    if forked and mapped and access.may_write and copied:
        return Kind.AFTER_FORK
    if memory == ANONYMOUS:
        return _of_anonymous(access, mapped, mapping, before)
    # What has no mapping is taken for anonymous memory.
    path = mapping.path if mapping else ""
    if path.startswith(_VDSO):
        return Kind.VDSO
    if memory == SHARED:
        return Kind.SHARED_MEMORY if path.startswith(_SHMEM) else Kind.FILE
    # Of a page that nobody has, an unclear access is more often a read of code or tables.
    return Kind.PRIVATE if access.may_write and (mapped or not access.may_read) else Kind.FILE


def _of_anonymous(access: Access, mapped: int, mapping: Mapped | None, before: bool) -> Kind:
    if mapped:
        # Swapped, hinted by NUMA, protected: perf does not say which.
        return Kind.UNKNOWN
    if before:
        return Kind.AGAIN
    if mapping and mapping.path == STACK:
        return Kind.STACK
    if not access.may_write:
        return Kind.UNKNOWN if access is Access.FETCH else Kind.ZERO_PAGE
    if not access.may_read:
        return Kind.FIRST_WRITE
    return Kind.ZERO_PAGE if access is Access.ATOMIC else Kind.UNKNOWN
