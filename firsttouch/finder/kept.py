# SPDX-License-Identifier: GPL-2.0
"""Keeps the blocks that malloc(3) unmaps, as its heap does where a setting forbids to map them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from firsttouch.finder.blocks import Limits
from firsttouch.finder.worlds import Outcome


class KeptBlocks:
    """The large blocks of a process, in pages: free ones, and those that came out of these.

    glibc takes the smallest free block that is large enough, and leaves the rest free. It also
    joins free neighbours, which this does not, since no call says where they would be: more
    may be saved.
    """

    def __init__(self) -> None:
        # The size of each, and how many of its pages are there.
        self._free: list[tuple[int, int]] = []
        # By first page: the end, and the pages that are there without a fault.
        self._taken: dict[int, tuple[int, int]] = {}
        # The first page of the block at the heap's end; -1 if there is something else.
        self._last = -1

    def take(self, block: Limits, outcome: Outcome) -> None:
        """Put a new block into a free one, or else at the heap's end."""
        if not self._fill(block, outcome):
            self._last = block.first

    def extend(self, heap: Limits, outcome: Outcome) -> None:
        """Take what the heap has grown by from a free block, or else from the heap's end."""
        if not self._fill(heap, outcome):
            self._last = -1

    def grow(self, block: Limits, grown: Limits, touched: int, outcome: Outcome) -> None:
        """Let realloc(3) copy a block of which so much was touched, if it is not the last."""
        if block.first == self._last:
            self._last = grown.first
            return
        self.give_back(block, touched, outcome)
        outcome.saved -= touched
        self.take(grown, outcome)

    def give_back(self, block: Limits, touched: int, outcome: Outcome) -> None:
        """Keep a block of which so many pages were touched since it was taken."""
        _, taken = self._taken.pop(block.first, (0, 0))
        outcome.saved += min(taken, touched)
        there = max(taken, touched)
        insort(self._free, (block.end - block.first, there))
        outcome.bring(there)
        if block.first == self._last:
            self._last = -1

    def _fill(self, block: Limits, outcome: Outcome) -> bool:
        """Put a block into the smallest free one in which there is room; tell whether there is."""
        pages = block.end - block.first
        at = bisect_left(self._free, (pages, 0))
        if at == len(self._free):
            return False
        size, there = self._free.pop(at)
        taken = min(there, pages)
        if size > pages:
            insort(self._free, (size - pages, there - taken))
        self._taken[block.first] = block.end, taken
        outcome.bring(-taken)
        return True

    def close(self, touched: Callable[[int, int], int], outcome: Outcome) -> None:
        """End the process; `touched` counts the pages with faults from one to before another."""
        for first, (end, taken) in self._taken.items():
            outcome.saved += min(taken, touched(first, end))
        outcome.bring(-sum(there for _, there in self._free))
        self._taken.clear()
        self._free.clear()
