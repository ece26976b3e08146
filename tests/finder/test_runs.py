# SPDX-License-Identifier: GPL-2.0
"""What is counted of many faults at once is what is counted of each alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from firsttouch.finder.blocks import Limits
from firsttouch.finder.doubles import find
from firsttouch.finder.records import open_recording
from firsttouch.finder.simulation import Simulation
from firsttouch.finder.totals import Totals
from firsttouch.finder.worlds import Ahead, Outcome, World, large
from tests.finder.test_doubles import (
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


@pytest.mark.parametrize(
    "world",
    [World, Ahead, large(2), large(4), large(9, whole=True), large(9, whole=True, whole_heap=True)],
)
@pytest.mark.parametrize("seed", range(20))
def test_a_world_serves_writes_at_once_as_each_alone(world: type[World], seed: int) -> None:
    dice = random.Random(seed)
    outcomes = Outcome(), Outcome()
    at_once, alone = (Simulation(BLOCK, (world(outcome, BLOCK),)) for outcome in outcomes)
    for _ in range(200):
        block = dice.randrange(3)
        bounds = [(0, 3 * BLOCK), (block * BLOCK, block * BLOCK + BLOCK), (100, 1300)]
        limits = Limits(*dice.choice(bounds), dice.random() < 0.5)
        inside = range(max(limits[0], block * BLOCK), min(limits[1], (block + 1) * BLOCK))
        pages = sorted(dice.sample(inside, dice.choice([1, 2, 40])))
        if dice.random() < 0.5:
            pages = list(inside[dice.randrange(len(inside)) :][: dice.choice([4, 40])])
        thread = dice.randrange(2)
        if dice.random() < 0.1:
            for simulation in (at_once, alone):
                simulation.map(Limits(block * BLOCK, (block + 1) * BLOCK))
        if dice.random() < 0.1:
            for simulation in (at_once, alone):
                simulation.regrow()
        if dice.random() < 0.2:
            for simulation in (at_once, alone):
                simulation.fault(pages[0], thread, limits, write=False, missing=True)
        at_once.writes(block, sum(1 << page % BLOCK for page in pages), thread, limits)
        for page in pages:
            alone.fault(page, thread, limits, write=True, missing=True)
        assert outcomes[0] == outcomes[1]
    for simulation in (at_once, alone):
        simulation.close()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].saved or world is World
