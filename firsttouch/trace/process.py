# SPDX-License-Identifier: GPL-2.0
"""A process while a recording's events are read: its space, its code, and its pages with faults."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from firsttouch.trace.allocators import GLIBC, Allocator, allocator_with, is_of
from firsttouch.trace.events import Call, Fault, Mapped
from firsttouch.trace.kinds import First, Instruction
from firsttouch.trace.remedies import Replay
from firsttouch.trace.spaces import EXEC, HEAP, PROT_EXEC, Place, Space, is_anonymous, place_of
from firsttouch.trace.totals import Giver, Stack, Totals, Touched, blocks_of, move_pages
from firsttouch.trace.unwinding import Rule


class Process:
    """A process, from its fork or exec to the next exec or the end."""

    def __init__(self, pid: int, name: str, replay: Replay, *, executed: bool = False) -> None:
        self.pid = pid
        self.name = name
        self.replay = replay
        # Pages of a block, and of an address the bits within a page.
        self.block, self.shift = replay.block, replay.shift
        self.space = Space()
        # Whether its first thread has ended, while others may go on.
        self.ended = False
        # Until the program's first own fault exec has not ended: its faults are the kernel's.
        self.executing = executed
        # The allocator, and a new mapping of memory that nobody has touched yet.
        self.allocator: Allocator | None = None
        self.new: Mapped | None = None
        # Where brk(2) has put the end of the heap; 0 if that was not recorded. Whether the program
        # itself called it.
        self._break, self._own = 0, False
        # When a thread last called what holds mmap_lock for writing, and which.
        self.locked = 0, 0
        # Of pages with one fault, by page.
        self.first: dict[int, First] = {}
        self.touched = Touched(self.space)
        # Whether a fork shared its pages, and as in `Touched`, which had had faults before.
        self.forked = False
        self._inherited: dict[int, int] = {}
        # By block.
        self.givers: dict[int, Giver] = {}
        # Faults of each thread, the names of those that have their own, and those in anonymous
        # memory.
        self.threads: Counter[int] = Counter()
        self.thread_names: dict[int, str] = {}
        self.threaded = False
        self.anonymous = 0
        # By pc: what it is, and where.
        self.decoded: dict[int, Instruction] = {}
        self._places: dict[int, Place] = {}
        # How the frames of code end, by pc; None for what has no rules. By pc and chain: a stack.
        self.rules: dict[int, Rule | None] = {}
        self.stacks: dict[tuple[int, tuple[int, ...]], Stack] = {}

    def place(self, pc: int) -> Place:
        if self.executing:
            return EXEC
        place = self._places.get(pc)
        if place is None:
            place = self._places[pc] = place_of(self.space, self.pid, pc)
        return place

    def callers(self, chain: tuple[int, ...]) -> tuple[Place, ...]:
        """Return the places of the calls, until the chain leaves code.

        Code without frame pointers keeps any value in their register.
        """
        return tuple(self.place(pc - 1) for pc in takewhile(self._can_execute, chain))

    def _can_execute(self, pc: int) -> bool:
        mapping = self.space.at(pc)
        return mapping is not None and mapping.prot & PROT_EXEC != 0

    def map(self, event: Mapped) -> None:
        if event.prot & PROT_EXEC:
            self._places.clear()
            self.stacks.clear()
            self.rules.clear()
            # Other code than what a file had there. That of no file has been read again.
            replaced = () if is_anonymous(event) else self.decoded
            for pc, _ in blocks_of(event.start, event.end, 1, replaced):
                del self.decoded[pc]
        if 0 <= event.end - self._break < 1 << self.shift and is_anonymous(event):
            # What brk(2) maps first has no name yet.
            event = event._replace(path=HEAP)
        fresh = self.space.map(event)
        self.allocator = allocator_with(self.allocator, event.path)
        used = self.allocator
        malloc = used is GLIBC or (used is not None and used.beside)
        if used:
            self.replay.keeps = used.keeps
        heap = event.path == HEAP
        if malloc and is_anonymous(event) and not heap and not event.prot & PROT_EXEC:
            # The kernel's record has what it merged with, too. glibc reserves a thread's heap, and
            # changes its protection where it grows.
            start, end = (fresh[0][0], fresh[-1][1]) if fresh else (event.start, event.end)
            self.new = event._replace(start=start, end=end)
        for start, end in fresh:
            self.replay.map(start, end, heap=heap, own=heap and self._own)
            self._forget_reads(start, end)

    def call(self, event: Call, places: tuple[Place, ...]) -> tuple[int, int]:
        """Move memory; return between which addresses the call gives some back, if any.

        The kernel takes whole pages; of a heap those behind its end. Between malloc(3) and brk(2)
        there are more functions of the C library than sbrk(3).
        """
        start, end = event.start, event.end
        if event.call == "mremap":
            self._move(event)
            start = event.start + event.new_end - event.to
        elif event.call == "brk":
            heap = self.space.at(start)
            end = self._break or (heap.end if heap and heap.path == HEAP else 0)
            self._break = start
            library = sum(1 for _ in takewhile(lambda place: is_of(GLIBC, place.path), places))
            self._own = library < min(3, len(places))
        return self._up(start), self._up(end)

    def _up(self, address: int) -> int:
        """Return an address rounded up to whole pages."""
        return -(-address >> self.shift) << self.shift

    def give_back(self, start: int, end: int, giver: Giver) -> None:
        first, last = start >> self.shift, end >> self.shift
        for block, _ in blocks_of(first, last, self.block, self.touched.pages):
            self.givers[block] = giver
        self.replay.give_back(start, end, giver.call)
        if giver.call != "madvise":
            self.space.unmap(start, end)
        self._forget_reads(start, end)

    def _forget_reads(self, start: int, end: int) -> None:
        """Forget what was read of the pages between two addresses: others are there."""
        for page, _ in blocks_of(start >> self.shift, self._up(end) >> self.shift, 1, self.first):
            del self.first[page]

    def _move(self, event: Call) -> None:
        old, new_size = self._up(event.end - event.start), self._up(event.new_end - event.to)
        size = min(old, new_size)
        self.replay.move(event.start, size, event.to, new_size)
        if event.to != event.start:
            first, pages, to = (value >> self.shift for value in (event.start, size, event.to))
            move_pages(self.touched.pages, first, pages, to, self.block)
            for page, _ in blocks_of(first, first + pages, 1, self.first):
                self.first[page - first + to] = self.first.pop(page)
        self.space.move(event.start, size, event.to, new_size)

    def begin(self, fault: Fault) -> None:
        """Tell whose the new mapping is by the first fault in it: who maps memory begins it.

        malloc(3) writes a word there. memset(3) and the like, which others call, write more.
        """
        new = self.new
        if new and new.start <= fault.address < new.end:
            self.new = None
            code = self.place(fault.pc).path if fault.user else ""
            instruction = self.decoded.get(fault.pc)
            word = instruction is not None and instruction.of_words
            self.replay.begin(fault.address, new, allocator=word and is_of(GLIBC, code))

    def fork(self, pid: int) -> Process:
        child = Process(pid, self.name, self.replay.fork())
        child.space = child.touched.space = self.space.copy()
        child.allocator = self.allocator
        self.forked = child.forked = True
        child._break = self._break
        child._inherited = self._inherited | {
            block: pages | self._inherited.get(block, 0)
            for block, pages in self.touched.pages.items()
        }
        return child

    def touch(self, page: int, inherited: bool) -> bool:
        """Count a fault. Tell whether its page had one before, or if `inherited`, its parent's."""
        self.touched.faults += 1
        block, bit = page // self.block, 1 << page % self.block
        before = self.touched.pages.get(block, 0)
        self.touched.pages[block] = before | bit
        return (before | (self._inherited.get(block, 0) if inherited else 0)) & bit != 0

    def note(self, page: int, kind: int) -> None:
        """Note the kind of a page's fault."""
        of_kind, block = self.touched.kinds[kind], page // self.block
        of_kind[block] = of_kind.get(block, 0) | 1 << page % self.block

    def close(self, totals: Totals) -> None:
        """Count in `totals` what an address space is in the end."""
        self.replay.close()
        for tid, faults in self.threads.items():
            totals.add("thread", self.thread_names.get(tid, self.name), faults)
        totals.add("program", self.name, self.threads.total())
        totals.add("process", self.name, self.threads.total(), self.pid)
        totals.allocators[self.allocator.name if self.allocator else ""] += self.anonymous
        if self.touched.faults > totals.largest.faults:
            totals.largest = self.touched
