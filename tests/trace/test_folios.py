# SPDX-License-Identifier: GPL-2.0
"""Where folios of 64 KiB, of 2 MiB, and those of malloc's heap save faults, by a replay."""

import pytest

from firsttouch.trace.events import Mapped
from firsttouch.trace.remedies import BOTH, HEAP, KEEP, MTHP_64, SHARED, THP, Replay, new_outcomes
from firsttouch.trace.totals import Outcome

PAGE, BLOCK = 4096, 512
START = 64 * BLOCK
LIMITS = (START, START + 4 * BLOCK)

# Of each touch: a letter (Read, Write, write after read: Second), the first page and how many.
# G gives pages back, M maps others there, V moves all by so many blocks and pages; F forks.
Touch = tuple[str, int, int]


def left(touches: list[Touch], limits: tuple[int, int] = LIMITS) -> list[tuple[int, int]]:
    """Return the faults left with folios of each size, and by how many pages the peak is higher."""
    outcomes = new_outcomes()
    replay, taken = Replay(outcomes, PAGE), 0
    for what, first, count in touches:
        start, end = ((START + page) * PAGE for page in (first, first + count))
        if what == "G":
            replay.give_back(start, end, "munmap")
        elif what == "M":
            replay.map(start, end, heap=False)
        elif what == "V":
            replay.move(
                START * PAGE, 4 * BLOCK * PAGE, start + first * (BLOCK - 1) * PAGE + count * PAGE,
                4 * BLOCK * PAGE,
            )  # fmt: skip
        elif what == "F":
            parent, replay = replay, replay.fork()
            parent.close()
        else:
            taken += count
            for page in range(START + first, START + first + count):
                replay.touch(page, mapped(limits), write=what != "R", missing=what != "S")
    replay.close()
    assert outcomes[MTHP_64].spare == outcomes[THP].spare == 0
    return [(taken - outcomes[name].saved, outcomes[name].excess) for name in (MTHP_64, THP)]


@pytest.mark.parametrize(
    ("touches", "small", "huge"),
    [
        ([("W", 0, 1024)], (64, 0), (2, 0)),
        ([("W", page, 1) for page in range(0, 1024, 16)], (64, 960), (2, 960)),
        # All of it in any order: folios hold no more than the program in the end.
        ([("W", page * 5 % 1024, 1) for page in range(1024)], (64, 0), (2, 0)),
        # A read brings the huge zero page; a smaller one needs a write.
        ([("R", 0, 16), ("S", 0, 16)], (32, 0), (1, 496)),
        ([("R", 0, 1), ("W", 1, 15)], (16, 0), (1, 496)),
        # All of it is given back, at once or in parts, or a part: the rest has single pages.
        ([("W", 0, 512), ("G", 0, 512), ("W", 0, 512)], (64, 0), (2, 0)),
        ([("W", 0, 512), ("G", 0, 8), ("W", 0, 8)], (32 + 8, 0), (1 + 8, 0)),
        ([("W", 0, 16), ("G", 0, 9), ("G", 9, 7), ("W", 0, 16)], (2, 0), (1 + 16, 496)),
        # No call was recorded: a part of a huge page may have been given back.
        ([("W", 0, 512), ("W", 0, 512)], (64, 0), (1 + 512, 0)),
        ([("W", 0, 512), ("M", 0, 512), ("W", 0, 512)], (64, 0), (2, 0)),
        ([("W", 0, 512), ("M", 8, 504), ("W", 8, 504)], (32 + 8 + 31, 0), (1 + 504, 0)),
        # What a folio has brought moves with it.
        ([("W", 0, 1), ("V", 1, 0), ("W", 513, 15)], (1, 0), (1, 496)),
        ([("W", 0, 1), ("V", 1, 3), ("W", 513, 2), ("W", 516, 15)], (3, 0), (3, 496)),
        ([("W", 0, 1), ("F", 0, 0), ("W", 1, 15)], (16, 0), (16, 496)),
    ],
)
def test_the_first_write_of_an_empty_block_brings_a_folio(
    touches: list[Touch], small: tuple[int, int], huge: tuple[int, int]
) -> None:
    assert left(touches) == [small, huge]


@pytest.mark.parametrize(("first", "end", "faults"), [(8, 40, 8 + 1 + 8), (0, 48, 3), (1, 9, 8)])
def test_a_folio_lies_in_one_mapping(first: int, end: int, faults: int) -> None:
    small, huge = left([("W", first, end - first)], (START + first, START + end))
    assert (small[0], huge[0]) == (faults, end - first)


def mapped(limits: tuple[int, int], page_size: int = PAGE, path: str = "//anon") -> Mapped:
    first, end = (page * page_size for page in limits)
    return Mapped(0, 1, first, end, 0, 3, 2, path)


def touched(
    replay: Replay, limits: tuple[int, int], pages: int | None = None, path: str = "//anon"
) -> None:
    """Touch each page of a mapping once, or the first `pages`."""
    for page in range(*limits)[:pages]:
        replay.touch(page, mapped(limits, path=path), write=True)


@pytest.mark.parametrize(
    ("pages", "saved", "most"),
    [
        # In the first 2 MiB of a heap there is room for the blocks, which are given back.
        ((100, 300), 0, 0),
        ((100, 300, 300), 300, 300),
        # What follows are huge pages, fewer in another run, in which blocks may or may not be.
        ((3 * BLOCK,), BLOCK - 2, 2 * BLOCK - 2),
        ((3 * BLOCK, 100), BLOCK - 2, 2 * BLOCK - 2 + 100),
    ],
)
def test_malloc_has_huge_pages_behind_the_first_of_its_heap(
    pages: tuple[int, ...], saved: int, most: int
) -> None:
    outcomes = new_outcomes()
    replay = Replay(outcomes, PAGE)
    heap = START, START + pages[0]
    replay.map(START * PAGE, heap[1] * PAGE, heap=True)
    touched(replay, heap, path="[heap]")
    for count in pages[1:]:
        first, end = large_block(replay, START * 8 + 1, count)
        touched(replay, (first, end))
        replay.give_back(first * PAGE, end * PAGE, "munmap")
    replay.close()
    heaped = outcomes[HEAP]
    assert heaped.saved == saved
    assert heaped.saved + heaped.chance == pytest.approx(most, abs=1)


def test_a_process_that_forbids_huge_pages_has_had_none() -> None:
    outcomes = new_outcomes()
    replay = Replay(outcomes, PAGE)
    touched(replay, LIMITS)
    replay.forbid_huge()
    for process in (replay.fork(), replay.execute(), replay):
        touched(process, LIMITS)
        process.close()
    assert [outcomes[name] for name in (MTHP_64, THP)] == [
        Outcome(most=outcomes[name].most, own=outcomes[name].own) for name in (MTHP_64, THP)
    ]


@pytest.mark.parametrize(
    ("page_size", "names"),
    [(4096, {MTHP_64, THP, HEAP, BOTH}), (16384, {MTHP_64, THP}), (65536, {THP})],
)
def test_sizes_of_two_pages_are_none(page_size: int, names: set[str]) -> None:
    outcomes = new_outcomes()
    replay, pages = Replay(outcomes, page_size), (2 << 20) // page_size
    heap = mapped((0, 99 * pages), page_size, "[heap]")
    for page in range(8 * pages, 11 * pages):
        replay.touch(page, heap, write=True)
    replay.close()
    assert {name for name, outcome in outcomes.items() if outcome.saved} == names


@pytest.mark.parametrize(
    ("freed", "taken", "saved"),
    [
        ([(100, 100)], [100], 100),
        # Fewer pages were touched than the block has, or are touched in the next.
        ([(100, 60)], [100], 60),
        ([(100, 100)], [40], 40),
        # What is left over is free, and so is the rest of all others.
        ([(100, 100)], [40, 60], 100),
        ([(50, 50), (50, 50)], [101], 100),
        ([(100, 0)], [100], 0),
    ],
)
def test_a_block_takes_the_pages_of_those_that_were_freed(
    freed: list[tuple[int, int]], taken: list[int], saved: int
) -> None:
    outcomes = new_outcomes()
    replay, kept = Replay(outcomes, PAGE), outcomes[KEEP]
    for number, (size, pages) in enumerate(freed):
        touched(replay, large_block(replay, START * number + 1, size), pages)
    for number, (size, _) in enumerate(freed):
        first = (START * number + 1) * PAGE
        replay.give_back(first, first + size * PAGE, "munmap")
    assert kept.most == sum(pages for _, pages in freed)
    for number, size in enumerate(taken, len(freed)):
        touched(replay, large_block(replay, START * number + 1, size))
    replay.close()
    assert (kept.saved, kept.spare) == (saved, 0)


def large_block(replay: Replay, first: int, pages: int) -> tuple[int, int]:
    """Let malloc(3) map a block, a heap of a thread at 64 MiB or more; return its limits."""
    limits = first, first + pages
    replay.map(first * PAGE, limits[1] * PAGE, heap=False)
    replay.begin(first * PAGE, mapped(limits), allocator=True)
    return limits


def test_threads_share_a_heap_or_have_their_own() -> None:
    outcomes = new_outcomes()
    replay = Replay(outcomes, PAGE)
    for first, pages in ((1 << 20, 300), (2 << 20, 300), (1, 50)):
        touched(replay, large_block(replay, first, pages))
    replay.close()
    assert {(outcomes[name].saved, outcomes[name].chance) for name in (KEEP, BOTH)} == {(0, 350)}


def test_a_block_that_moves_keeps_its_pages_and_takes_others() -> None:
    outcomes = new_outcomes()
    replay, kept = Replay(outcomes, PAGE), outcomes[KEEP]
    for first, pages in ((1, 100), (1000, 40)):
        touched(replay, large_block(replay, first, pages))
        if first == 1:
            replay.give_back(PAGE, 101 * PAGE, "munmap")
    replay.move(1000 * PAGE, 40 * PAGE, 5000 * PAGE, 200 * PAGE)
    touched(replay, (5040, 5200))
    # Of one that shrinks the end is free, and what is freed where it was is not malloc's.
    for first, end in ((5100, 5200), (1000, 1040)):
        replay.give_back(first * PAGE, end * PAGE, "munmap")
    assert kept.spare == 100
    replay.close()
    assert kept.saved == 100


def test_a_block_with_freed_pages_is_cleared_before_it_is_read() -> None:
    outcomes = new_outcomes()
    replay = Replay(outcomes, PAGE)
    touched(replay, large_block(replay, 1, 10))
    replay.give_back(PAGE, 11 * PAGE, "munmap")
    limits = large_block(replay, 100, 20)
    for write in (False, True):
        for page in range(*limits):
            replay.touch(page, mapped(limits), write=write, missing=not write)
    replay.close()
    assert outcomes[KEEP].saved == 10 + 20


def test_each_process_maps_a_huge_page_of_shared_memory_by_one_fault() -> None:
    outcomes = new_outcomes()
    parent = Replay(outcomes, PAGE)
    # Two blocks, and a page of a third one, which the mapping does not have as a whole.
    size = (2 * BLOCK + 1) * PAGE
    memory = Mapped(1, 1, 1 << 30, (1 << 30) + size, 0, 3, 1, "/memfd:ring", "inode 7")
    for replay, pages in ((parent, 1), (parent.fork().execute(), 2)):
        for address in range(memory.start, memory.end, pages * PAGE):
            replay.share(address, memory)
    assert outcomes[SHARED].saved == 3 * BLOCK - 4
    assert (outcomes[SHARED].spare, outcomes[SHARED].most) == (0, BLOCK - 1)
