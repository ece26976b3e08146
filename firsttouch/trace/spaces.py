# SPDX-License-Identifier: GPL-2.0
"""The address space of a process: what is mapped where, and what a new mapping replaces."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import NamedTuple

from firsttouch.trace.events import WORKER_PC, Mapped

PROT_WRITE, PROT_EXEC, ANY = 2, 4, 7
_MAP_SHARED = 1
# A stack grows below its mapping, and no record says so.
STACK = "[stack]"
_STACK_ROOM = 64 << 20
HEAP = "[heap]"
_VDSO = "[vdso]"
# Names of memory without a file. Shared anonymous memory has a file of shmem.
_ANONYMOUS = ("//anon", HEAP, STACK, "[anon:", "[stack:")

# Kinds of memory.
ANONYMOUS, PRIVATE_FILE, SHARED = "anonymous", "private file", "shared"


class Place(NamedTuple):
    """A pc as its file's offset, or that in the kernel's ``[vdso]``.

    For code in neither, `path` is "" and `offset` the pc. `identity` is that of the
    file's mapping.
    """

    path: str
    offset: int
    pid: int
    identity: str = ""


# What exec does to the new program's memory, such as its stack, when the code that called it
# is no longer mapped.
EXEC = Place("execve(2)", 0, 0)
# A thread that the kernel made for the process, which executes none of the program.
WORKER = Place("io_uring worker", 0, 0)
# What is no file.
NAMED = EXEC, WORKER

_START = attrgetter("start")


class Space:
    """The mappings of one process, in the order of their addresses."""

    def __init__(self) -> None:
        self._mapped: list[Mapped] = []
        # Of the last answer.
        self._last: Mapped | None = None

    def __bool__(self) -> bool:
        return bool(self._mapped)

    def copy(self) -> Space:
        child = Space()
        child._mapped = self._mapped.copy()
        return child

    def at(self, address: int) -> Mapped | None:
        last = self._last
        if last and last.start <= address < last.end:
            return last
        index = bisect_right(self._mapped, address, key=_START)
        if index and address < self._mapped[index - 1].end:
            self._last = self._mapped[index - 1]
            return self._last
        above = self._mapped[index] if index < len(self._mapped) else None
        stack = above and above.path == STACK and above.start - address < _STACK_ROOM
        return above if stack else None

    def map(self, new: Mapped) -> list[tuple[int, int]]:
        """Take over a record; return the ranges of addresses whose pages are new.

        The kernel records a mapping when it is made, when one grows or merges with its
        neighbours (the record then has all of it), and when its protection changes.
        """
        return _fresh(self._replace(new.start, new.end, [new]), new)

    def unmap(self, start: int, end: int) -> None:
        self._replace(start, end, [])

    def move(self, start: int, size: int, to: int, new_size: int) -> None:
        old = self.at(start)
        self.unmap(start, start + size)
        if not old:
            return
        new = old._replace(start=to, end=to + new_size, offset=old.offset + start - old.start)
        if to == start:
            new = new._replace(start=old.start, offset=old.offset)
        self._replace(new.start, new.end, [new])

    def _replace(self, start: int, end: int, pieces: list[Mapped]) -> list[Mapped]:
        """Put `pieces` between two addresses; return the mappings that had a part there."""
        first = bisect_right(self._mapped, start, key=_START)
        if first and self._mapped[first - 1].end > start:
            first -= 1
        last = bisect_left(self._mapped, end, key=_START)
        old = self._mapped[first:last]
        if old and old[0].start < start:
            pieces = [old[0]._replace(end=start), *pieces]
        if old and old[-1].end > end:
            offset = old[-1].offset + end - old[-1].start
            pieces = [*pieces, old[-1]._replace(start=end, offset=offset)]
        self._last = None
        self._mapped[first:last] = pieces
        return old


def _fresh(old: list[Mapped], new: Mapped) -> list[tuple[int, int]]:
    """Return the ranges of `new` that are not pages of the `old` mappings in its way."""
    if not all(_same_memory(mapping, new) for mapping in old):
        return [(new.start, new.end)]
    ends = [new.start, *(edge for m in old for edge in (m.start, m.end)), new.end]
    fresh = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if a < b]
    if not fresh and new.path != HEAP and all(m.prot == new.prot for m in old):
        return [(new.start, new.end)]
    return fresh


def _same_memory(old: Mapped, new: Mapped) -> bool:
    """Tell whether two mappings may show the same pages where they overlap."""
    if old.path != new.path:
        # The heap begins as the anonymous end of .bss.
        return is_anonymous(old) and is_anonymous(new)
    return is_anonymous(new) or old.start - old.offset == new.start - new.offset


def memory_kind(mapping: Mapped | None) -> str:
    """Return a kind; anonymous, if mremap(2) may have moved it from where is not known."""
    if mapping and mapping.flags & _MAP_SHARED:
        return SHARED
    return ANONYMOUS if not mapping or mapping.path.startswith(_ANONYMOUS) else PRIVATE_FILE


def is_anonymous(mapping: Mapped | None) -> bool:
    return memory_kind(mapping) == ANONYMOUS


def place_of(space: Space, pid: int, pc: int) -> Place:
    if pc == WORKER_PC:
        return WORKER
    mapping = space.at(pc)
    if mapping and mapping.path == _VDSO:
        return Place(_VDSO, pc - mapping.start, 0)
    if mapping and mapping.path.startswith("/") and not mapping.path.startswith("//"):
        return Place(mapping.path, pc - mapping.start + mapping.offset, 0, mapping.identity)
    return Place("", pc, pid)
