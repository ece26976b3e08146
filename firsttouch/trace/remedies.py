# SPDX-License-Identifier: GPL-2.0
"""Replays the faults of a process through each remedy, and counts what it would save."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from firsttouch.trace.events import Mapped
from firsttouch.trace.spaces import HEAP as BRK
from firsttouch.trace.totals import BLOCK, Limits, Outcome, blocks_of, move_pages, pages_in

# The remedies by their names in trace.json. Of 64 KiB and 2 MiB: sizes of large folios.
FOLIOS = {"huge pages of 64 KiB": 64 << 10, "huge pages of 2 MiB": 2 << 20}
MTHP_64, THP = FOLIOS
HEAP, KEEP = "huge pages for the heap", "keep what is given back"
SHARED = "huge pages of shared memory"
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


@dataclass
class _Part:
    """Pages of malloc(3) from the first to before the end; `large`: a block that it maps.

    `there` of them take no fault if malloc keeps what is freed.
    """

    first: int
    end: int
    large: bool
    there: int = 0


class Malloc:
    """The memory of malloc(3) of the C library, by pages, and what it would keep.

    A new part takes pages that were freed before, however they lie: glibc takes the smallest
    block that is large enough, and joins free ones. `touched` counts the pages with faults
    between two.
    """

    def __init__(self, touched: Callable[[int, int], int]) -> None:
        self._touched = touched
        self._starts: list[int] = []
        self._parts: list[_Part] = []
        self._free = 0

    def fork(self, touched: Callable[[int, int], int]) -> Malloc:
        """Return that of a child."""
        child = Malloc(touched)
        child._starts = self._starts.copy()
        child._parts = [_Part(part.first, part.end, part.large) for part in self._parts]
        return child

    def at(self, page: int) -> _Part | None:
        """Return what has a page."""
        index = bisect_right(self._starts, page) - 1
        return self._parts[index] if index >= 0 and page < self._parts[index].end else None

    def take(self, first: int, end: int, outcome: Outcome, *, large: bool, new: int = -1) -> None:
        """Take new pages, or only `new` of them, for malloc's."""
        there = min(self._free, end - first if new < 0 else new)
        self._free -= there
        outcome.bring(-there)
        if not large:
            # A heap grows as it is used.
            outcome.saved += there
            there = 0
        low, high = bisect_left(self._starts, first), bisect_left(self._starts, end)
        # What is older was given back unseen.
        self._starts[low:high] = [first]
        self._parts[low:high] = [_Part(first, end, large, there)]

    def give_back(self, first: int, end: int, outcome: Outcome) -> None:
        """Keep what a block has had of the pages that are unmapped: all, or its end."""
        part = self.at(first)
        if part is None:
            return
        touched = self._touched(first, min(end, part.end))
        there = part.there if first == part.first else 0
        outcome.saved += min(there, touched)
        kept = max(there, touched)
        self._free += kept
        outcome.bring(kept)
        if first == part.first:
            self._remove(part)
        else:
            part.end = first

    def move(self, first: int, to: int, end: int, outcome: Outcome) -> None:
        """Let mremap(2) move a block from the first page on, or let it grow."""
        part = self.at(first)
        if part and part.first == first:
            self._remove(part)
            more = max(end - to - (part.end - first), 0)
            self.take(to, end, outcome, large=part.large, new=more)
            moved = self.at(to)
            if moved:
                moved.there += part.there

    def _remove(self, part: _Part) -> None:
        index = bisect_left(self._starts, part.first)
        del self._starts[index], self._parts[index]

    def close(self, outcome: Outcome) -> None:
        """End the process."""
        for part in self._parts:
            outcome.saved += min(part.there, self._touched(part.first, part.end))
            part.there = 0
        outcome.bring(-self._free)
        self._free = 0


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
        self._malloc, self._heap_end = Malloc(self._count), 0
        # Whether malloc's pages are kept if they are given back, and others.
        self.keeps = True, True
        # What a setting keeps, and by block the pages of it.
        self._kept, self._again = outcomes[KEEP], defaultdict[int, int](int)
        # Whether munmap(2) was recorded of a large block.
        self._unmaps = False
        # Of shared memory: the blocks that this process has touched, by the time of their mapping,
        # and the pages that all processes have touched, by file and block.
        self._maps: set[tuple[int, int]] = set()
        self._pool: dict[tuple[str, str, int], int] = {}

    @property
    def _kept_of_malloc(self) -> Outcome:
        """What keeping malloc's blocks does; nobody counts it where that is another allocator."""
        return self._kept if self.keeps[0] else Outcome()

    def fork(self) -> Replay:
        """Return that of a child."""
        child = Replay(self._outcomes, self._page_size)
        child._folios = {name: folios.fork() for name, folios in self._folios.items()}
        child._there = self._there.copy()
        child._malloc = self._malloc.fork(child._count)
        child._heap_end = self._heap_end
        child.keeps = self.keeps
        child._pool = self._pool
        return child

    @property
    def no_huge(self) -> bool:
        """Whether the process has forbidden huge pages."""
        return not self._folios

    def forbid_huge(self) -> None:
        """Serve no fault by large folios, nor any since the process began."""
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
        bit = 1 << number
        part = self._malloc.at(page)
        inside = self._inside(block, limits)
        for name, folios in self._folios.items():
            if name == HEAP:
                large = limits.heap or (part is not None and part.large)
                self._malloc_faults += large
                self._malloc_there += large
                self._malloc_most = max(self._malloc_most, self._malloc_there)
                inside = self._heap_inside(block, limits, part)
            folios.touch(page, inside, write=write, missing=missing)
        self._there[block] = self._there.get(block, 0) | bit
        if again and self.keeps[part is None] and not (self._unmaps and part and part.large):
            self._kept.saved += 1
            if not self._again[block] & bit:
                self._again[block] |= bit
                self._kept.bring(1)

    def share(self, address: int, mapping: Mapped) -> None:
        """Take a fault in shared memory, of which a whole block in one mapping is a huge page.

        The kernel puts such mappings where their blocks are aligned, if huge pages are allowed.
        """
        block, inside = divmod(address - mapping.start + mapping.offset, BLOCK)
        end = mapping.offset + mapping.end - mapping.start
        if table_bytes(self._page_size) != BLOCK or not (
            mapping.offset <= block * BLOCK and (block + 1) * BLOCK <= end
        ):
            return
        outcome, of = self._outcomes[SHARED], (mapping.path, mapping.identity, block)
        pages, page = self._pool.get(of, 0), 1 << (inside >> self._shift)
        outcome.bring((0 if pages else self._block) - (page & ~pages).bit_count())
        self._pool[of] = pages | page
        outcome.saved += (mapping.time, block) in self._maps
        self._maps.add((mapping.time, block))

    def _inside(self, block: int, limits: Limits) -> int:
        """Return which pages of a block are between limits."""
        first = block * self._block
        low, high = max(limits.first - first, 0), min(limits.end - first, self._block)
        return (1 << high) - (1 << low) if low < high else 0

    def _heap_inside(self, block: int, limits: Limits, part: _Part | None) -> int:
        """Return where malloc(3) has huge pages in a block, if it asks for them.

        Its heap then ends on a block's end, and its first 2 MiB begin where the heap does.
        """
        if limits.heap:
            behind = block * self._block >= limits.first + self._block
            return (1 << self._block) - 1 if behind else 0
        return self._inside(block, Limits(part.first, part.end)) if part and part.large else 0

    def map(self, start: int, end: int, *, heap: bool) -> None:
        """Take a new mapping between two addresses, or what a heap has grown by."""
        limits = Limits(start >> self._shift, end >> self._shift, heap)
        self._forget(limits)
        for name, folios in self._folios.items():
            if not (heap and name == HEAP):
                folios.map(limits)
        if heap:
            # What is above its highest end takes what was freed; the rest is there already.
            new = max(limits.end - max(self._heap_end, limits.first), 0)
            self._heap_end = max(self._heap_end, limits.end)
            self._malloc.take(*limits[:2], self._kept_of_malloc, large=False, new=new)

    def give_back(self, start: int, end: int, call: str) -> None:
        """Take what a system call gives back between two addresses."""
        limits = Limits(start >> self._shift, end >> self._shift, call == "brk")
        part = self._malloc.at(limits.first)
        large = part is not None and part.large
        if limits.heap or large:
            self._malloc_there -= self._count(*limits[:2])
        if call != "madvise" and large:
            self._unmaps = True
            self._malloc.give_back(limits.first, limits.end, self._kept_of_malloc)
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
        if first != target:
            grown = Limits(target, end)
            self._forget(grown)
            move_pages(self._there, first, count, target, self._block)
            for folios in self._folios.values():
                folios.give_back(grown)
                folios.move(first, count, target)
        if new_size >= size:
            self._malloc.move(first, target, end, self._kept_of_malloc)

    def begin(self, address: int, new: Mapped, *, allocator: bool) -> None:
        """Take a new mapping that the `allocator`, or other code, touches first at an address.

        What was mapped begins there; below is what the kernel has merged with it. glibc writes
        at the beginning of a large block. A thread's heap begins at a multiple of its largest
        size, and glibc writes behind what has been used; it asks for no huge pages there. Other
        memory that glibc's code touches first is that of whoever calls memset(3) and the like.
        """
        of_thread = new.start % _THREAD_HEAP == 0
        if not allocator or not (of_thread or address % self._page_size < _HEADER):
            return
        first = (new.start if of_thread else address) >> self._shift
        outcome = Outcome() if of_thread else self._kept_of_malloc
        room = 0 if of_thread else -1
        self._malloc.take(first, new.end >> self._shift, outcome, large=not of_thread, new=room)

    def close(self) -> None:
        """End the process."""
        before = self._outcomes[HEAP].saved
        for folios in self._folios.values():
            folios.close()
        if HEAP in self._folios:
            self._close_heap(before)
        self._kept.bring(-sum(pages.bit_count() for pages in self._again.values()))
        self._again.clear()
        self._malloc.close(self._kept_of_malloc)

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

    def _count(self, first: int, end: int) -> int:
        return pages_in(self._there, first, end, self._block)


def new_outcomes() -> dict[str, Outcome]:
    """Return an outcome for each remedy."""
    return {name: Outcome() for name in (*FOLIOS, HEAP, KEEP, SHARED)}
