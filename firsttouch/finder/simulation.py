# SPDX-License-Identifier: GPL-2.0
"""Replays first touches as another kernel, or another setting, would serve them.

A world is what a process would have with one remedy: it sees the recorded faults in
their order, and counts those that would not be. All is by block of 2 MiB, bit n for
the block's page n, so a process takes a few numbers for each block that it touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What a remedy does to all processes: `saved` faults; `most` pages too many at a time."""

    saved: int = 0
    spare: int = 0
    most: int = 0

    def bring(self, pages: int) -> None:
        """Count pages that nobody asked for; fewer than none if somebody does, or they go."""
        self.spare += pages
        self.most = max(self.most, self.spare)


class World:
    """The anonymous memory of a process with a remedy; without one, each page takes a fault."""

    def __init__(self, outcome: Outcome, block: int) -> None:
        self._outcome = outcome
        self._block = block
        # By block: pages of their own, the zero page, and those that nobody has written yet.
        self._present: dict[int, int] = {}
        self._zero: dict[int, int] = {}
        self._idle: dict[int, int] = {}

    def fork(self) -> World:
        """Return that of a child. What nobody has written is the parent's."""
        child = type(self)(self._outcome, self._block)
        child._present, child._zero = self._present.copy(), self._zero.copy()
        return child

    def fault(self, page: int, tid: int, limits: tuple[int, int], *, write: bool) -> None:
        """Serve a recorded fault of a thread in a mapping from one page to before another."""
        block, number = divmod(page, self._block)
        bit = 1 << number
        if self._present.get(block, 0) & bit:
            self._outcome.saved += 1
            idle = self._idle.get(block, 0)
            if write and idle & bit:
                self._idle[block] = idle ^ bit
                self._outcome.bring(-1)
        elif write:
            pages = self._written(page, tid, limits)
            self._present[block] = self._present.get(block, 0) | pages
            self._zero[block] = self._zero.get(block, 0) & ~pages
            if pages != bit:
                self._idle[block] = self._idle.get(block, 0) | pages ^ bit
                self._outcome.bring(pages.bit_count() - 1)
        elif self._zero.get(block, 0) & bit:
            self._outcome.saved += 1
        else:
            self._zero[block] = self._zero.get(block, 0) | self._read(page, limits)

    def forget(self, block: int, pages: int) -> None:
        """Take pages of a block away: they were given back."""
        for kept in (self._present, self._zero):
            if block in kept:
                kept[block] &= ~pages
        if idle := self._idle.get(block, 0) & pages:
            self._idle[block] ^= idle
            self._outcome.bring(-idle.bit_count())

    def close(self) -> None:
        """Count nothing more as too many: the process ends."""
        self._outcome.bring(-sum(pages.bit_count() for pages in self._idle.values()))
        self._idle.clear()

    def _written(self, page: int, tid: int, limits: tuple[int, int]) -> int:
        """Return what a write to a page that is missing, or the zero page, brings."""
        del tid, limits
        return 1 << page % self._block

    def _read(self, page: int, limits: tuple[int, int]) -> int:
        """Return where a read of a missing page maps the zero page."""
        del limits
        return 1 << page % self._block

    def _empty(self, page: int, order: int, limits: tuple[int, int], zeros: bool) -> int:
        """Return the aligned pages around `page` if a folio fits there, else 0."""
        size = 1 << order
        first = page & -size
        if first < limits[0] or first + size > limits[1]:
            return 0
        block, number = divmod(first, self._block)
        pages = ((1 << size) - 1) << number
        there = self._present.get(block, 0)
        if not zeros:
            there |= self._zero.get(block, 0)
        return 0 if there & pages else pages


class Large(World):
    """Transparent huge pages of one size, ``always``: mm/memory.c's alloc_anon_folio().

    The smaller ones come by a write, and only if nothing is mapped where the folio would
    be. That of a whole page table comes there, too, and after a read as the huge zero page.
    """

    order = 0
    whole = False

    def _written(self, page: int, tid: int, limits: tuple[int, int]) -> int:
        del tid
        bit = 1 << page % self._block
        # The huge zero page is replaced as a whole.
        every = (1 << self._block) - 1
        zeros = self.whole and self._zero.get(page // self._block) == every
        return self._empty(page, self.order, limits, zeros) or bit

    def _read(self, page: int, limits: tuple[int, int]) -> int:
        bit = 1 << page % self._block
        return (self.whole and self._empty(page, self.order, limits, False)) or bit


def large(order: int, *, whole: bool = False) -> type[Large]:
    """Return the world of huge pages of an order, or of a `whole` page table."""
    return type(f"Large{order}", (Large,), {"order": order, "whole": whole})


_EARNED, _MOST_CREDIT, _LEAST_ORDER, _STREAMS = 4, 255, 2, 4


class Ahead(World):
    """Fault-ahead: linux/mm/fault_ahead.c, with folios of at most 16 pages."""

    largest = 4

    def __init__(self, outcome: Outcome, block: int) -> None:
        super().__init__(outcome, block)
        # By thread: where its streams ended, and what each may still get; the newest first.
        self._streams: dict[int, list[list[int]]] = {}

    def _written(self, page: int, tid: int, limits: tuple[int, int]) -> int:
        bit = 1 << page % self._block
        streams = self._streams.setdefault(tid, [])
        stream = next((stream for stream in streams if -1 <= page - stream[0] <= 1), None)
        if stream is None:
            streams.insert(0, [page, 0])
            del streams[_STREAMS:]
            return bit
        end, credit = stream
        if page == end:
            return bit
        upwards = page > end
        edge = page if upwards else page + 1
        aligned = (edge & -edge).bit_length() - 1
        order = min(aligned, (credit + _EARNED + 1).bit_length() - 1, self.largest)
        zeros = bool(self._zero.get(page // self._block, 0) & bit)
        pages = 0
        while order >= _LEAST_ORDER and not pages:
            pages = self._empty(page, order, limits, zeros)
            order -= not pages
        others = pages.bit_count() - 1 if pages else 0
        stream[0] = page + others if upwards else page - others
        stream[1] = min(credit + _EARNED, _MOST_CREDIT) - others
        return pages or bit


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

    def fault(
        self, page: int, tid: int, limits: tuple[int, int], *, write: bool, missing: bool
    ) -> None:
        """Take a fault in anonymous memory, on a page that is missing or the zero page."""
        block, number = divmod(page, self.block)
        touched = self._touched.get(block, 0)
        if missing and touched >> number & 1:
            # No record says what was given back with it: all of its block is taken for that.
            self._forget(block, -1)
            touched = 0
        self._touched[block] = touched | 1 << number
        for world in self.worlds:
            world.fault(page, tid, limits, write=write)

    def map(self, first: int, end: int) -> None:
        """Forget the pages from `first` to before `end`: a new mapping is there."""
        for block, pages in _blocks(self._touched, first, end, self.block):
            self._forget(block, pages)

    def _forget(self, block: int, pages: int) -> None:
        if block in self._touched:
            self._touched[block] &= ~pages
        for world in self.worlds:
            world.forget(block, pages)

    def close(self) -> None:
        """End the process."""
        for world in self.worlds:
            world.close()


def _blocks(blocks: dict[int, int], first: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the touched blocks in a range of pages, and which of their pages are in it."""
    span = range(first // size, (end - 1) // size + 1)
    for block in [b for b in blocks if b in span] if len(span) > len(blocks) else span:
        if block in blocks:
            low, high = max(first - block * size, 0), min(end - block * size, size)
            yield block, (1 << high) - (1 << low)
