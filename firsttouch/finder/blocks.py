# SPDX-License-Identifier: GPL-2.0
"""Sets of pages: by block of them, a number whose bit n is the block's page n."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple


class Limits(NamedTuple):
    """The first page of a mapping, and the first behind it; `heap`: brk(2) may move that.

    Of memory that was `moved` the pages that came with it are not known, nor quite the end.
    """

    first: int
    end: int
    heap: bool = False
    moved: bool = False


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
