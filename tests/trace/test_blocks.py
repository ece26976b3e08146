# SPDX-License-Identifier: GPL-2.0
"""Sets of pages by blocks of them, and ranges, are what a set of the same pages is."""

import random

import pytest

from firsttouch.trace.blocks import Limits, Ranges, move_pages

SIZE, BLOCKS = 16, 8


def test_pages_move_by_any_number() -> None:
    pages_of = {0: 1 | 1 << 511, 1: 1, 5: 8}
    move_pages(pages_of, 1, 512, 3 * 512 + 300, 512)
    assert {block: pages for block, pages in pages_of.items() if pages} == {
        0: 1,
        # Page 511 goes to 1836 + 510, and page 512 behind it.
        4: 0b11 << 298,
        5: 8,
    }


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


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_as_a_set(seed: int) -> None:
    dice = random.Random(seed)
    ranges, pages = Ranges(), set[int]()
    for _ in range(60):
        first, end = sorted(dice.randrange(SIZE * BLOCKS) for _ in range(2))
        if dice.random() < 0.2:
            to = dice.randrange(SIZE * BLOCKS)
            moved = pages & set(range(first, end))
            pages -= {*range(first, end), *range(to, to + end - first)}
            pages |= {page - first + to for page in moved}
            ranges.move(first, end - first, to)
        else:
            marked = dice.random() < 0.6
            pages = pages | set(range(first, end)) if marked else pages - set(range(first, end))
            ranges.mark(Limits(first, end), marked=marked)
        for block in range(2 * BLOCKS):
            inside = sum(1 << page for page in range(SIZE) if block * SIZE + page in pages)
            assert ranges.of_block(block, SIZE) == inside
        assert [page for page in range(2 * SIZE * BLOCKS) if page in ranges] == sorted(pages)
        assert ranges.copy().of_block(1, SIZE) == ranges.of_block(1, SIZE)


def test_a_range_may_be_as_long_as_a_sanitizers_shadow() -> None:
    ranges = Ranges()
    ranges.mark(Limits(0x7FFF8, 0x10007FFF8), marked=True)
    assert ranges.of_block(0x7FFF8 // 512, 512) == (1 << 512) - (1 << 0x1F8)
    assert ranges.of_block(0x8000_0000 // 512, 512) == (1 << 512) - 1
