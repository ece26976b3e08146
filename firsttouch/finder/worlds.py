# SPDX-License-Identifier: GPL-2.0
"""What a process would have with a remedy: its pages, where the kernel serves faults otherwise.

All is by block of 2 MiB, bit n for the block's page n, so a process takes a few numbers for
each block that it touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from firsttouch.finder.blocks import Limits, blocks_of, move_pages
from firsttouch.finder.kernel_rules import NEWEST


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


# Kinds of worlds, by where they may bring large folios: folios and huge pages in any memory,
# huge pages in malloc's alone, which then moves the end of its heap by whole blocks.
FOLIOS, HUGE, HUGE_HEAP = range(3)


class World:
    """The anonymous memory of a process with a remedy; without one, each page takes a fault."""

    kind = FOLIOS
    # The blocks of its largest folio.
    blocks = 1
    rules = NEWEST

    def __init__(self, outcome: Outcome, block: int) -> None:
        self._outcome = outcome
        self._block = block
        # Faults, which the outcome gets when the process ends.
        self._saved = 0
        # By block: pages of their own, the zero page, and those that nobody has written yet.
        self._present: dict[int, int] = {}
        self._zero: dict[int, int] = {}
        self._idle: dict[int, int] = {}

    def fork(self) -> World:
        """Return that of a child. What nobody has written is the parent's."""
        child = type(self)(self._outcome, self._block)
        child.rules = self.rules
        child._present, child._zero = self._present.copy(), self._zero.copy()
        return child

    def read(self, block: int, page: int, inside: int) -> None:
        """Serve the recorded fault of a read, with the masks of its page and its mapping."""
        if (self._present.get(block, 0) | self._zero.get(block, 0)) & page:
            self._saved += 1
        else:
            self._zero[block] = self._zero.get(block, 0) | self._read(block, page, inside)

    def writes(self, block: int, pages: int, tid: int, inside: int) -> None:
        """Serve the recorded faults of a thread's writes to pages of a block, upwards."""
        outcome = self._outcome
        present = self._present.get(block, 0)
        while pages:
            absent = pages & ~present
            # The lowest; 0 if all are there.
            bit = absent & -absent
            if there := pages & bit - 1:
                self._saved += there.bit_count()
                if used := there & self._idle.get(block, 0):
                    self._idle[block] ^= used
                    outcome.bring(-used.bit_count())
            if not bit:
                return
            brought = self._written(block, bit, tid, inside)
            present |= brought
            self._present[block] = present
            if zero := self._zero.get(block, 0):
                self._zero[block] = zero & ~brought
            if brought != bit:
                self._idle[block] = self._idle.get(block, 0) | brought ^ bit
                outcome.bring(brought.bit_count() - 1)
            pages &= -bit << 1

    def serve(self, block: int, pages: int) -> None:
        """Take pages of a block that came with others before."""
        self._present[block] = self._present.get(block, 0) | pages

    def copy(self, pages: int) -> None:
        """Take faults that were not recorded: of pages to which others are copied."""
        self._saved -= pages

    def forget(self, block: int, pages: int, *, mapped: bool = False) -> None:
        """Take pages of a block away: they were given back, and may stay `mapped`."""
        del mapped
        for pages_of in (self._present, self._zero):
            if block in pages_of:
                pages_of[block] &= ~pages
        if idle := self._idle.get(block, 0) & pages:
            self._idle[block] ^= idle
            self._outcome.bring(-idle.bit_count())

    def move(self, first: int, count: int, to: int) -> None:
        """Move pages, each as it is: mremap(2) moves entries of page tables."""
        for pages_of in filter(None, (self._present, self._zero, self._idle)):
            move_pages(pages_of, first, count, to, self._block)

    def came_back(self, block: int, pages: int, inside: int) -> None:
        """Take all pages of a block for given back at once, before each took a fault again."""

    def close(self) -> None:
        """Count what was saved, and nothing more as too many: the process ends."""
        self._outcome.saved += self._saved
        self._saved = 0
        self._outcome.bring(-sum(pages.bit_count() for pages in self._idle.values()))
        self._idle.clear()

    def withdraw(self) -> None:
        """End the process as one that never had the remedy."""
        self._saved = 0
        self.close()

    def _written(self, block: int, page: int, tid: int, inside: int) -> int:
        """Return what a write to a page that is missing, or the zero page, brings."""
        del block, tid, inside
        return page

    def _read(self, block: int, page: int, inside: int) -> int:
        """Return where a read of a missing page maps the zero page."""
        del block, inside
        return page

    def _empty(self, block: int, page: int, order: int, inside: int) -> int:
        """Return the aligned pages around a page if a folio fits there, else 0."""
        size = 1 << order
        pages = (1 << size) - 1 << (page.bit_length() - 1 & -size)
        there = self._present.get(block, 0) | self._zero.get(block, 0)
        return 0 if there & pages or pages & ~inside else pages


class Large(World):
    """Transparent huge pages of one size, ``always``: mm/memory.c's alloc_anon_folio().

    The smaller ones come by a write, and only if nothing is mapped where the folio would
    be. That of a whole page table comes there, too, and after a read as the huge zero page.
    """

    order = 0
    whole = False

    def __init__(self, outcome: Outcome, block: int) -> None:
        super().__init__(outcome, block)
        self._size = 1 << self.order
        self._folio = (1 << self._size) - 1
        self._every = (1 << block) - 1
        # Blocks whose huge page came whole, and has lost no page since.
        self._huge: set[int] = set()
        # Blocks whose page table was left when all of their pages were given back.
        self._tables: set[int] = set()

    def writes(self, block: int, pages: int, tid: int, inside: int) -> None:
        """As in any world, but a step for each folio, not for each page."""
        del tid
        outcome, idle = self._outcome, self._idle.get(block, 0)
        present = self._present.get(block, 0)
        left = pages & ~present
        saved, brought = pages.bit_count(), 0
        if left:
            has_table = block in self._tables
            zero = self._zero.get(block, 0)
            replaced = self.whole and not self.rules.splits_zero and zero == self._every
            there = present if replaced else present | zero
            while left:
                bit = left & -left
                folio = self._folio << (bit.bit_length() - 1 & -self._size)
                alone = left & folio
                left ^= alone
                if there & folio or folio & ~inside or has_table:
                    brought |= alone
                    saved -= alone.bit_count()
                    continue
                if used := idle & pages & bit - 1:
                    idle ^= used
                    outcome.bring(-used.bit_count())
                if folio == self._every:
                    self._huge.add(block)
                idle |= folio ^ bit
                outcome.bring(self._size - 1)
                brought |= folio
                saved -= 1
            self._present[block] = present | brought
            if zero:
                self._zero[block] = zero & ~brought
        self._saved += saved
        if used := idle & pages:
            idle ^= used
            outcome.bring(-used.bit_count())
        if used or brought:
            self._idle[block] = idle

    def forget(self, block: int, pages: int, *, mapped: bool = False) -> None:
        """As in any world."""
        if mapped and self.whole and not self._frees_table(block, pages):
            self._tables.add(block)
        else:
            self._tables.discard(block)
        super().forget(block, pages)
        self._huge.discard(block)

    def move(self, first: int, count: int, to: int) -> None:
        """As in any world. Entries of a whole page table become those of its pages."""
        super().move(first, count, to)
        for blocks in (self._huge, self._tables):
            for block, _ in blocks_of(Limits(first, first + count), self._block, blocks):
                blocks.discard(block)

    def came_back(self, block: int, pages: int, inside: int) -> None:
        """As in any world: the first of the faults brought a huge page, if there is room."""
        if not self.whole or self._every & ~inside or block in self._huge:
            return
        self._huge.add(block)
        self._saved += pages.bit_count() - 1
        idle = self._every & ~self._present.get(block, 0)
        self._idle[block] = self._idle.get(block, 0) | idle
        self._outcome.bring(idle.bit_count())
        self._present[block] = self._every

    def _read(self, block: int, page: int, inside: int) -> int:
        if not self.whole or block in self._tables:
            return page
        return self._empty(block, page, self.order, inside) or page

    def _frees_table(self, block: int, pages: int) -> bool:
        """Tell whether no page table is left of a block where pages are given back."""
        huge = block in self._huge or self._zero.get(block) == self._every
        return pages == self._every and (huge or not self.rules.keeps_tables)


def large(order: int, *, whole: bool = False, whole_heap: bool = False) -> type[Large]:
    """Return the world of huge pages of an order, or of a `whole` page table."""
    kind = HUGE_HEAP if whole_heap else HUGE if whole else FOLIOS
    return type(f"Large{order}", (Large,), {"order": order, "whole": whole, "kind": kind})


_LEAST_ORDER = 2


class Ahead(World):
    """Fault-ahead: linux/mm/fault_ahead.h, sizes of 4 to 16 pages ``inorder``."""

    streams, largest = 3, 4

    def __init__(self, outcome: Outcome, block: int) -> None:
        super().__init__(outcome, block)
        # By thread: the last page of a stream, and how many it has had; the newest first.
        self._streams: dict[int, list[tuple[int, int]]] = {}

    def _written(self, block: int, page: int, tid: int, inside: int) -> int:
        number = block * self._block + page.bit_length() - 1
        streams = self._streams.setdefault(tid, [])
        position = next((i for i, (end, _) in enumerate(streams) if -1 <= number - end <= 1), None)
        if position is None:
            streams.insert(0, (number, 1))
            del streams[self.streams :]
            return page
        end, length = streams.pop(position)
        pages = page
        if number != end:
            length += 1
            pages = self._folio(block, page, length, inside)
        count = pages.bit_count()
        first = block * self._block + (pages & -pages).bit_length() - 1
        above = 2 * (number - first) < count
        streams.insert(0, (first + count - 1 if above else first, length + count - 1))
        return pages

    def _folio(self, block: int, page: int, length: int, inside: int) -> int:
        """Return the pages that the last page of a stream of `length` pages gets."""
        # Of the zero pages only that of the fault is replaced.
        zero = self._zero.get(block, 0)
        self._zero[block] = zero & ~page
        order = min(length.bit_length() - 1, self.largest)
        pages = 0
        while order >= _LEAST_ORDER and not pages:
            pages = self._empty(block, page, order, inside)
            order -= 1
        self._zero[block] = zero
        return pages or page
