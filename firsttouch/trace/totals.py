# SPDX-License-Identifier: GPL-2.0
"""What the faults of a recording show: pairs of places, and counts of all faults by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from firsttouch.trace.kinds import NAMES
from firsttouch.trace.spaces import Place, Space

# A huge page on x86-64, and on arm64 with pages of 4 KiB: pages are counted by such blocks, as a
# number whose bit n is the block's page n.
BLOCK = 2 << 20


def pages_inside(block: int, first: int, end: int, size: int) -> int:
    """Return the pages from first to end that are in a block of `size` pages."""
    low, high = max(first - block * size, 0), min(end - block * size, size)
    return (1 << high) - (1 << low) if low < high else 0


def blocks_of(
    first: int, end: int, size: int, touched: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Yield those `touched` of the blocks of `size` pages, and their pages from first to end."""
    span = range(first // size, (end - 1) // size + 1)
    shorter, longer = (touched, span) if len(span) > len(touched) else (span, touched)
    for block in [block for block in shorter if block in longer]:
        yield block, pages_inside(block, first, end, size)


def move_pages(pages_of: dict[int, int], first: int, count: int, to: int, size: int) -> None:
    """Move the pages of `count` from the first on in a set with blocks of `size` pages."""
    moving = [
        (block, pages_of[block] & inside)
        for block, inside in blocks_of(first, first + count, size, pages_of)
    ]
    for block, pages in moving:
        pages_of[block] &= ~pages
    every = (1 << size) - 1
    for block, pages in moving:
        target, off = divmod(block * size - first + to, size)
        for number, there in ((target, pages << off & every), (target + 1, pages << off >> size)):
            if there:
                pages_of[number] = pages_of.get(number, 0) | there


@dataclass(eq=False)
class Stack:
    """A chain of places, the pc first, and its faults: by kind, and `again` by their giver."""

    places: tuple[Place, ...]
    kinds: list[int] = field(default_factory=lambda: [0] * len(NAMES))
    givers: Counter[Giver] = field(default_factory=Counter)


class Giver(NamedTuple):
    """Who gave back pages of a block last, if that was seen: a system call, and who makes it."""

    call: str
    places: tuple[Place, ...]


@dataclass
class Outcome:
    """What a remedy does to all processes: `saved` faults, and `most` pages at a time.

    These are `spare` pages, with the processes' `own` if that is given. Where an address decides
    by chance, up to `chance` faults more are saved.
    """

    saved: int = 0
    chance: int = 0
    spare: int = 0
    most: int = 0
    own: Outcome | None = None

    def bring(self, pages: int) -> None:
        """Count pages that nobody asked for; fewer than none if somebody does, or they go."""
        self.spare += pages
        self.most = max(self.most, self.spare + (self.own.spare if self.own else 0))

    @property
    def excess(self) -> int:
        """By how many pages the peak is higher."""
        return max(self.most - (self.own.most if self.own else 0), 0)


class Pair(NamedTuple):
    """What the doubles of one site have in common: both places and which memory."""

    kind: str
    memory: str
    read: Place
    write: Place


class Timeline:
    """Faults by kind and by parts of the time of 1 << `shift` ns, of which there are few."""

    PARTS = 1 << 13

    def __init__(self) -> None:
        self.shift = 10
        self.last = 0
        # By kind and part.
        self.counts: Counter[tuple[int, int]] = Counter()

    def add(self, time: int, kind: int) -> None:
        time = max(time, 0)
        self.last = max(self.last, time)
        while time >> self.shift >= self.PARTS:
            self.shift += 1
            before, self.counts = self.counts, Counter()
            for (of, part), count in before.items():
                self.counts[of, part >> 1] += count
        self.counts[kind, time >> self.shift] += 1


@dataclass
class Touched:
    """The pages of an address space that had faults: all, and those of each kind.

    Both by block of 2 MiB: bit n is the block's page n. `space` is what is mapped in the end.
    """

    space: Space
    faults: int = 0
    pages: dict[int, int] = field(default_factory=dict)
    kinds: list[dict[int, int]] = field(default_factory=lambda: [{} for _ in NAMES])


@dataclass
class Totals:
    """All that the faults of a recording show.

    `pairs` counts doubles. `members` and `faults` are of each "program", "thread" and "process", by
    number (0 for all of a name) and name. `outcomes` has what remedies would have saved, and
    `allocators` counts the faults in anonymous memory by the allocator of the process. `largest` is
    the address space with most faults. `detached` are the programs that the kernel lets nobody
    watch, `outlived` those that go on in the end. `contended` faults are near calls of other
    threads that hold mmap_lock for writing.
    """

    timeline: Timeline = field(default_factory=Timeline)
    pairs: Counter[Pair] = field(default_factory=Counter)
    stacks: dict[tuple[Place, ...], Stack] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    allocators: Counter[str] = field(default_factory=Counter)
    members: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    faults: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    largest: Touched = field(default_factory=lambda: Touched(Space()))
    detached: list[str] = field(default_factory=list)
    outlived: list[str] = field(default_factory=list)
    contended: int = 0

    def add(self, what: str, name: str, faults: int, pid: int = 0) -> None:
        self.members[what, pid, name] += 1
        self.faults[what, pid, name] += faults
