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


class _Touch(NamedTuple):
    """A fault in a block, on the page of a bit; `gone` if that was there, and was given back."""

    bit: int
    tid: int
    limits: Limits
    write: bool
    gone: bool


@dataclass
class _Waiting:
    """Faults in a block of which pages were given back: whether all were is not known yet.

    `before` are the pages that it had, `again` those of them that have had another fault.
    """

    before: int
    again: int = 0
    touches: list[_Touch] = field(default_factory=list)


@dataclass
class Simulation:
    """A process in all worlds, and what was given back in its own.

    No record tells what madvise(2) gives back. A page that faults again is gone. If all
    pages of its block fault again before any does so twice, all of them were given back at
    once, and a large folio may come there. Until that is known, the block's faults wait.
    """

    block: int
    worlds: tuple[World, ...]
    # By block: pages that have had a fault since they were last given back.
    _touched: dict[int, int] = field(default_factory=dict)
    _waiting: dict[int, _Waiting] = field(default_factory=dict)

    def fork(self) -> Simulation:
        """Return that of a child."""
        self._settle_all()
        return Simulation(
            self.block, tuple(world.fork() for world in self.worlds), self._touched.copy()
        )

    def fault(self, page: int, tid: int, limits: Limits, *, write: bool, missing: bool) -> None:
        """Take a fault in anonymous memory, on a page that is missing or the zero page."""
        block, number = divmod(page, self.block)
        self._touch(block, 1 << number, tid, limits, write=write, missing=missing)

    def writes(self, block: int, pages: int, tid: int, limits: Limits) -> None:
        """Take the faults of writes to missing pages of a block, upwards."""
        touched = self._touched.get(block, 0)
        if not touched & pages and block not in self._waiting:
            self._touched[block] = touched | pages
            self._write(block, pages, tid, limits)
            return
        while pages:
            bit = pages & -pages
            self._touch(block, bit, tid, limits, write=True, missing=True)
            pages ^= bit

    def _touch(
        self, block: int, bit: int, tid: int, limits: Limits, *, write: bool, missing: bool
    ) -> None:
        touched = self._touched.get(block, 0)
        touch = _Touch(bit, tid, limits, write, missing and touched & bit != 0)
        waiting = self._waiting.get(block)
        if waiting and touch.gone and bit & (waiting.again | ~waiting.before):
            # It was given back twice, and other pages not once.
            self._settle(block)
            waiting = None
        if touch.gone and not waiting:
            waiting = self._waiting[block] = _Waiting(touched)
        self._touched[block] = touched | bit
        if not waiting:
            self._play(block, touch)
            return
        waiting.touches.append(touch)
        if touch.gone:
            waiting.again |= bit
            if waiting.again == waiting.before:
                self._settle(block)

    def _settle(self, block: int) -> None:
        """Play the faults that waited."""
        waiting = self._waiting.pop(block)
        whole = waiting.again == waiting.before
        for world in self.worlds:
            world.forget(block, -1 if whole else 0)
        for touch in waiting.touches:
            if touch.gone and not whole:
                for world in self.worlds:
                    world.forget(block, touch.bit)
            self._play(block, touch)

    def _settle_all(self) -> None:
        for block in list(self._waiting):
            self._settle(block)

    def _play(self, block: int, touch: _Touch) -> None:
        if touch.write:
            self._write(block, touch.bit, touch.tid, touch.limits)
            return
        inside = self._inside(block, touch.limits)
        for world in self.worlds:
            world.read(block, touch.bit, inside[world.whole_heap])

    def _write(self, block: int, pages: int, tid: int, limits: Limits) -> None:
        inside = self._inside(block, limits)
        for world in self.worlds:
            world.writes(block, pages, tid, inside[world.whole_heap])

    def map(self, limits: Limits) -> None:
        """Forget what was in the limits: a new mapping is there, or what a heap has grown by."""
        for block, pages in blocks_of(limits, self.block, self._touched):
            if block in self._waiting:
                self._settle(block)
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
        """Leave all worlds, as if the process had never had large folios.

        A program forbids them when it begins. That is seen some milliseconds later.
        """
        for world in self.worlds:
            world.withdraw()
        self.worlds = ()

    def close(self) -> None:
        """End the process."""
        self._settle_all()
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
