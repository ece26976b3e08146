# SPDX-License-Identifier: GPL-2.0
"""Sets of pages: by block, a number whose bit n is the block's page n; or as a few ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple


class Limits(NamedTuple):
    """The first page of a mapping, and the first behind it; `heap`: brk(2) may move that."""

    first: int
    end: int
    heap: bool = False


def blocks_of(
    limits: Limits, size: int, touched: Collection[int] | None = None
) -> Iterator[tuple[int, int]]:
    """Yield the blocks of `size` pages between limits, and which of their pages are there.

    If `touched` is given, only the blocks in it, however far apart the limits are.
    """
    span = range(limits.first // size, (limits.end - 1) // size + 1)
    blocks: Iterable[int] = span
    if touched is not None:
        shorter, longer = (touched, span) if len(span) > len(touched) else (span, touched)
        blocks = [block for block in shorter if block in longer]
    every = (1 << size) - 1
    for block in blocks:
        low = limits.first - block * size
        high = limits.end - block * size
        if low <= 0 and high >= size:
            yield block, every
        else:
            yield block, (1 << min(high, size)) - (1 << max(low, 0))


def pages_in(pages_of: Mapping[int, int], first: int, end: int, size: int) -> int:
    """Return how many pages of a set are from the first to before the end."""
    inside = blocks_of(Limits(first, end), size, pages_of)
    return sum((pages & pages_of[block]).bit_count() for block, pages in inside)


def move_pages(pages_of: dict[int, int], first: int, count: int, to: int, size: int) -> None:
    """Move the pages of `count` from the first on in a set with blocks of `size` pages.

    A list that grows is moved often, so this does by itself what `blocks_of` does.
    """
    every = (1 << size) - 1
    low, begin = divmod(first, size)
    high, last = divmod(first + count - 1, size)
    if len(pages_of) < high - low:
        inside = [block for block in pages_of if low <= block <= high]
    else:
        inside = [block for block in range(low, high + 1) if block in pages_of]
    # All blocks move as far: by whole blocks, and by some pages.
    blocks, pages = divmod(to - first, size)
    moved: dict[int, int] = {}
    for block in inside:
        there = pages_of.pop(block)
        if block in (low, high):
            part = (2 << last if block == high else every + 1) - (1 << begin if block == low else 1)
            if stays := there & ~part:
                pages_of[block] = stays
            there &= part
        if not there:
            continue
        there <<= pages
        target = block + blocks
        moved[target] = moved.get(target, 0) | there & every
        if behind := there >> size:
            moved[target + 1] = moved.get(target + 1, 0) | behind
    for block, there in moved.items():
        if there:
            pages_of[block] = pages_of.get(block, 0) | there


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
