# SPDX-License-Identifier: GPL-2.0
"""Keeps the blocks that malloc(3) unmaps, as its heap does where a setting forbids to map them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import NamedTuple

from firsttouch.trace.blocks import Limits
from firsttouch.trace.totals import Outcome


class _Part(NamedTuple):
    """Pages of the heap from the first to before the end; `there` of them take no fault."""

    first: int
    end: int
    there: int

    @property
    def size(self) -> int:
        return self.end - self.first


class KeptBlocks:
    """The large blocks of a process, in pages, and where they would be in its heap.

    glibc takes the smallest free part that is large enough, leaves the rest free, and joins
    free neighbours. The heap's pages have numbers from 0 on.
    """

    def __init__(self) -> None:
        # What is free, by first page; the first page by the end; and all by size.
        self._free: dict[int, _Part] = {}
        self._ends: dict[int, int] = {}
        self._sizes: list[tuple[int, int]] = []
        # By first page, as the process has it: a block, or what the heap has grown by.
        self._taken: dict[int, _Part] = {}
        self._end = 0

    def take(self, block: Limits, outcome: Outcome) -> None:
        """Take a new block, or what small ones let the heap grow by."""
        self._taken[block.first] = self._place(block.end - block.first, outcome)

    def grow(self, block: Limits, grown: Limits, touched: int, outcome: Outcome) -> None:
        """Let realloc(3) copy a block of which so much was touched, unless there is room behind."""
        part = self._taken_as(block)
        more = grown.end - grown.first - part.size
        behind = self._free.get(part.end)
        last = (behind or part).end == self._end
        if last or (behind and behind.size >= more):
            added = self._cut(part.end, more, outcome)
            part = _Part(part.first, added.end, part.there + added.there)
        else:
            old, part = part, self._place(grown.end - grown.first, outcome)
            outcome.saved -= touched
            self._release(old, touched, outcome)
        self._taken[grown.first] = part

    def give_back(self, block: Limits, touched: int, outcome: Outcome) -> None:
        """Keep a block of which so many pages were touched since it was taken."""
        self._release(self._taken_as(block), touched, outcome)

    def close(self, touched: Callable[[int, int], int], outcome: Outcome) -> None:
        """End the process; `touched` counts the pages with faults from one to before another."""
        for first, part in self._taken.items():
            outcome.saved += min(part.there, touched(first, first + part.size))
        outcome.bring(-sum(part.there for part in self._free.values()))
        for parts in (self._free, self._ends, self._sizes, self._taken):
            parts.clear()

    def _taken_as(self, block: Limits) -> _Part:
        """Return what a block has of the heap; at its end if it is older than the recording."""
        part = self._taken.pop(block.first, None)
        if part is None:
            part = _Part(self._end, self._end + block.end - block.first, 0)
            self._end = part.end
        return part

    def _place(self, pages: int, outcome: Outcome) -> _Part:
        """Take the free part that fits best, or what is at the heap's end."""
        at = bisect_left(self._sizes, (pages, 0))
        first = self._sizes[at][1] if at < len(self._sizes) else self._ends.get(self._end)
        return self._cut(self._end if first is None else first, pages, outcome)

    def _cut(self, first: int, pages: int, outcome: Outcome) -> _Part:
        """Take pages from the begin of a free part on; at the heap's end there are always more."""
        part = self._remove(first) if first in self._free else _Part(first, first, 0)
        end = first + pages
        there = min(part.there, pages)
        if end < part.end:
            self._add(_Part(end, part.end, part.there - there))
        self._end = max(self._end, end)
        outcome.bring(-there)
        return _Part(first, end, there)

    def _release(self, part: _Part, touched: int, outcome: Outcome) -> None:
        """Keep a part for others, joined with what is free beside it."""
        outcome.saved += min(part.there, touched)
        first, end, there = part.first, part.end, max(part.there, touched)
        outcome.bring(there)
        if first in self._ends:
            before = self._remove(self._ends[first])
            first, there = before.first, there + before.there
        if end in self._free:
            behind = self._remove(end)
            end, there = behind.end, there + behind.there
        self._add(_Part(first, end, there))

    def _add(self, part: _Part) -> None:
        self._free[part.first] = part
        self._ends[part.end] = part.first
        insort(self._sizes, (part.size, part.first))

    def _remove(self, first: int) -> _Part:
        part = self._free.pop(first)
        del self._ends[part.end]
        del self._sizes[bisect_left(self._sizes, (part.size, first))]
        return part
