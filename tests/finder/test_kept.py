# SPDX-License-Identifier: GPL-2.0
"""Which of malloc's large blocks come out of those that it would have kept."""

from __future__ import annotations

import pytest

from firsttouch.finder.kept import KeptBlocks
from firsttouch.finder.worlds import Outcome


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
        blocks.give_back(1000 * number, 1000 * number + size, touched, outcome)
    assert outcome.most == sum(touched for _, touched in freed)
    for number, size in enumerate(taken):
        blocks.take(5000 + 1000 * number, 5000 + 1000 * number + size, outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert (outcome.saved, outcome.spare) == (saved, 0)


def test_a_block_that_was_taken_is_kept_with_what_was_there() -> None:
    blocks, outcome = KeptBlocks(), Outcome()
    blocks.give_back(0, 100, 100, outcome)
    blocks.take(1000, 1100, outcome)
    # Only these were written; the others are there all the same.
    blocks.give_back(1000, 1100, 10, outcome)
    assert outcome.saved == 10
    blocks.take(2000, 2100, outcome)
    blocks.close(lambda first, end: end - first, outcome)
    assert outcome.saved == 110
