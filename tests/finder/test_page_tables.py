# SPDX-License-Identifier: GPL-2.0
"""Huge pages of 32 and 512 MiB: those of kernels with pages of 16 and 64 KiB."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from firsttouch.finder.blocks import Limits
from firsttouch.finder.events import Fault
from firsttouch.finder.kernel_rules import rules_of
from firsttouch.finder.kinds import SECOND, ZERO_PAGE
from firsttouch.finder.remedies import FOLIOS, HEAP, largest, table_bytes, worlds_of
from firsttouch.finder.replay import Remedies
from firsttouch.finder.simulation import Simulation
from firsttouch.finder.worlds import Outcome

# Of pages of 16 KiB: those of a block of 2 MiB, and of a page table.
BLOCK, TABLE = 128, 2048
START = 64 * BLOCK


class Program:
    """A program on a kernel with pages of 16 KiB and huge pages of 32 MiB."""

    def __init__(self, *, first: int = 0, end: int = 2 * TABLE) -> None:
        self.outcome = Outcome()
        world = worlds_of(16384)["huge pages of 32 MiB"]
        self.simulation = Simulation(BLOCK, (world(self.outcome, BLOCK),))
        self.limits = Limits(START + first, START + end)
        self.recorded = 0

    def touch(self, pages: range, *, write: bool = True, missing: bool = True) -> None:
        for page in pages:
            self.simulation.fault(START + page, 1, self.limits, write=write, missing=missing)
        self.recorded += len(pages)

    def give_back(self, pages: range) -> None:
        self.simulation.give_back(Limits(START + pages.start, START + pages.stop))

    def left(self) -> int:
        """Return the faults that it would have taken."""
        self.simulation.close()
        return self.recorded - self.outcome.saved


def test_the_first_write_to_a_table_brings_all_of_it() -> None:
    program = Program()
    program.touch(range(TABLE - 5, TABLE + 5))
    assert (program.left(), program.outcome.most) == (2, TABLE - 5 + TABLE - 1)


@pytest.mark.parametrize(("first", "end"), [(1, TABLE), (0, TABLE - 1), (BLOCK, TABLE)])
def test_a_table_that_the_mapping_does_not_fill_gets_none(first: int, end: int) -> None:
    program = Program(first=first, end=end)
    program.touch(range(first, end))
    assert (program.left(), program.outcome.most) == (end - first, 0)


@pytest.mark.parametrize("page_size", [4096, 16384])
@pytest.mark.parametrize("kernel", ["6.12.9-arm64", "6.13.0", ""])
def test_a_read_brings_the_huge_zero_page_which_a_write_replaces(
    page_size: int, kernel: str
) -> None:
    """Before Linux 6.13 it splits it: a guest with pages of 16 KiB took 1 + 2,048 faults."""
    remedies = Remedies(page_size, (2 << 20) // page_size)
    replay, table = remedies.process(rules_of(kernel, "aarch64")), table_bytes(page_size)
    pages = range(table // page_size)
    mapping = Limits(0, len(pages))
    for kind, write in ((ZERO_PAGE, False), (SECOND, True)):
        for page in pages:
            fault = Fault(page, 1, 1, 0, page * page_size, user=True, chain=())
            replay.fault(fault, kind, mapping, write=write, again=False)
    replay.close()
    name = largest(page_size)
    splits = kernel.startswith("6.12")
    left = 2 * len(pages) - remedies.outcomes[name].saved
    assert left == (1 + len(pages) if splits else 2)


@pytest.mark.parametrize(("given", "left"), [(range(BLOCK), BLOCK), (range(TABLE), 1)])
def test_what_is_given_back_comes_page_by_page_but_where_it_is_all(given: range, left: int) -> None:
    program = Program()
    program.touch(range(TABLE))
    program.give_back(given)
    program.touch(given)
    assert program.left() == 1 + left


def test_a_table_that_is_moved_has_its_pages_at_the_new_place() -> None:
    program = Program(end=4 * TABLE)
    program.touch(range(BLOCK))
    program.simulation.move(START, TABLE, START + 2 * TABLE)
    program.touch(range(2 * TABLE + BLOCK, 3 * TABLE))
    program.touch(range(TABLE))
    assert program.left() == 1 + 1


def test_a_child_has_its_parents_pages() -> None:
    program = Program()
    program.touch(range(1))
    child = program.simulation.fork()
    child.fault(START + 1, 2, program.limits, write=True, missing=True)
    child.close()
    assert program.outcome.saved == 1


@pytest.mark.parametrize(
    ("page_size", "names"),
    [
        (4096, ["16 KiB", "32 KiB", "64 KiB", "128 KiB", "2 MiB"]),
        (16384, ["64 KiB", "128 KiB", "2 MiB", "32 MiB"]),
        (65536, ["2 MiB", "512 MiB"]),
    ],
)
def test_each_page_size_has_the_sizes_of_its_kernels(page_size: int, names: list[str]) -> None:
    worlds = worlds_of(page_size)
    assert [name for name in FOLIOS if name in worlds] == [f"huge pages of {n}" for n in names]
    assert FOLIOS[f"huge pages of {names[-1]}"] == table_bytes(page_size)
    # What glibc asks for is replayed for huge pages of 2 MiB.
    assert (HEAP in worlds) == (page_size == 4096)


@pytest.mark.parametrize(
    ("kernel", "machine", "keeps"),
    [
        ("6.12.9-arm64", "aarch64", True),
        ("6.13.0", "x86_64", True),
        ("6.14.0", "x86_64", False),
        ("6.18.3", "aarch64", True),
        ("7.0.0", "aarch64", False),
        ("", "aarch64", False),
    ],
)
@pytest.mark.parametrize("page_size", [4096, 16384])
def test_no_huge_page_comes_where_a_page_table_is_left(
    page_size: int, kernel: str, machine: str, keeps: bool
) -> None:
    """madvise(2) frees it from some release on, munmap(2) always; under a huge page is none."""
    table, block = table_bytes(page_size) // page_size, (2 << 20) // page_size
    name = largest(page_size)
    limits, all_pages = Limits(0, table), range(table)
    for split, mapped in ((True, True), (False, True), (True, False)):
        outcome = Outcome()
        world = worlds_of(page_size)[name](outcome, block)
        world.rules = rules_of(kernel, machine)
        simulation = Simulation(block, (world,))
        parts = [range(1)] * split + [all_pages]
        touched = [all_pages, *parts]
        for pages, given in zip_longest(touched, parts):
            for page in pages:
                simulation.fault(page, 1, limits, write=True, missing=True)
            if given:
                simulation.give_back(Limits(given.start, given.stop), mapped=mapped)
        simulation.close()
        left = sum(map(len, touched)) - outcome.saved
        assert left == 1 + split + (table if keeps and split and mapped else 1)
