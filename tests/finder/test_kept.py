# SPDX-License-Identifier: GPL-2.0
"""Which of malloc's large blocks come out of those that it would have kept."""

from __future__ import annotations

import pytest

from firsttouch.finder.blocks import Limits
from firsttouch.finder.kept import KeptBlocks
from firsttouch.finder.worlds import Outcome


def block(number: int, pages: int = 100) -> Limits:
    return Limits(1000 * number, 1000 * number + pages)


@pytest.mark.parametrize(
    ("freed", "taken", "saved"),
    [
        ([(100, 100)], [100], 100),
        # Fewer pages were touched than the block has, or are touched in the next.
        ([(100, 60)], [100], 60),
        ([(100, 100)], [40], 40),
        # What is left over is free, and what is larger than all finds no room.
        ([(100, 100)], [40, 60], 100),
        ([(100, 100)], [40, 61], 40),
        ([(100, 100)], [101], 0),
        # Two that are free are not joined.
        ([(50, 50), (50, 50)], [100], 0),
        # The smallest that is large enough, so that the other is there for the last.
        ([(100, 100), (60, 60)], [60, 100], 160),
    ],
)
def test_a_block_comes_out_of_the_smallest_free_one(
    freed: list[tuple[int, int]], taken: list[int], saved: int
) -> None:
    blocks, outcome = KeptBlocks(), Outcome()
    for number, (size, touched) in enumerate(freed):
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
    assert outcome.saved == 110


@pytest.mark.parametrize(
    ("between", "copied"),
    [
        ("", 0),
        # A block that finds room before it, and the heap, leave it at the heap's end.
        ("taken from a free block", 0),
        ("heap in a free block", 0),
        ("block", 100),
        ("heap", 100),
    ],
)
def test_a_block_at_the_heaps_end_grows_without_a_copy(between: str, copied: int) -> None:
    blocks, outcome = KeptBlocks(), Outcome()
    if "free block" in between:
        blocks.give_back(block(0), 0, outcome)
    blocks.take(block(1, 101), outcome)
    if between.startswith("heap"):
        blocks.extend(block(2), outcome)
    elif between:
        blocks.take(block(2), outcome)
    blocks.grow(block(1, 101), block(1, 201), 100, outcome)
    # It is at the end in any case now, also where it moved to.
    blocks.grow(block(1, 201), block(3, 301), 200, outcome)
    assert outcome.saved == -copied
