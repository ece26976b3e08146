# SPDX-License-Identifier: GPL-2.0
"""A process while a recording's events are read: its space, its code, and its pages with faults."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from firsttouch.finder.allocators import allocator_of
from firsttouch.finder.events import Mapped
from firsttouch.finder.found import Found, Touched
from firsttouch.finder.instructions import Access, Instruction
from firsttouch.finder.kinds import AGAIN, FAULT_KINDS
from firsttouch.finder.remedies import Replay
from firsttouch.finder.spaces import Place, Space, is_anonymous, place_of


class First(NamedTuple):
    """A fault that may be the first of a double."""

    pc: int
    address: int
    instruction: Instruction
    anonymous: bool


class Process:
    """A process, from its fork or exec to the next exec or the end."""

    def __init__(
        self, space: Space, name: int, block: int, replay: Replay, *, executed: bool = False
    ) -> None:
        self.replay = replay
        self.space = space
        self.executed = executed
        self.name = name
        self.first: dict[int, First] = {}
        self.stacks: dict[tuple[int, tuple[int, ...]], int] = {}
        # By pc, as at its last fault.
        self.code: dict[int, bytes] = {}
        self.decoded: dict[int, Instruction] = {}
        self._places: dict[int, Place] = {}
        self.kinds = [0] * len(FAULT_KINDS)
        # Whether a fork shared its pages, and as in `Touched`, which had had faults before.
        self.forked = False
        self._inherited: dict[int, int] = {}
        self._touched = Touched(space)
        # Pages of a block.
        self._block = block
        # Doubles in anonymous memory, by pair and block.
        self._dense: Counter[tuple[int, int]] = Counter()
        self._near: Mapped | None = None
        self._near_anonymous = False

    def place(self, pid: int, pc: int) -> Place:
        """Return the place of a pc."""
        found = self._places.get(pc)
        if found is None:
            found = self._places[pc] = place_of(self.space, pid, pc)
        return found

    def moved(self) -> None:
        """Forget what depends on where code is mapped."""
        self._places.clear()
        self.stacks.clear()

    def map(self, event: Mapped) -> list[tuple[int, int]]:
        """Take over a mapping, as Space.map."""
        self._near = None
        fresh = self.space.map(event)
        for start, end in fresh:
            self.replay.map(start, end)
        return fresh

    def mapping(self, address: int) -> tuple[Mapped | None, bool]:
        """Return what is mapped at an address, and whether that is anonymous memory."""
        near = self._near
        if near is None or not near.start <= address < near.end:
            # Most faults are in the mapping of the one before.
            near = self._near = self.space.at(address)
            self._near_anonymous = is_anonymous(near)
        return near, self._near_anonymous

    def fork(self, name: int) -> Process:
        """Return the child that a fork makes."""
        child = Process(self.space.copy(), name, self._block, self.replay.fork())
        self.forked = child.forked = True
        child._inherited = self._inherited | {
            block: pages | self._inherited.get(block, 0)
            for block, pages in self._touched.pages.items()
        }
        return child

    def touch(self, page: int, inherited: bool) -> bool:
        """Count a fault. Tell whether its page had one before, or if `inherited`, its parent's."""
        touched = self._touched
        touched.faults += 1
        block = page // self._block
        bit = 1 << page % self._block
        before = touched.pages.get(block, 0)
        if not before & bit:
            touched.pages[block] = before | bit
            if inherited:
                before = self._inherited.get(block, 0)
        return before & bit != 0

    def double(self, page: int, pair: int, anonymous: bool) -> None:
        """Count the second fault of a double; `pair` as in `Found.pairs`."""
        block = page // self._block
        doubled = self._touched.doubled
        doubled[block] = doubled.get(block, 0) | 1 << page % self._block
        if anonymous:
            self._dense[pair, block] += 1

    def close(self, found: Found) -> None:
        """Count in `found` what an address space is in the end, and pages that were only read."""
        self.replay.close()
        touched = self._touched
        program = found.programs[found.names[self.name]]
        program.processes += 1
        program.kinds = [a + b for a, b in zip(program.kinds, self.kinds, strict=True)]
        if self.kinds[AGAIN]:
            found.allocators[allocator_of(self.space.paths())] += self.kinds[AGAIN]
        touched.reads = {
            page
            for page, first in self.first.items()
            if first.anonymous and first.instruction.access is Access.READ
        }
        found.unwritten += len(touched.reads)
        for (pair, block), count in self._dense.items():
            found.filled[pair][touched.pages[block].bit_count()] += count
        if touched.faults > found.largest.faults:
            found.largest = touched
