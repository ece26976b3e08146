# SPDX-License-Identifier: GPL-2.0
"""Sets of pages by blocks of them are what a set of the same pages is."""

import random

import pytest

from firsttouch.trace.totals import move_pages


@pytest.mark.parametrize("size", [16, 32, 512])
def test_pages_move_as_a_set_of_them_does(size: int) -> None:
    """To where others are, too, over themselves, and from blocks in any order."""
    chance = random.Random(size)
    for _ in range(200):
        first, to = (chance.randrange(10 * size) for _ in range(2))
        moving = range(first, first + chance.randrange(1, 8 * size))
        pages = set(chance.sample(range(12 * size), chance.randrange(12 * size)))
        pages_of: dict[int, int] = {}
        for page in pages:
            pages_of[page // size] = pages_of.get(page // size, 0) | 1 << page % size
        move_pages(pages_of, first, len(moving), to, size)
        there = {
            block * size + number
            for block, mask in pages_of.items()
            for number in range(size)
            if mask >> number & 1
        }
        assert there == {page + to - first if page in moving else page for page in pages}
