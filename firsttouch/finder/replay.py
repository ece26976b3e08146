# SPDX-License-Identifier: GPL-2.0
"""Replays the faults of a recording through all remedies, and counts what each would save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from firsttouch.finder.blocks import Limits, blocks_of, pages_in
from firsttouch.finder.events import Fault, Forbade, Mapped, Wish
from firsttouch.finder.kept_blocks import KeptBlocks
from firsttouch.finder.kernel_rules import NEWEST, KernelRules
from firsttouch.finder.kinds import SECOND
from firsttouch.finder.ranges import Ranges
from firsttouch.finder.remedies import (
    AROUND,
    COUNTED,
    FILLED,
    KEEP,
    KEPT,
    RELOCATE,
    SPAWN,
    worlds_of,
)
from firsttouch.finder.simulation import Simulation
from firsttouch.finder.thread_stacks import ThreadStacks
from firsttouch.finder.worlds import Outcome, World

# Where a program touches this share of a block, populating it brings little in vain.
_FILLED = 0.9
# Of glibc: the bytes at the beginning of a large block, in which it writes how large that is;
# and the largest size of a thread's heap (malloc/arena.c, HEAP_MAX_SIZE).
_HEADER = 16
_THREAD_HEAP = 64 << 20


class Remedies:
    """The outcomes of the remedies of a recording; `worlds` are simulated in place of the usual."""

    def __init__(
        self,
        page_size: int,
        block: int,
        worlds: Mapping[str, type[World]] | None = None,
        *,
        says_stacks: bool = False,
    ) -> None:
        worlds = worlds or worlds_of(page_size)
        self.outcomes = {name: Outcome() for name in (*worlds, *COUNTED)}
        self._shift = page_size.bit_length() - 1
        self._block = block
        self._worlds = worlds
        self._says_stacks = says_stacks

    def process(self, rules: KernelRules = NEWEST) -> Replay:
        """Return a new process on a kernel with these rules."""
        worlds = tuple(
            made(self.outcomes[name], self._block) for name, made in self._worlds.items()
        )
        for world in worlds:
            world.rules = rules
        stacks = ThreadStacks(says_stacks=self._says_stacks)
        return Replay(self.outcomes, Simulation(self._block, worlds), self._shift, stacks)


class Replay:
    """A process: its faults in anonymous memory go through all remedies."""

    def __init__(
        self,
        outcomes: dict[str, Outcome],
        simulation: Simulation,
        shift: int,
        stacks: ThreadStacks,
    ) -> None:
        self._outcomes = outcomes
        self._simulation = simulation
        self._shift = shift
        self._stacks = stacks
        # By block: the faults on pages that were not given back before, and these pages.
        self._faults: dict[int, int] = defaultdict(int)
        self._pages: dict[int, int] = defaultdict(int)
        # The pages of malloc(3) of the C library.
        self._allocated = Ranges()
        # By block, pages that an allocator unmapped, which its setting does not keep.
        self._unmapped: dict[int, int] = {}
        # What keeps these pages if they are given back, and what keeps others; "" for nothing.
        self.keeps = KEEP, KEEP
        # By remedy and block: the pages that it keeps.
        self._again: dict[str, dict[int, int]] = {name: defaultdict(int) for name in KEPT}
        # Blocks that malloc(3) unmapped, where that was recorded.
        self._blocks = KeptBlocks()
        self._unmaps = False
        # Mappings of files, by when and where they begin, and blocks that have had a fault.
        self._around: set[tuple[int, int, int]] = set()
        # Whether the process has forbidden huge pages; fault-ahead heeds that, too.
        self.no_huge = False

    def fork(self) -> Replay:
        """Return that of a child."""
        stacks = ThreadStacks(says_stacks=self._stacks.says_stacks)
        child = Replay(self._outcomes, self._simulation.fork(), self._shift, stacks)
        child.keeps, child._allocated = self.keeps, self._allocated.copy()
        child.no_huge, child._unmapped = self.no_huge, self._unmapped.copy()
        return child

    def forbid_huge(self) -> None:
        """Serve no fault by large folios, nor any since the process began."""
        self.no_huge = True
        self._simulation.forbid_huge()

    def fault(self, fault: Fault, kind: int, limits: Limits, *, write: bool, again: bool) -> None:
        """Take a fault in anonymous memory; `again` if its page was there and was given back.

        `limits` are those of its mapping.
        """
        missing = not fault.mapped and kind != SECOND
        if not missing and kind != SECOND:
            return
        page = fault.address >> self._shift
        self._simulation.fault(page, fault.tid, limits, write=write, missing=missing)
        block, number = divmod(page, self._simulation.block)
        if again:
            self._keep(block, 1 << number)
        else:
            self._faults[block] += 1
            self._pages[block] |= 1 << number

    def writes(self, block: int, pages: int, again: int, tid: int, limits: Limits) -> None:
        """Take writes to missing pages of a block, upwards; `again` are those as in `fault`.

        `limits` are those of a mapping that has all of them.
        """
        self._simulation.writes(block, pages, tid, limits)
        if again:
            self._keep(block, again)
        if others := pages & ~again:
            self._faults[block] += others.bit_count()
            self._pages[block] |= others

    def _keep(self, block: int, again: int) -> None:
        again &= ~self._unmapped.get(block, 0)
        if self._unmaps:
            again &= ~self._simulation.asked.of_block(block, self._simulation.block)
        allocated = again & self._allocated.of_block(block, self._simulation.block)
        for name, pages in zip(self.keeps, (allocated, again ^ allocated), strict=True):
            if name and pages:
                keep, counted = self._outcomes[name], self._again[name]
                keep.saved += pages.bit_count()
                if new := pages & ~counted[block]:
                    counted[block] |= new
                    keep.bring(new.bit_count())

    def read_file(self, page: int, mapping: Mapped) -> None:
        """Take a read of a mapped file: fault-around would map the rest of a page table, too."""
        where = mapping.time, mapping.start, page // self._simulation.block
        self._outcomes[AROUND].saved += where in self._around
        self._around.add(where)

    def relocate(self) -> None:
        """Take a write of the dynamic loader to a private page of a file."""
        self._outcomes[RELOCATE].saved += 1

    def spawn(self, faults: int) -> None:
        """Take faults that a process has because it forks children that execute a program."""
        self._outcomes[SPAWN].saved += faults

    def map(self, start: int, end: int, *, heap: bool) -> None:
        """Take a new mapping between two addresses, or what a heap has grown by."""
        limits = Limits(start >> self._shift, end >> self._shift, heap)
        self._simulation.map(limits)
        self._simulation.single.mark(limits, marked=False)
        if heap:
            self._allocated.mark(limits, marked=True)
            self._blocks.take(limits, self._outcomes[self.keeps[0]])

    def map_stack(self, event: Mapped, fresh: Sequence[tuple[int, int]]) -> None:
        """Take a mapping, if it is a thread's stack; `fresh` was not there before."""
        for start, end in self._stacks.parts(event, fresh):
            self._allow_folios(start, end, large=False)

    def wish(self, event: Wish) -> None:
        """Take a system call that says where the process wants large folios."""
        if isinstance(event, Forbade):
            self.forbid_huge()
        elif event.start:
            self._allow_folios(event.start, event.end, large=event.large)
        else:
            self._stacks.ask(event.tid, -(-event.end >> self._shift) << self._shift)

    def _allow_folios(self, start: int, end: int, *, large: bool) -> None:
        """Serve faults between addresses by `large` folios or none, until others are mapped."""
        limits = Limits(start >> self._shift, -(-end >> self._shift))
        self._simulation.single.mark(limits, marked=not large)

    def give_back(self, start: int, end: int, call: str) -> None:
        """Take what a system call gives back between two addresses."""
        limits = Limits(start >> self._shift, end >> self._shift, call == "brk")
        asked = self._simulation.asked
        first = limits.first
        if call != "madvise" and first in asked:
            # A block of malloc(3), or the end of one that shrinks.
            self._unmaps = True
            touched = self._simulation.touched(first, limits.end)
            outcome = self._outcomes[self.keeps[0]]
            self._blocks.give_back(limits, touched, outcome)
            for pages_of in (asked, self._allocated):
                pages_of.mark(limits, marked=False)
        self._simulation.give_back(limits, mapped=call == "madvise")

    def move(self, start: int, size: int, to: int, new_size: int) -> None:
        """Take `size` bytes of pages that mremap(2) moves, or that grow where they are."""
        asked = self._simulation.asked
        first, count, target, end = (
            value >> self._shift for value in (start, size, to, to + new_size)
        )
        grows = new_size > size and first in asked
        if grows:
            touched = self._simulation.touched(first, first + count)
            block, grown = Limits(first, first + count), Limits(target, end)
            self._blocks.grow(block, grown, touched, self._outcomes[self.keeps[0]])
        if first != target:
            self._simulation.give_back(Limits(target, end))
            self._simulation.move(first, count, target)
            for pages_of in (self._allocated, asked, self._simulation.single):
                pages_of.move(first, count, target)
        if grows:
            for pages_of in (self._allocated, asked):
                pages_of.mark(Limits(target + count, end), marked=True)
            self._simulation.begin(grown, malloc=True)

    def unmapped(self, start: int, end: int, touched: Mapping[int, int]) -> None:
        """Take what was `touched`, by block, where memory is mapped again, for unmapped before."""
        limits = Limits(start >> self._shift, end >> self._shift)
        for block, pages in blocks_of(limits, self._simulation.block, touched):
            self._unmapped[block] = self._unmapped.get(block, 0) | pages & touched[block]

    def regrow(self) -> None:
        """Let brk(2) move the end of the heap up, after it may have moved down."""
        self._simulation.regrow()

    def begin(self, address: int, new: Mapped, *, allocator: bool) -> None:
        """Take a new mapping that the `allocator`, or other code, touches first at an address.

        What was mapped begins there; below is what the kernel has merged with it. glibc writes
        at the beginning of a large block. A thread's heap begins at a multiple of its largest
        size, and glibc writes behind what has been used. Other memory that glibc's code touches
        first is that of whoever calls memset(3) and the like.
        """
        of_thread = allocator and new.start % _THREAD_HEAP == 0
        first = (new.start if of_thread else address) >> self._shift
        header = address % (1 << self._shift) < _HEADER
        limits = Limits(first, new.end >> self._shift)
        self._allocated.mark(limits, marked=allocator and (of_thread or header))
        # glibc asks for huge pages for large blocks, and never for a thread's heap.
        block = allocator and header and not of_thread
        self._simulation.asked.mark(limits, marked=block)
        self._simulation.begin(limits, malloc=block)
        if block:
            self._blocks.take(limits, self._outcomes[self.keeps[0]])

    def close(self) -> None:
        """End the process."""
        self._simulation.close()
        for name, counted in self._again.items():
            self._outcomes[name].bring(-sum(pages.bit_count() for pages in counted.values()))
        self._blocks.close(self._touched_in, self._outcomes[self.keeps[0]])
        block, spare, asked = self._simulation.block, 0, self._simulation.asked
        for number, pages in self._pages.items():
            # A program that takes small blocks from malloc(3) does not know where these will be.
            small = self._allocated.of_block(number, block) & ~asked.of_block(number, block)
            if (touched := (pages & ~small).bit_count()) >= _FILLED * block:
                self._outcomes[FILLED].saved += self._faults[number]
                spare += block - touched
        self._outcomes[FILLED].bring(spare)
        self._outcomes[FILLED].bring(-spare)
        for counted in (*self._again.values(), self._faults, self._pages):
            counted.clear()
        self._around.clear()

    def _touched_in(self, first: int, end: int) -> int:
        """Return how many pages have had faults: those there, and what a heap gave back since."""
        return max(
            self._simulation.touched(first, end),
            pages_in(self._pages, first, end, self._simulation.block),
        )
