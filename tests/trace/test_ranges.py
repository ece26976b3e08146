# SPDX-License-Identifier: GPL-2.0
"""Ranges of pages are what a set of the same pages is."""

import random

import pytest

from firsttouch.trace.blocks import Limits, Ranges

SIZE, BLOCKS = 16, 8


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
