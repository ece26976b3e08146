# SPDX-License-Identifier: GPL-2.0
"""Replays the faults of a process through each remedy, and counts what it would save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from firsttouch.trace.blocks import Limits, Ranges, blocks_of, move_pages, pages_in
from firsttouch.trace.events import Mapped
from firsttouch.trace.kept_blocks import KeptBlocks
from firsttouch.trace.spaces import HEAP as BRK
from firsttouch.trace.totals import BLOCK, Outcome

# The remedies by their names in trace.json. Of 64 KiB and 2 MiB: sizes of large folios.
FOLIOS = {"huge pages of 64 KiB": 64 << 10, "huge pages of 2 MiB": 2 << 20}
MTHP_64, THP = FOLIOS
HEAP, KEEP = "huge pages for the heap", "keep what is given back"
# Of glibc: the bytes at the beginning of a large block, in which it writes how large that is;
# and the largest size of a thread's heap (malloc/arena.c, HEAP_MAX_SIZE).
_HEADER = 16
_THREAD_HEAP = 64 << 20
# States of a block, besides 0 (empty) and the mask of the pages that were touched of its folio:
# it has single pages; the huge zero page; a folio of the process's parent.
_SMALL, _ZERO, _SHARED = -1, -2, -3


def table_bytes(page_size: int) -> int:
    """Return what a page table maps, and so its huge page: 2, 32 or 512 MiB."""
    return page_size * page_size // 8


class Folios:
    """A process whose anonymous memory gets folios of one size, by one state for each block.

    The first touch of an empty block that lies in one mapping brings a folio. If only part of
    it is given back, the rest has single pages. One of a whole page table (`zero`) also comes
    by a read, as the huge zero page, which a write replaces.
    """

    def __init__(self, outcome: Outcome, pages: int, whole: int, *, zero: bool) -> None:
        self._outcome = outcome
        # Of a folio, and of 2 MiB.
        self._pages, self._whole = pages, whole
        self._zero = zero
        self._all = (1 << pages) - 1
        self._states: dict[int, int] = {}
        # Faults, which the outcome gets when the process ends.
        self._saved = 0

    def fork(self) -> Folios:
        """Return that of a child."""
        child = Folios(self._outcome, self._pages, self._whole, zero=self._zero)
        child._states = {b: _SHARED if state > 0 else state for b, state in self._states.items()}
        return child

    def touch(self, page: int, inside: int, *, write: bool, missing: bool) -> None:
        """Take a fault on a page; `inside` are the mapped pages of its block of 2 MiB.

        If not `missing`, the zero page is there.
        """
        block, number = divmod(page, self._pages)
        bit = 1 << number
        state = self._states.get(block, 0)
        if missing and state > 0 and state & bit:
            # It was given back and no call was recorded: of a page table perhaps in part.
            self._drop(state)
            state = self._states[block] = _SMALL if self._zero else 0
        if state == 0 and missing:
            folio = self._all << block * self._pages % self._whole
            if folio & ~inside or not (write or self._zero):
                self._states[block] = _SMALL
                return
        if (state == 0 and missing) or (state == _ZERO and write):
            self._states[block] = bit if write else _ZERO
            self._outcome.bring(self._pages - 1 if write else 0)
        elif state > 0:
            self._saved += 1
            self._outcome.bring(-(bit & ~state).bit_count())
            self._states[block] = state | bit
        elif state == _ZERO or (state == _SHARED and missing):
            self._saved += 1

    def give_back(self, limits: Limits) -> None:
        """Take what a system call gave back."""
        for block, pages in blocks_of(limits, self._pages, self._states):
            self._drop(self._states.pop(block))
            if pages != self._all:
                self._states[block] = _SMALL

    def map(self, limits: Limits) -> None:
        """Take a new mapping: a block that is only in part in it stays what it is."""
        size = self._pages
        whole = Limits(-(-limits.first // size) * size, limits.end // size * size)
        if whole.first < whole.end:
            self.give_back(whole)

    def move(self, first: int, count: int, to: int) -> None:
        """Take what mremap(2) moves: where that is not aligned, each page for itself."""
        inside = list(blocks_of(Limits(first, first + count), self._pages, self._states))
        moved = {block: self._states.pop(block) for block, _ in inside}
        for block, state in moved.items():
            target, off = divmod(block * self._pages - first + to, self._pages)
            if off:
                self._drop(state)
            self._states[target] = _SMALL if off else state

    def _drop(self, state: int) -> None:
        """Take pages of a folio that nobody touched for gone."""
        if state > 0:
            self._outcome.bring(-(self._all & ~state).bit_count())

    def close(self, *, saved: bool = True) -> None:
        """End the process; if not `saved`, as one that never had folios."""
        for state in self._states.values():
            self._drop(state)
        self._states.clear()
        self._outcome.saved += self._saved if saved else 0
        self._saved = 0


class Replay:
    """A process: its faults in anonymous memory go through all remedies."""

    def __init__(self, outcomes: dict[str, Outcome], page_size: int) -> None:
        self._outcomes = outcomes
        self._page_size = page_size
        self._shift = page_size.bit_length() - 1
        self._block = BLOCK // page_size
        self._folios: dict[str, Folios] = {}
        # Faults in memory for which malloc(3) may ask for huge pages; the pages that are there.
        self._malloc_faults = self._malloc_there = self._malloc_most = 0
        for name, size in (*FOLIOS.items(), (HEAP, BLOCK)):
            zero = size == table_bytes(page_size)
            # Two pages are no large folio of anonymous memory; malloc asks for a page table's.
            if size >= 4 * page_size and (zero or name != HEAP):
                pages = size // page_size
                self._folios[name] = Folios(outcomes[name], pages, self._block, zero=zero)
        # By block, the pages that are there.
        self._there: dict[int, int] = {}
        # The pages of malloc(3) of the C library, and its large blocks, which it maps.
        self._allocated, self._large = Ranges(), Ranges()
        # Whether these pages are kept if they are given back, and others.
        self.keeps = True, True
        # What a setting keeps, and by block the pages of it; of malloc's, if that is not asked.
        self._kept, self._again = outcomes[KEEP], defaultdict[int, int](int)
        # Large blocks that malloc(3) unmapped, where that was recorded.
        self._blocks = KeptBlocks()
        self._unmaps = False
        # Whether the process has forbidden huge pages.
        self.no_huge = False

    @property
    def _malloc(self) -> Outcome:
        """What keeping malloc's blocks does; nobody counts it where that is another allocator."""
        return self._kept if self.keeps[0] else Outcome()

    def fork(self) -> Replay:
        """Return that of a child."""
        child = Replay(self._outcomes, self._page_size)
        child._folios = {name: folios.fork() for name, folios in self._folios.items()}
        child._there = self._there.copy()
        child._allocated, child._large = self._allocated.copy(), self._large.copy()
        child.keeps, child.no_huge = self.keeps, self.no_huge
        return child

    def forbid_huge(self) -> None:
        """Serve no fault by large folios, nor any since the process began."""
        self.no_huge = True
        for folios in self._folios.values():
            folios.close(saved=False)
        self._folios = {}

    def touch(
        self,
        page: int,
        mapping: Mapped | None,
        *,
        write: bool,
        missing: bool = True,
        again: bool = False,
    ) -> None:
        """Take a fault in anonymous memory; `again` if its page was there and was given back.

        If not `missing`, the zero page is there.
        """
        limits = Limits(page, page + 1)
        if mapping:
            first, end = mapping.start >> self._shift, mapping.end >> self._shift
            limits = Limits(first, end, mapping.path == BRK)
        block, number = divmod(page, self._block)
        bit, first = 1 << number, page - number
        low, high = max(limits.first - first, 0), min(limits.end - first, self._block)
        inside = (1 << high) - (1 << low) if low < high else 0
        for name, folios in self._folios.items():
            if name == HEAP:
                large = limits.heap or page in self._large
                self._malloc_faults += large
                self._malloc_there += large
                self._malloc_most = max(self._malloc_most, self._malloc_there)
                inside = self._heap_inside(block, inside, limits)
            folios.touch(page, inside, write=write, missing=missing)
        self._there[block] = self._there.get(block, 0) | bit
        if again:
            self._keep(block, bit)

    def _heap_inside(self, block: int, inside: int, limits: Limits) -> int:
        """Return where malloc(3) has huge pages in a block, if it asks for them.

        Its heap then ends on a block's end, and its first 2 MiB begin where the heap does.
        """
        if not limits.heap:
            return inside & self._large.of_block(block, self._block)
        return (1 << self._block) - 1 if block * self._block >= limits.first + self._block else 0

    def _keep(self, block: int, again: int) -> None:
        if self._unmaps:
            again &= ~self._large.of_block(block, self._block)
        allocated = again & self._allocated.of_block(block, self._block)
        by_malloc, others = self.keeps
        pages = (allocated if by_malloc else 0) | (again ^ allocated if others else 0)
        self._kept.saved += pages.bit_count()
        new = pages & ~self._again[block]
        self._again[block] |= new
        self._kept.bring(new.bit_count())

    def map(self, start: int, end: int, *, heap: bool) -> None:
        """Take a new mapping between two addresses, or what a heap has grown by."""
        limits = Limits(start >> self._shift, end >> self._shift, heap)
        self._forget(limits)
        for name, folios in self._folios.items():
            if not (heap and name == HEAP):
                folios.map(limits)
        if heap:
            self._allocated.mark(limits, marked=True)
            self._blocks.take(limits, self._malloc)

    def give_back(self, start: int, end: int, call: str) -> None:
        """Take what a system call gives back between two addresses."""
        limits = Limits(start >> self._shift, end >> self._shift, call == "brk")
        if limits.heap or limits.first in self._large:
            self._malloc_there -= self._count(self._there, limits)
        if call != "madvise" and limits.first in self._large:
            # A block of malloc(3), or the end of one that shrinks.
            self._unmaps = True
            outcome = self._malloc
            self._blocks.give_back(limits, self._count(self._there, limits), outcome)
            for pages_of in (self._large, self._allocated):
                pages_of.mark(limits, marked=False)
        self._forget(limits)
        for name, folios in self._folios.items():
            # A heap of huge pages gives whole ones back.
            if not (limits.heap and name == HEAP):
                folios.give_back(limits)

    def _forget(self, limits: Limits) -> None:
        for block, pages in blocks_of(limits, self._block, self._there):
            self._there[block] &= ~pages

    def move(self, start: int, size: int, to: int, new_size: int) -> None:
        """Take `size` bytes of pages that mremap(2) moves, or that grow where they are."""
        first, count, target, end = (
            value >> self._shift for value in (start, size, to, to + new_size)
        )
        block, grown = Limits(first, first + count), Limits(target, end)
        grows = new_size > size and first in self._large
        if grows:
            touched = self._count(self._there, block)
            self._blocks.grow(block, grown, touched, self._malloc)
        if first != target:
            self._forget(grown)
            move_pages(self._there, first, count, target, self._block)
            for folios in self._folios.values():
                folios.give_back(grown)
                folios.move(first, count, target)
            for pages_of in (self._allocated, self._large):
                pages_of.move(first, count, target)
        if grows:
            for pages_of in (self._allocated, self._large):
                pages_of.mark(Limits(target + count, end), marked=True)

    def begin(self, address: int, new: Mapped, *, allocator: bool) -> None:
        """Take a new mapping that the `allocator`, or other code, touches first at an address.

        What was mapped begins there; below is what the kernel has merged with it. glibc writes
        at the beginning of a large block. A thread's heap begins at a multiple of its largest
        size, and glibc writes behind what has been used. Other memory that glibc's code touches
        first is that of whoever calls memset(3) and the like.
        """
        of_thread = allocator and new.start % _THREAD_HEAP == 0
        first = (new.start if of_thread else address) >> self._shift
        header = address % self._page_size < _HEADER
        limits = Limits(first, new.end >> self._shift)
        self._allocated.mark(limits, marked=allocator and (of_thread or header))
        # glibc asks for huge pages for large blocks, and never for a thread's heap.
        large = allocator and header and not of_thread
        self._large.mark(limits, marked=large)
        if large:
            self._blocks.take(limits, self._malloc)

    def close(self, touched: Mapping[int, int]) -> None:
        """End the process, of which these pages had faults, by block."""
        before = self._outcomes[HEAP].saved
        for folios in self._folios.values():
            folios.close()
        if HEAP in self._folios:
            self._close_heap(before)
        self._kept.bring(-sum(pages.bit_count() for pages in self._again.values()))
        self._again.clear()
        self._blocks.close(
            lambda first, end: self._count(touched, Limits(first, end)), self._malloc
        )

    def _close_heap(self, before: int) -> None:
        """Count what huge pages save at most: where malloc(3) maps nothing, for there is room.

        Its first 2 MiB have small pages. If that is enough for all, it is certain.
        """
        heap = self._outcomes[HEAP]
        small = min(self._malloc_most, self._block)
        left = small + (self._malloc_most - small) // self._block
        more = max(self._malloc_faults - left - (heap.saved - before), 0)
        if self._malloc_most < self._block:
            heap.saved += more
        else:
            heap.chance += more
        self._malloc_faults = self._malloc_there = self._malloc_most = 0

    def _count(self, pages: Mapping[int, int], limits: Limits) -> int:
        return pages_in(pages, limits.first, limits.end, self._block)


def new_outcomes() -> dict[str, Outcome]:
    """Return an outcome for each remedy."""
    return {name: Outcome() for name in (*FOLIOS, HEAP, KEEP)}
