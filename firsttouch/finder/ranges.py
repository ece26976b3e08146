# SPDX-License-Identifier: GPL-2.0
"""Sets of pages that are a few ranges, of any length."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from firsttouch.finder.blocks import Limits


class Ranges:
    """Pages that are marked, by ranges of them."""

    def __init__(self, edges: Iterable[int] = ()) -> None:
        # In turn the first page of a range, and the first behind it.
        self._edges = list(edges)

    def __contains__(self, page: int) -> bool:
        """Tell whether a page is marked."""
        return bisect_right(self._edges, page) % 2 == 1

    def copy(self) -> Ranges:
        """Return the same ranges."""
        return Ranges(self._edges)

    def mark(self, limits: Limits, *, marked: bool) -> None:
        """Mark the pages between limits, or none of them."""
        if limits.first >= limits.end:
            return
        low = bisect_left(self._edges, limits.first)
        high = bisect_right(self._edges, limits.end)
        # An edge is where what was there before, or is behind, differs.
        begin = [limits.first] if marked != bool(low % 2) else []
        end = [limits.end] if marked != bool(high % 2) else []
        self._edges[low:high] = begin + end

    def of_block(self, block: int, size: int) -> int:
        """Return the marked pages of a block of `size` pages: bit n is its page n."""
        start = block * size
        low = bisect_right(self._edges, start)
        high = bisect_left(self._edges, start + size)
        pages = (1 << size) - 1 if low % 2 else 0
        for edge in self._edges[low:high]:
            # What follows an edge is the other way round.
            pages ^= (1 << size) - (1 << edge - start)
        return pages

    def move(self, first: int, count: int, to: int) -> None:
        """Move `count` pages from the first on, each marked as it is."""
        end = first + count
        low, high = bisect_right(self._edges, first), bisect_left(self._edges, end)
        edges = [first] * (low % 2) + self._edges[low:high] + [end] * (high % 2)
        self.mark(Limits(first, end), marked=False)
        self.mark(Limits(to, to + count), marked=False)
        for begin, behind in zip(edges[::2], edges[1::2], strict=True):
            self.mark(Limits(begin - first + to, behind - first + to), marked=True)
