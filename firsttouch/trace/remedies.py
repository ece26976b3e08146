# SPDX-License-Identifier: GPL-2.0
"""Replays the faults of a process through each remedy, and counts what it would save."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from firsttouch.trace.events import Mapped
from firsttouch.trace.spaces import HEAP as BRK
from firsttouch.trace.spaces import Space
from firsttouch.trace.totals import BLOCK, Outcome, blocks_of, move_pages, pages_inside

# The remedies by their names in trace.json. Of 64 KiB and 2 MiB: sizes of large folios.
FOLIOS = {"huge pages of 64 KiB": 64 << 10, "huge pages of 2 MiB": 2 << 20}
MTHP_64, THP = FOLIOS
HEAP, KEEP = "huge pages for the heap", "keep what is given back"
SHARED = "huge pages of shared memory"
# Both variables of the allocator at once.
BOTH = "keep, and a heap of huge pages"
# Of glibc: the bytes at the beginning of a large block, in which it writes how large that is;
# and the largest size of a thread's heap (malloc/arena.c, HEAP_MAX_SIZE).
_HEADER = 16
_THREAD_HEAP = 64 << 20
# Memory that malloc(3) of the C library maps: a large block, or the heap of a thread; and what
# the program asks brk(2) for itself.
_LARGE, _OF_THREAD, _OWN = "large block", "heap of a thread", "the program's own"


def table_bytes(page_size: int) -> int:
    """Return what a page table maps, and so its huge page: 2, 32 or 512 MiB."""
    return page_size * page_size // 8


class Folios:
    """Folios of one size, by blocks of 2 MiB: which pages they have brought that are still there.

    The first write of an aligned part with no page, which lies in one mapping, brings a folio;
    that of a whole page table (`zero`) a read, too: the huge zero page is taken for one. `there`
    are the pages that have had a fault.
    """

    def __init__(self, outcome: Outcome, pages: int, *, zero: bool) -> None:
        self._outcome = outcome
        self._pages = pages
        self._zero = zero
        self.brought: dict[int, int] = {}
        self._saved = 0

    def touch(
        self, block: int, number: int, inside: int, there: int, *, write: bool, missing: bool
    ) -> None:
        """Take a fault on a page of a block, of which the pages `inside` are in its mapping.

        If not `missing`, the zero page is there.
        """
        bit, brought = 1 << number, self.brought.get(block, 0)
        whole = (1 << self._pages) - 1 << number - number % self._pages
        if brought & bit:
            self._saved += 1
            self._outcome.bring(-(bit & ~there).bit_count())
        elif missing and (write or self._zero) and not (brought | there | ~inside) & whole:
            self.brought[block] = brought | whole
            self._outcome.bring(self._pages - 1)
        else:
            self._outcome.bring(0)

    def give_back(self, block: int, pages: int, there: int, *, kept: bool) -> None:
        """Take pages of a block that are given back; if `kept`, what folios have is there."""
        brought = self.brought.get(block, 0)
        if kept:
            self._outcome.bring((brought & pages & there).bit_count())
            return
        self._outcome.bring(-(brought & pages & ~there).bit_count())
        self.brought[block] = brought & ~pages

    def close(self, there: Mapping[int, int]) -> int:
        """End the process; return the faults that its folios have saved."""
        for block, pages in self.brought.items():
            self._outcome.bring(-(pages & ~there.get(block, 0)).bit_count())
        self.brought.clear()
        saved, self._saved = self._saved, 0
        return saved


class Replay:
    """A process: its faults in anonymous memory go through all remedies."""

    def __init__(self, outcomes: dict[str, Outcome], page_size: int, *, huge: bool = True) -> None:
        """Replay a program, without folios if not `huge`."""
        self._outcomes = outcomes
        self._page_size = page_size
        self.shift = page_size.bit_length() - 1
        # Pages of a block.
        self.block = BLOCK // page_size
        self._folios: dict[str, Folios] = {}
        # Faults in memory for which malloc(3) may ask for huge pages; the pages that are there.
        self._malloc_faults = self._malloc_there = self._malloc_most = 0
        # From 2 MiB behind the heap's beginning, the pages to the first huge page.
        self._gap = self.block
        for name, size in (*FOLIOS.items(), (HEAP, BLOCK)):
            zero = size == table_bytes(page_size)
            # Two pages are no large folio of anonymous memory; malloc asks for a page table's.
            if huge and size >= 4 * page_size and (zero or name != HEAP):
                self._folios[name] = Folios(outcomes[name], size // page_size, zero=zero)
        # What is taken for given back where no call was recorded.
        self._group = max(FOLIOS[MTHP_64] // page_size, 1)
        # By block, the pages that are there; and those of all processes.
        self._there: dict[int, int] = {}
        self._own = outcomes[THP].own or Outcome()
        # What malloc(3) has mapped, and how many pages of it are free, if it keeps them.
        self._malloc, self._free = Space(), 0
        # Whether malloc's pages are kept if they are given back, and others.
        self.keeps = True, True
        # What a setting keeps; by block the pages that it has kept, and how many came back there.
        self._kept, self._reused, self._came_back = outcomes[KEEP], defaultdict[int, int](int), 0
        # Of malloc's faults how many that saves, and others; the pages of each thread's heap.
        self._saved = self._unsaved = 0
        self._arenas: Counter[int] = Counter()
        # Whether munmap(2) was recorded of a large block.
        self._unmaps = False
        # Of shared memory: the blocks that this process has touched, by the time of their mapping,
        # and the pages that all processes have touched, by file and block.
        self._maps: set[tuple[int, int]] = set()
        self._pool: dict[tuple[str, str, int], int] = {}

    def execute(self) -> Replay:
        """Return the replay of another program, in a new address space."""
        program = Replay(self._outcomes, self._page_size, huge=bool(self._folios))
        program._pool = self._pool
        return program

    def fork(self) -> Replay:
        child = self.execute()
        # A write copies the parent's pages one by one, also those of a folio.
        child._there = self._there.copy()
        child._own.bring(child._pages_there())
        child._malloc = self._malloc.copy()
        child.keeps = self.keeps
        return child

    def forbid_huge(self) -> None:
        """Serve no fault by large folios, nor any since the process began."""
        for folios in self._folios.values():
            folios.close(self._there)
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
        block, number = divmod(page, self.block)
        bit = 1 << number
        if missing and self._there.get(block, 0) & bit:
            first = page - page % self._group
            self._forget(first << self.shift, first + self._group << self.shift)
        there = self._there.get(block, 0)
        self._own.bring(there & bit == 0)
        part = self._malloc.at(page << self.shift)
        own = part is not None and part.path == _OWN
        heap = mapping is not None and mapping.path == BRK and not own
        large = part if part and part.path == _LARGE else None
        of_malloc = heap or large is not None
        self._malloc_faults += of_malloc
        self._malloc_there += of_malloc
        self._malloc_most = max(self._malloc_most, self._malloc_there)
        inside = self._inside(block, mapping)
        for name, folios in self._folios.items():
            if name == HEAP:
                inside = self._heap_inside(block, mapping if heap else large)
            folios.touch(block, number, inside, there, write=write, missing=missing)
        self._there[block] = there | bit
        if self.keeps[own or (part is None and not heap)]:
            if missing:
                # Where a large block is does not matter, if it is seen when they are freed.
                back = again and not (large and self._unmaps)
                self._take(block, bit, back=back, new=of_malloc)
            elif large:
                # calloc(3) writes to a block with freed pages, and so the program reads none first.
                block, number = divmod(large.start >> self.shift, self.block)
                bit = 1 << number
            # Also a write of what was read first.
            saved = self._reused[block] & bit != 0
            self._saved += saved
            self._unsaved += not saved
            if part and part.path == _OF_THREAD:
                self._arenas[part.start] += missing and not again

    def _take(self, block: int, bit: int, *, back: bool, new: bool) -> None:
        """Take a page, where it was before (`back`) or `new` for malloc(3), which keeps all.

        It takes those that it has freed, however they lie: glibc takes the smallest block that
        is large enough, and joins free ones.
        """
        if back:
            if not self._reused[block] & bit:
                self._came_back += 1
                self._kept.bring(1)
            self._reused[block] |= bit
        elif new and self._free:
            self._free -= 1
            self._kept.bring(-1)
            self._reused[block] |= bit
        else:
            self._reused[block] &= ~bit

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
        pages, page = self._pool.get(of, 0), 1 << (inside >> self.shift)
        outcome.bring((0 if pages else self.block) - (page & ~pages).bit_count())
        self._pool[of] = pages | page
        outcome.saved += (mapping.time, block) in self._maps
        self._maps.add((mapping.time, block))

    def _inside(self, block: int, mapping: Mapped | None) -> int:
        """Return which pages of a block are in a mapping."""
        first, end = (mapping.start, mapping.end) if mapping else (0, 0)
        return pages_inside(block, first >> self.shift, end >> self.shift, self.block)

    def _heap_inside(self, block: int, mapping: Mapped | None) -> int:
        """Return where malloc(3) has huge pages in a block, if it asks for them.

        Its heap then ends on a block's end, and its first 2 MiB begin where the heap does.
        """
        if mapping and mapping.path == BRK:
            self._gap = -(mapping.start >> self.shift) % self.block
            return (1 << self.block) - 1 if block * BLOCK >= mapping.start + BLOCK else 0
        return self._inside(block, mapping)

    def map(self, start: int, end: int, *, heap: bool, own: bool = False) -> None:
        self._malloc.unmap(start, end)
        if own:
            self._malloc.map(Mapped(0, 0, start, end, 0, 0, 0, _OWN))
        self._forget(start, end, heap=heap)

    def give_back(self, start: int, end: int, call: str) -> None:
        """Take what a system call gives back between two addresses."""
        part = self._malloc.at(start)
        heap = call == "brk" and part is None
        large = part is not None and part.path == _LARGE
        inside = blocks_of(start >> self.shift, end >> self.shift, self.block, self._there)
        pages = sum((pages & self._there[block]).bit_count() for block, pages in inside)
        if heap or large:
            self._malloc_there -= pages
        if large and call != "madvise":
            self._unmaps = True
            self._malloc.unmap(start, end)
            if self.keeps[0]:
                self._free += pages
                self._kept.bring(pages)
        self._forget(start, end, heap=heap)

    def _forget(self, start: int, end: int, *, heap: bool = False) -> None:
        first, last = start >> self.shift, end >> self.shift
        for block, pages in blocks_of(first, last, self.block, self._there):
            for name, folios in self._folios.items():
                # A heap of huge pages gives whole ones back.
                kept = heap and name == HEAP
                folios.give_back(block, pages, self._there[block], kept=kept)
            self._own.bring(-(pages & self._there[block]).bit_count())
            self._there[block] &= ~pages

    def move(self, start: int, size: int, to: int, new_size: int) -> None:
        first, count, target = (value >> self.shift for value in (start, size, to))
        if start != to:
            self._forget(to, to + new_size)
            move_pages(self._there, first, count, target, self.block)
            for folios in self._folios.values():
                move_pages(folios.brought, first, count, target, self.block)
        self._malloc.move(start, size, to, new_size)

    def begin(self, address: int, new: Mapped, *, allocator: bool) -> None:
        """Take a new mapping that the `allocator`, or other code, touches first at an address.

        What was mapped begins there; below is what the kernel has merged with it. glibc writes
        at the beginning of a large block. A thread's heap begins at a multiple of its largest
        size, and glibc writes behind what has been used; it asks for no huge pages there. Other
        memory that glibc's code touches first is that of whoever calls memset(3) and the like.
        """
        if allocator and new.start % _THREAD_HEAP == 0:
            self._malloc.map(new._replace(path=_OF_THREAD))
        elif allocator and address % self._page_size < _HEADER:
            self._malloc.map(new._replace(start=address, path=_LARGE))

    def close(self) -> None:
        """End the process."""
        for name, folios in self._folios.items():
            saved = folios.close(self._there)
            if name == HEAP:
                self._close_heap(saved)
            else:
                self._outcomes[name].saved += saved
        # Threads may all use one heap, which has no huge pages, or each its own, as they come.
        chance = max(self._unsaved - max(self._arenas.values()), 0) if self._arenas else 0
        for outcome in (self._kept, self._outcomes[BOTH])[: 1 + bool(self._arenas)]:
            outcome.saved += self._saved
            outcome.chance += chance
        self._saved = self._unsaved = 0
        self._arenas.clear()
        self._kept.bring(-self._came_back - self._free)
        self._came_back = self._free = 0
        self._own.bring(-self._pages_there())
        self._there.clear()

    def _pages_there(self) -> int:
        return sum(pages.bit_count() for pages in self._there.values())

    def _close_heap(self, saved: int) -> None:
        """Count what huge pages save at most: where malloc(3) maps nothing, for there is room.

        Its first 2 MiB have small pages. If that is enough for all, of one thread, it is certain.
        The first huge page begins up to 2 MiB behind them, by chance, whatever `saved` has met.
        """
        heap, both = self._outcomes[HEAP], self._outcomes[BOTH]
        small = min(self._malloc_most, self.block)
        left = small + (self._malloc_most - small) // self.block
        most = max(self._malloc_faults - left, saved)
        certain = self._malloc_most < self.block and not self._arenas
        for outcome, least in (
            (heap, saved - self.block + self._gap),
            (both, most - self.block),
        )[: 1 + (not self._arenas)]:
            least = most if certain else max(least, 0)
            outcome.saved += least
            outcome.chance += most - least
        self._malloc_faults = self._malloc_there = self._malloc_most = 0


def new_outcomes() -> dict[str, Outcome]:
    own = Outcome()
    outcomes = {name: Outcome(own=own) for name in (*FOLIOS, HEAP)}
    return outcomes | {name: Outcome() for name in (KEEP, SHARED, BOTH)}
