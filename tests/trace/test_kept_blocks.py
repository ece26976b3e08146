# SPDX-License-Identifier: GPL-2.0
"""Which of malloc's large blocks come out of those that it would have kept."""

import random
from itertools import pairwise

import pytest

from firsttouch.trace.blocks import Limits
from firsttouch.trace.kept_blocks import KeptBlocks
from firsttouch.trace.totals import Outcome


def block(number: int, pages: int = 100) -> Limits:
    return Limits(1000 * number, 1000 * number + pages)


@pytest.mark.parametrize(
    ("freed", "taken", "saved"),
    [
        ([(100, 100)], [100], 100),
        # Fewer pages were touched than the block has, or are touched in the next.
        ([(100, 60)], [100], 60),
        ([(100, 100)], [40], 40),
        # What is left over is free, and at the heap's end there is more.
        ([(100, 100)], [40, 60], 100),
        ([(100, 100)], [40, 61], 100),
        ([(100, 100)], [101], 100),
        # Between others that is not so.
        ([(100, 100), (1, 0)], [101], 0),
        # Neighbours are joined.
        ([(50, 50), (50, 50), (1, 0)], [100], 100),
        # The smallest that is large enough, so that the other is there for the last.
        ([(100, 100), (1, 0), (60, 60), (1, 0)], [60, 100], 160),
    ],
)
def test_a_block_comes_out_of_the_smallest_free_one(
    freed: list[tuple[int, int]], taken: list[int], saved: int
) -> None:
    """One of which nothing was touched stays."""
    blocks, outcome = KeptBlocks(), Outcome()
    for number, (size, _) in enumerate(freed):
        blocks.take(block(number, size), outcome)
    for number, (size, touched) in enumerate(freed):
        if touched:
            blocks.give_back(block(number, size), touched, outcome)
    assert outcome.most == sum(touched for _, touched in freed)
    for number, size in enumerate(taken):
        blocks.take(block(10 + number, size), outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert (outcome.saved, outcome.spare) == (saved, 0)


def test_a_block_that_was_taken_is_kept_with_what_was_there() -> None:
    blocks, outcome = KeptBlocks(), Outcome()
    blocks.give_back(block(0), 100, outcome)
    blocks.take(block(1), outcome)
    # Only these were written; the others are there all the same.
    blocks.give_back(block(1), 10, outcome)
    assert outcome.saved == 10
    blocks.take(block(2), outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert (outcome.saved, outcome.spare) == (110, 0)


@pytest.mark.parametrize(
    ("freed", "behind", "copied"),
    [
        # At the heap's end there is room, as where the block behind it was given back.
        (0, 0, 0),
        (0, 100, 100),
        (99, 100, 100),
        (100, 100, 0),
    ],
)
def test_a_block_with_room_behind_it_grows_without_a_copy(
    freed: int, behind: int, copied: int
) -> None:
    blocks, outcome = KeptBlocks(), Outcome()
    blocks.take(block(0), outcome)
    if freed:
        blocks.take(block(1, freed), outcome)
    if behind:
        blocks.take(block(2), outcome)
    if freed:
        blocks.give_back(block(1, freed), 0, outcome)
    blocks.grow(block(0), block(3, 200), 100, outcome)
    assert outcome.saved == -copied
    blocks.close(lambda first, end: end - first, outcome)
    assert outcome.spare == 0


def test_blocks_that_grow_in_turn_leave_room_for_each_other() -> None:
    """Copies of all would be of 39,200 pages."""
    blocks, outcome = KeptBlocks(), Outcome()
    for number in (0, 1):
        blocks.take(block(number, 16), outcome)
    for pages in range(16, 800, 16):
        for number in (0, 1):
            blocks.grow(block(number, pages), block(number, pages + 16), pages, outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert -2 * 800 < outcome.saved < 0
    assert outcome.most < 2 * 800


@pytest.mark.parametrize("seed", range(10))
def test_parts_of_the_heap_never_overlap(seed: int) -> None:
    """As many pages are there without a fault as were touched before, however they are taken."""
    dice, blocks, outcome = random.Random(seed), KeptBlocks(), Outcome()
    live: dict[int, int] = {}
    for number in range(400):
        size = dice.randrange(1, 50)
        if live and dice.random() < 0.5:
            chosen = dice.choice(list(live))
            pages = live.pop(chosen)
            if dice.random() < 0.5:
                blocks.give_back(block(chosen, pages), pages, outcome)
                continue
            blocks.grow(block(chosen, pages), block(number, pages + size), pages, outcome)
            live[number] = pages + size
        else:
            blocks.take(block(number, size), outcome)
            live[number] = size
        parts = sorted([*blocks._free.values(), *blocks._taken.values()])
        assert all(a.end <= b.first for a, b in pairwise(parts))
        assert sum(part.size for part in blocks._taken.values()) == sum(live.values())
        assert sum(part.size for part in parts) == blocks._end
        assert sum(part.there for part in blocks._free.values()) == outcome.spare
    blocks.close(lambda first, end: end - first, outcome)
    assert outcome.spare == 0


def test_the_other_threads_of_a_process_go_on_after_its_end() -> None:
    """The first thread may end before them."""
    blocks, outcome = KeptBlocks(), Outcome()
    for number in range(3):
        blocks.take(block(number), outcome)
    blocks.give_back(block(2), 100, outcome)
    blocks.close(lambda first, end: end - first, outcome)
    for number in range(3):
        blocks.give_back(block(number), 100, outcome)
    blocks.take(block(3, 300), outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert (outcome.saved, outcome.spare) == (300, 0)
