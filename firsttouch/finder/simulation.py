# SPDX-License-Identifier: GPL-2.0
"""Replays first touches as another kernel, or another setting, would serve them.

Each world sees the recorded faults in their order, and counts those that would not be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from firsttouch.finder.worlds import World


class Limits(NamedTuple):
    """The first page of a mapping, and the first behind it; `heap`: brk(2) may move that."""

    first: int
    end: int
    heap: bool = False


@dataclass
class Simulation:
    """A process in all worlds, and what was given back in its own."""

    block: int
    worlds: tuple[World, ...]
    # By block: pages that have had a fault since they were last given back.
    _touched: dict[int, int] = field(default_factory=dict)

    def fork(self) -> Simulation:
        """Return that of a child."""
        return Simulation(
            self.block, tuple(world.fork() for world in self.worlds), self._touched.copy()
        )

    def fault(self, page: int, tid: int, limits: Limits, *, write: bool, missing: bool) -> None:
        """Take a fault in anonymous memory, on a page that is missing or the zero page."""
        block, number = divmod(page, self.block)
        touched = self._touched.get(block, 0)
        if missing and touched >> number & 1:
            # No record says what was given back with it: all of its block is taken for that.
            self._forget(block, -1)
            touched = 0
        self._touched[block] = touched | 1 << number
        inside = self._inside(block, limits)
        for world in self.worlds:
            if write:
                world.writes(block, 1 << number, tid, inside[world.whole_heap])
            else:
                world.read(block, 1 << number, inside[world.whole_heap])

    def writes(self, block: int, pages: int, tid: int, limits: Limits) -> None:
        """Take the faults of writes to missing pages of a block, upwards."""
        touched = self._touched.get(block, 0)
        gone = touched & pages
        # As in `fault`, at the lowest page that had been touched.
        below = pages & (gone & -gone) - 1
        inside = self._inside(block, limits)
        if below:
            for world in self.worlds:
                world.writes(block, below, tid, inside[world.whole_heap])
        if gone:
            pages ^= below
            self._forget(block, -1)
            touched = 0
            for world in self.worlds:
                world.writes(block, pages, tid, inside[world.whole_heap])
        self._touched[block] = touched | pages

    def map(self, limits: Limits) -> None:
        """Forget what was in the limits: a new mapping is there, or what a heap has grown by."""
        for block, pages in blocks_of(limits, self.block, self._touched):
            self._forget(block, pages, heap=limits.heap)

    def _inside(self, block: int, limits: Limits) -> tuple[int, int]:
        """Return the pages of a block that are in a mapping, and those in a heap that is whole."""
        start = block * self.block
        low, high = max(limits.first - start, 0), min(limits.end - start, self.block)
        if low >= high:
            return 0, 0
        inside = (1 << high) - (1 << low)
        # glibc's first 2 MiB begin where the heap does. Behind them the heap ends on a block's end.
        whole = limits.heap and start >= limits.first + self.block
        return inside, (1 << self.block) - 1 if whole else 0

    def _forget(self, block: int, pages: int, *, heap: bool = False) -> None:
        if block in self._touched:
            self._touched[block] &= ~pages
        for world in self.worlds:
            # A heap that is whole had these pages before.
            if not heap or not world.whole_heap:
                world.forget(block, pages)

    def forbid_huge(self) -> None:
        """End what only large folios bring, in all worlds."""
        self.close()
        self.worlds = ()

    def close(self) -> None:
        """End the process."""
        for world in self.worlds:
            world.close()


def blocks_of(
    limits: Limits, size: int, touched: Collection[int] | None = None
) -> Iterator[tuple[int, int]]:
    """Yield the blocks of `size` pages between limits, and which of their pages are there.

    If `touched` is given, only the blocks in it, however far apart the limits are.
    """
    span = range(limits.first // size, (limits.end - 1) // size + 1)
    blocks: Iterable[int] = span
    if touched is not None:
        shorter, longer = (touched, span) if len(span) > len(touched) else (span, touched)
        blocks = [block for block in shorter if block in longer]
    for block in blocks:
        low = max(limits.first - block * size, 0)
        high = min(limits.end - block * size, size)
        yield block, (1 << high) - (1 << low)
