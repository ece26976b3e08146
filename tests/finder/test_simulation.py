# SPDX-License-Identifier: GPL-2.0
"""What remedies save by simulation, set beside what kernels count for the same writes.

The numbers of fault-ahead are those of linux/tools/testing/selftests/mm/fault_ahead.c,
as a guest prints them.
"""

from __future__ import annotations

import pytest

from firsttouch.finder.blocks import Limits
from firsttouch.finder.simulation import Simulation
from firsttouch.finder.worlds import Ahead, Large, Outcome, World, large

BLOCK = 512
PAGES = 1024
START = 64 * BLOCK
LIMITS = Limits(START, START + 4 * BLOCK)


def replay(
    world: type[World],
    touches: list[tuple[int, bool]],
    limits: Limits = LIMITS,
    *,
    thread: int = 1,
) -> tuple[int, Outcome]:
    """Return the faults that are left of touches, each a page and whether it is written."""
    outcome = Outcome()
    simulation = Simulation(BLOCK, (world(outcome, BLOCK),))
    read: set[int] = set()
    for page, write in touches:
        missing = page not in read
        simulation.fault(page, thread, limits, write=write, missing=missing)
        if not write:
            read.add(page)
    simulation.close()
    return len(touches) - outcome.saved, outcome


def writes(pages: range) -> list[tuple[int, bool]]:
    return [(START + page, True) for page in pages]


def test_each_page_takes_a_fault_without_a_remedy() -> None:
    assert replay(World, writes(range(PAGES))) == (PAGES, Outcome())


@pytest.mark.parametrize(
    ("pages", "left"),
    [
        (range(PAGES), 69),
        (range(PAGES - 1, -1, -1), 69),
        (range(0, PAGES, 2), PAGES // 2),
    ],
    ids=["upwards", "downwards", "every other page"],
)
def test_fault_ahead_takes_the_faults_that_its_selftest_counts(pages: range, left: int) -> None:
    taken, outcome = replay(Ahead, writes(pages))
    assert taken == left
    assert outcome.most <= 15


def test_fault_ahead_takes_a_few_faults_more_where_each_page_is_read_first() -> None:
    touches = [(START + page, write) for page in range(PAGES) for write in (False, True)]
    taken, _ = replay(Ahead, touches)
    assert taken == 2 * 69


@pytest.mark.parametrize(
    ("again", "left"),
    [
        # All of the block was given back, and a huge page comes at the next touch.
        ([range(BLOCK)], 2),
        ([range(BLOCK - 1, -1, -1), range(BLOCK)], 3),
        # A half was: the other half is still there.
        ([range(BLOCK // 2)], 1 + BLOCK // 2),
        ([range(BLOCK // 2), range(BLOCK // 2)], 1 + BLOCK),
        # First a half, then all.
        ([range(BLOCK // 2), range(BLOCK)], 2 + BLOCK // 2),
    ],
)
def test_a_huge_page_comes_again_where_all_of_its_block_was_given_back(
    again: list[range], left: int
) -> None:
    touches = [touch for pages in (range(BLOCK), *again) for touch in writes(pages)]
    assert replay(large(9, whole=True), touches)[0] == left


@pytest.mark.parametrize(("times", "left"), [(0, 8), (1, 8 + 4), (2, 12 + 12), (3, 24 + 12)])
def test_a_heap_shrinks_as_far_as_the_last_time(times: int, left: int) -> None:
    """First the whole folio is taken for gone in which it ends, then seven pages are there."""
    outcome = Outcome()
    simulation = Simulation(BLOCK, (large(4)(outcome, BLOCK),))
    again = [*range(128), *[*range(71, 128)] * times]
    for page in again:
        if page == 71:
            simulation.regrow()
        heap = Limits(START, START + 128, heap=True)
        simulation.fault(START + page, 1, heap, write=True, missing=True)
    simulation.close()
    assert len(again) - outcome.saved == left


def test_fault_ahead_leaves_zero_pages_ahead_of_a_write() -> None:
    reads = [(START + page, False) for page in range(PAGES)]
    taken, _ = replay(Ahead, reads + writes(range(PAGES)))
    assert taken == 2 * PAGES


@pytest.mark.parametrize(
    ("world", "pages", "limits", "left", "spare"),
    [
        (large(4), range(PAGES), LIMITS, PAGES // 16, 15),
        (large(4), range(0, PAGES, 16), LIMITS, PAGES // 16, 15 * PAGES // 16),
        # 8 pages before the first boundary, and 8 behind the last.
        (large(4), range(8, 40), Limits(START + 8, START + 40), 8 + 1 + 8, 15),
        (large(9, whole=True), range(PAGES), LIMITS, 2, 511),
        (large(9, whole=True), range(10), Limits(START, START + 100), 10, 0),
    ],
    ids=["all", "sparse", "ends of the mapping", "2 MiB", "a mapping that is too small"],
)
def test_huge_pages_come_where_they_fit(
    world: type[Large], pages: range, limits: Limits, left: int, spare: int
) -> None:
    taken, outcome = replay(world, writes(pages), limits)
    assert (taken, outcome.most) == (left, spare)


def test_an_allocator_moves_the_end_of_the_heap_by_huge_pages() -> None:
    """The kernel sees a heap that grows by 33 pages, the allocator the blocks behind it."""
    first, pages = START + 100, 3 * BLOCK - 100
    left = {}
    for whole_heap in (False, True):
        outcome = Outcome()
        world = large(9, whole=True, whole_heap=whole_heap)
        simulation = Simulation(BLOCK, (world(outcome, BLOCK),))
        for page in range(pages):
            limits = Limits(first, first + (page // 33 + 1) * 33, heap=True)
            if page % 33 == 0:
                simulation.map(Limits(first + page, limits.end, heap=True))
            simulation.fault(first + page, 1, limits, write=True, missing=True)
        simulation.close()
        left[whole_heap] = pages - outcome.saved
    # Without it a block is not in the mapping when it is touched first.
    assert left == {False: pages, True: BLOCK - 100 + BLOCK + 1}


def test_a_zero_page_is_in_the_way_of_a_smaller_huge_page_and_replaced_by_one_of_2_mib() -> None:
    reads = [(START + page, False) for page in range(16)]
    touches = reads + writes(range(16))
    assert replay(large(4), touches)[0] == 32
    assert replay(large(9, whole=True), touches)[0] == 2


def test_what_is_given_back_comes_again_in_all_worlds() -> None:
    outcome = Outcome()
    simulation = Simulation(BLOCK, (large(4)(outcome, BLOCK),))
    for _ in range(3):
        for page, write in writes(range(64)):
            simulation.fault(page, 1, LIMITS, write=write, missing=True)
        simulation.map(LIMITS)
    simulation.close()
    assert outcome.saved == 3 * (64 - 4)
    assert outcome.spare == 0


def test_who_forbids_huge_pages_has_had_none() -> None:
    outcome = Outcome()
    simulation = Simulation(BLOCK, (large(4)(outcome, BLOCK),))
    for page, write in writes(range(64)):
        if page == START + 40:
            simulation.forbid_huge()
        simulation.fault(page, 1, LIMITS, write=write, missing=True)
    simulation.close()
    assert (outcome.saved, outcome.spare) == (0, 0)


@pytest.mark.parametrize("world", [Ahead, large(4), large(9, whole=True)])
def test_what_a_call_gives_back_is_as_new(world: type[World]) -> None:
    """A part of it, too, which no fault would tell."""
    outcome = Outcome()
    simulation = Simulation(BLOCK, (world(outcome, BLOCK),))
    for pages in (range(BLOCK), range(BLOCK), range(16)):
        for page in pages:
            simulation.fault(START + page, 1, LIMITS, write=True, missing=True)
        simulation.give_back(LIMITS)
    simulation.close()
    new = [replay(world, writes(range(n)))[0] for n in (BLOCK, BLOCK, 16)]
    assert 2 * BLOCK + 16 - outcome.saved == pytest.approx(sum(new), abs=3)


def test_what_mremap_moves_leaves_no_room_for_a_huge_page_but_what_follows_does() -> None:
    outcome = Outcome()
    simulation = Simulation(BLOCK, (large(9, whole=True)(outcome, BLOCK),))
    few = BLOCK // 4
    small, target = Limits(START + 7, START + 7 + few), START + 64 * BLOCK
    for page in range(small.first, small.end):
        simulation.fault(page, 1, small, write=True, missing=True)
    simulation.move(small.first, few, target)
    grown = Limits(target, target + 2 * BLOCK)
    for page in range(target + few, grown.end):
        simulation.fault(page, 1, grown, write=True, missing=True)
    simulation.close()
    # Each page of the first block takes a fault, and the second block one.
    assert outcome.saved == BLOCK - 1


@pytest.mark.parametrize(
    ("heap", "again", "saved"),
    [(33, True, 66), (33, False, 0), (BLOCK - 65, True, 0), (0, True, 0)],
)
def test_a_block_for_which_a_heap_of_huge_pages_has_room_stays_there(
    heap: int, again: bool, saved: int
) -> None:
    """Unless what is mapped there next is not malloc's."""
    outcome = Outcome()
    world = large(9, whole=True, whole_heap=True)(outcome, BLOCK)
    simulation = Simulation(BLOCK, (world,))
    if heap:
        simulation.map(Limits(START, START + heap, heap=True))
    block = Limits(START + 8 * BLOCK, START + 8 * BLOCK + 66)
    for malloc in (True, again):
        simulation.map(block)
        simulation.begin(block, malloc=malloc)
        for page in range(block.first, block.end):
            simulation.fault(page, 1, block, write=True, missing=True)
        simulation.give_back(block)
    simulation.close()
    assert outcome.saved == saved


def test_a_block_that_grows_leaves_its_room() -> None:
    outcome = Outcome()
    world = large(9, whole=True, whole_heap=True)(outcome, BLOCK)
    simulation = Simulation(BLOCK, (world,))
    simulation.map(Limits(START, START + BLOCK // 2, heap=True))
    for number in range(1, 9):
        block = START + number * BLOCK
        simulation.begin(Limits(block, block + BLOCK // 4), malloc=True)
        # Larger than the room.
        simulation.begin(Limits(block, block + BLOCK), malloc=True)
    last = Limits(START + 20 * BLOCK, START + 20 * BLOCK + BLOCK // 2)
    for _ in range(2):
        simulation.begin(last, malloc=True)
        simulation.fault(last.first, 1, last, write=True, missing=True)
        simulation.give_back(last)
    simulation.close()
    assert outcome.saved == 1


QUARTER = BLOCK // 4


@pytest.mark.parametrize(
    ("heap", "moved", "saved"),
    [
        # The heap's first 2 MiB have small pages.
        (QUARTER, 0, 0),
        # In the heap's last huge page there is room for three.
        (BLOCK + QUARTER, 0, 3 * QUARTER),
        # What moves is copied, and leaves a hole that is too small for it.
        (BLOCK + QUARTER, 1, 2 * QUARTER),
        (BLOCK + QUARTER, 3, 0),
    ],
)
def test_blocks_in_a_huge_page_of_the_heap_take_no_faults(
    heap: int, moved: int, saved: int
) -> None:
    outcome = Outcome()
    world = large(9, whole=True, whole_heap=True)(outcome, BLOCK)
    simulation = Simulation(BLOCK, (world,))
    simulation.map(Limits(START, START + heap, heap=True))
    for number in range(5):
        first = START + (9 + 2 * number) * BLOCK
        block = Limits(first, first + QUARTER)
        simulation.map(block)
        simulation.begin(block, malloc=True)
        simulation.writes(first // BLOCK, (1 << QUARTER) - 1, 1, block)
        if number < moved:
            simulation.move(first, QUARTER, first + 99 * BLOCK)
    simulation.close()
    assert outcome.saved == saved
