# SPDX-License-Identifier: GPL-2.0
"""Keeps the blocks that malloc(3) unmaps, as its heap does where a setting forbids to map them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

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

    def take(self, first: int, end: int, outcome: Outcome) -> None:
        """Put a new block into a free one, if there is any; or so much of a heap that grows."""
        at = bisect_left(self._free, (end - first, 0))
        if at == len(self._free):
            return
        size, there = self._free.pop(at)
        taken = min(there, end - first)
        if size > end - first:
            insort(self._free, (size - end + first, there - taken))
        self._taken[first] = end, taken
        outcome.bring(-taken)

    def give_back(self, first: int, end: int, touched: int, outcome: Outcome) -> None:
        """Keep a block of which so many pages were touched since it was taken."""
        _, taken = self._taken.pop(first, (0, 0))
        outcome.saved += min(taken, touched)
        there = max(taken, touched)
        insort(self._free, (end - first, there))
        outcome.bring(there)

    def close(self, touched: Callable[[int, int], int], outcome: Outcome) -> None:
        """End the process; `touched` counts the pages with faults from one to before another."""
        for first, (end, taken) in self._taken.items():
            outcome.saved += min(taken, touched(first, end))
        outcome.bring(-sum(there for _, there in self._free))
        self._taken.clear()
        self._free.clear()
