# SPDX-License-Identifier: GPL-2.0
"""What is counted of many faults at once is what is counted of each alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from firsttouch.trace.doubles import find
from firsttouch.trace.records import open_recording
from firsttouch.trace.totals import Totals
from tests.trace.test_doubles import (
    AT,
    BRK,
    COPY,
    HUGE,
    LOAD,
    MADVISE,
    MUNMAP,
    PAGE,
    STORE,
    call,
    fork,
    mapping,
    moved,
    sample,
    start,
)

_ROUND = 101
BLOCK = 512


def some_events(seed: int) -> bytes:
    """Return random faults: in runs and alone, on pages that are there, missing and given back."""
    dice = random.Random(seed)
    data = [
        start(),
        # All code is malloc's.
        mapping(0x400000, 0x410000, b"/lib/libc.so.6", 5),
        mapping(AT, AT + HUGE + 20 * PAGE),
        mapping(AT + HUGE + 20 * PAGE, AT + 3 * HUGE, b"[stack]"),
        mapping(AT + 3 * HUGE, AT + 4 * HUGE, b"/lib/some.so"),
    ]
    for _ in range(300):
        # Of the last block no mapping is recorded.
        page = dice.randrange(5 * BLOCK)
        code = dice.choice([STORE, STORE, STORE, LOAD, COPY])
        mapped = dice.choice([0, 0, 0, 0, PAGE, HUGE])
        for step in range(dice.choice([1, 1, 2, 9, 40])):
            address = AT + (page + step * dice.choice([1, 1, 1, 2, -1])) * PAGE
            fault = sample(code, address, mapped, (address, AT))
            # Only the first fault at a pc comes with its code.
            data.append(fault if dice.random() < 0.1 else fault[: -(8 + 16 + 64)])
        if dice.random() < 0.01:
            data.append(fork())
        if dice.random() < 0.05:
            # One that fills a hole, or that the kernel merges with others.
            first = dice.randrange(2 * BLOCK)
            end = first + dice.randrange(1, BLOCK)
            data.append(mapping(AT + first * PAGE, AT + end * PAGE))
        if dice.random() < 0.05:
            start_of, to = (AT + dice.randrange(4 * BLOCK) * PAGE for _ in range(2))
            size = dice.randrange(1, BLOCK) * PAGE
            data.append(
                dice.choice(
                    [
                        call(MUNMAP, start_of, size),
                        call(BRK, start_of),
                        call(MADVISE, start_of, size, 4),
                        call(MADVISE, start_of, size, dice.choice([14, 15])),
                        moved(start_of, to, size),
                    ]
                )
            )
    return b"".join(data)


def compared(totals: Totals) -> tuple[object, ...]:
    largest = totals.largest
    return (
        totals.outcomes, totals.stacks, totals.stack_kinds, totals.pairs, totals.counts,
        totals.filled, totals.timeline.kinds, totals.timeline.last, totals.programs, totals.threads,
        totals.unwritten, totals.givers, totals.anonymous, totals.in_kernel, totals.undecoded,
        largest.faults, largest.pages, largest.kinds,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_a_finder_counts_the_usual_faults_as_all_others(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "trace.data"
    file.write_bytes(some_events(seed))
    # With rows, each fault is taken alone.
    quick, slow = find(open_recording(file)), find(open_recording(file), rows=True)
    assert len(slow.faults.page) == quick.count
    assert quick.anonymous > 1000
    assert compared(quick) == compared(slow)
