# SPDX-License-Identifier: GPL-2.0
"""Replays first touches as another kernel, or another setting, would serve them.

Each world sees the recorded faults in their order, and counts those that would not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from firsttouch.finder.blocks import Limits, blocks_of, move_pages, pages_in
from firsttouch.finder.ranges import Ranges
from firsttouch.finder.worlds import HUGE_HEAP, World

# Pages of a folio: 64 KiB on a kernel with pages of 4 KiB.
_FOLIO = 16


@dataclass
class _Return:
    """Pages of a block that fault again: `again` of those that it had, `before`.

    `gone` are those that all worlds take for given back since. `limits` are those of the
    first of these faults.
    """

    before: int
    limits: Limits
    again: int = 0
    gone: int = 0


@dataclass
class Simulation:
    """A process in all worlds, and what was given back in its own.

    A recording may not have the calls that give back. Where a page faults again, it is taken
    for gone with those around it that a folio of 64 KiB would have. If all pages of its block
    fault again before any does so twice, the whole block was given back at once.
    How far brk(2) shrinks a heap is taken for as far as the last time.
    """

    block: int
    worlds: tuple[World, ...]
    # Pages outside the heap for which malloc(3) asks for huge pages as for the heap.
    asked: Ranges = field(default_factory=Ranges)
    # Pages that get no large folio, whatever is set.
    single: Ranges = field(default_factory=Ranges)
    # Of the heap the first page and the end, and by first page the sizes of large blocks that
    # a heap with whole huge pages has room for. Of some all pages are there with such a page.
    _heap: tuple[int, int] = 0, 0
    _roomy: dict[int, int] = field(default_factory=dict)
    _served: set[int] = field(default_factory=set)
    # Pages that such blocks left free in that heap when they moved.
    _lost: int = 0
    # By block: pages of such blocks that were given back.
    _left: dict[int, int] = field(default_factory=dict)
    # By block: pages that have had a fault since they were last given back.
    _touched: dict[int, int] = field(default_factory=dict)
    _returns: dict[int, _Return] = field(default_factory=dict)
    # Of the heap: the lowest page that faulted again since brk(2) last let it grow, and before.
    _lowest: int | None = None
    _kept_below: int = 0

    def __post_init__(self) -> None:
        # Blocks of a page table.
        self._table = max((world.blocks for world in self.worlds), default=1)

    def fork(self) -> Simulation:
        """Return that of a child."""
        worlds = tuple(world.fork() for world in self.worlds)
        return Simulation(
            self.block, worlds, self.asked.copy(), self.single.copy(), self._heap,
            self._roomy.copy(), self._served.copy(), self._lost, self._left.copy(),
            self._touched.copy(), _lowest=self._lowest, _kept_below=self._kept_below,
        )  # fmt: skip

    def fault(self, page: int, tid: int, limits: Limits, *, write: bool, missing: bool) -> None:
        """Take a fault in anonymous memory, on a page that is missing or the zero page."""
        block, number = divmod(page, self.block)
        bit = 1 << number
        if write:
            self._alike(block, bit, tid, limits, missing=missing)
            return
        back = self._return(block, bit, limits) if missing else None
        self._touched[block] = self._touched.get(block, 0) | bit
        inside = self._inside(block, limits)
        for world in self.worlds:
            world.read(block, bit, inside[world.kind])
        self._end_return(block, back)

    def writes(self, block: int, pages: int, tid: int, limits: Limits) -> None:
        """Take the faults of writes to missing pages of a block, upwards."""
        touched = self._touched.get(block, 0)
        while pages:
            alike = pages
            if touched & pages:
                bit = pages & -pages
                alike &= _around(bit)
                back = self._returns.get(block)
                twice = back.again | ~back.before if back else 0
                # Up to the first that was not there, or twice, as the lowest was.
                for some in (touched, twice):
                    others = alike & (~some if bit & some else some)
                    alike &= (others & -others) - 1
            self._alike(block, alike, tid, limits, missing=True)
            touched |= alike
            pages ^= alike

    def _alike(self, block: int, pages: int, tid: int, limits: Limits, *, missing: bool) -> None:
        """Take writes to pages of which all were there before and are missing, or none."""
        back = self._return(block, pages, limits) if missing else None
        self._touched[block] = self._touched.get(block, 0) | pages
        inside = self._inside(block, limits)
        for world in self.worlds:
            world.writes(block, pages, tid, inside[world.kind])
        self._end_return(block, back)

    def _return(self, block: int, pages: int, limits: Limits) -> _Return | None:
        """Take pages of a folio that fault again for given back, with what goes with them."""
        touched = self._touched.get(block, 0)
        if not touched & pages:
            return None
        back = self._returns.get(block)
        if not back or pages & (back.again | ~back.before):
            back = self._returns[block] = _Return(touched, limits)
        back.again |= pages
        around = _around(pages & -pages)
        if limits.heap:
            page = block * self.block + (pages & -pages).bit_length() - 1
            self._lowest = page if self._lowest is None else min(page, self._lowest)
            if (below := self._kept_below - block * self.block) > 0 and page >= self._kept_below:
                around &= -1 << below
        if not around & back.gone:
            back.gone |= around
            for world in self.worlds:
                world.forget(block, around)
        return back

    def _end_return(self, block: int, back: _Return | None) -> None:
        if back and back.again == back.before:
            del self._returns[block]
            inside = self._inside(block, back.limits)
            for world in self.worlds:
                world.came_back(block, back.again, inside[world.kind])

    def map(self, limits: Limits) -> None:
        """Forget what was in the limits: a new mapping is there, or what a heap has grown by."""
        if limits.heap:
            self._heap = self._heap[0] or limits.first, limits.end
        for block, pages in blocks_of(limits, self.block, self._touched):
            self._forget(block, pages, heap=limits.heap)

    def give_back(self, limits: Limits, *, mapped: bool = False) -> None:
        """Forget what a system call gave back, and perhaps left `mapped`."""
        if limits.heap:
            self._heap = self._heap[0], limits.first
        roomy = self._roomy.pop(limits.first, 0)
        self._served.discard(limits.first)
        for block, pages in blocks_of(limits, self.block, self._touched):
            # A heap of huge pages gives whole blocks back.
            whole = pages.bit_count() == self.block
            heap = bool(roomy) or (limits.heap and not whole)
            self._forget(block, pages, heap=heap, mapped=mapped)
            if roomy:
                self._left[block] = self._left.get(block, 0) | pages

    def begin(self, limits: Limits, *, malloc: bool) -> None:
        """Take a new mapping, a large block of malloc(3) or not, or one that has grown in place.

        Behind the end of a heap of huge pages there may be room for it. Otherwise it has none of
        the pages that blocks with room have left.
        """
        self._roomy.pop(limits.first, None)
        self._served.discard(limits.first)
        first, end = self._heap
        end += sum(self._roomy.values()) + self._lost
        # glibc's first 2 MiB begin where the heap does, what follows ends on a block's end.
        room = max(first + self.block - end, -end % self.block)
        if malloc and first and limits.end - limits.first <= room:
            self._roomy[limits.first] = limits.end - limits.first
            if end // self.block > -(-first // self.block):
                self._served.add(limits.first)
                for world in self._huge_heaps():
                    for block, pages in blocks_of(limits, self.block):
                        world.serve(block, pages)
            return
        for block, pages in blocks_of(limits, self.block, self._left):
            left = self._left[block] & pages
            self._left[block] ^= left
            for world in self._huge_heaps():
                world.forget(block, left)

    def _huge_heaps(self) -> Iterator[World]:
        return (world for world in self.worlds if world.kind == HUGE_HEAP)

    def touched(self, first: int, end: int) -> int:
        """Return how many pages from the first to before the end are there."""
        return pages_in(self._touched, first, end, self.block)

    def move(self, first: int, count: int, to: int) -> None:
        """Move pages, each as it is."""
        if size := self._roomy.pop(first, 0):
            # In a heap realloc(3) copies the block, and nothing as large fits where it was.
            self._lost += size
            if first in self._served:
                self._served.remove(first)
                copied = self.touched(first, first + count)
                for world in self._huge_heaps():
                    world.copy(copied)
        move_pages(self._touched, first, count, to, self.block)
        for block, _ in blocks_of(Limits(first, first + count), self.block, self._returns):
            del self._returns[block]
        for world in self.worlds:
            world.move(first, count, to)

    def regrow(self) -> None:
        """Let brk(2) move the end of the heap up."""
        if self._lowest is not None:
            self._kept_below, self._lowest = self._lowest, None

    def _inside(self, block: int, limits: Limits) -> tuple[int, int, int]:
        """Return the pages of a block in which worlds of each kind may bring large folios."""
        start = block * self.block
        low, high = max(limits.first - start, 0), min(limits.end - start, self.block)
        if low >= high:
            return 0, 0, 0
        inside = ((1 << high) - (1 << low)) & ~self.single.of_block(block, self.block)
        if limits.moved:
            # A huge page is promised only where nothing else can be.
            return inside, 0, 0
        huge = inside
        if self._table > 1:
            first = (block - block % self._table) * self.block
            if limits.first > first or limits.end < first + self._table * self.block:
                huge = 0
        if not limits.heap:
            return inside, huge, inside & self.asked.of_block(block, self.block)
        # glibc's first 2 MiB begin where the heap does. Behind them the heap ends on a block's end.
        whole = start >= limits.first + self.block
        return inside, huge, (1 << self.block) - 1 if whole else 0

    def _forget(self, block: int, pages: int, *, heap: bool = False, mapped: bool = False) -> None:
        if block in self._touched:
            self._touched[block] &= ~pages
        self._returns.pop(block, None)
        left = self._left.get(block, 0)
        for world in self.worlds:
            if world.kind != HUGE_HEAP:
                world.forget(block, pages, mapped=mapped)
            elif not heap:
                # A heap that is whole had the others before.
                world.forget(block, pages & ~left, mapped=mapped)

    def forbid_huge(self) -> None:
        """Leave all worlds, as if the process had never had large folios.

        A program forbids them when it begins. That is seen some milliseconds later.
        """
        for world in self.worlds:
            world.withdraw()
        self.worlds = ()

    def close(self) -> None:
        """End the process."""
        for world in self.worlds:
            world.close()


def _around(bit: int) -> int:
    """Return the pages of the folio that has the page of a bit."""
    return (1 << _FOLIO) - 1 << (bit.bit_length() - 1 & -_FOLIO)
