# SPDX-License-Identifier: GPL-2.0
"""What a record of a mapping says about the pages that were there before."""

import pytest

from firsttouch.trace.events import Mapped
from firsttouch.trace.spaces import Place, Space, is_anonymous, memory_kind, place_of

READ, READ_WRITE, PRIVATE, SHARED = 1, 3, 2, 1
ANON = "//anon"


def mapped(
    start: int, end: int, path: str = ANON, *, prot: int = READ_WRITE, offset: int | None = None
) -> Mapped:
    return Mapped(0, 1, start, end, start if offset is None else offset, prot, PRIVATE, path)


def pages(first: int, end: int, path: str = ANON, at: int | None = None, prot: int = 3) -> Mapped:
    offset = None if at is None else at << 12
    return mapped(first << 12, end << 12, path, prot=prot, offset=offset)


# What is mapped, what is mapped then, and the pages that are new by it.
CASES = {
    "new": ([], pages(1, 5), [(1, 5)]),
    "grown at its end": ([pages(1, 3)], pages(1, 5), [(3, 5)]),
    "grown at its start": ([pages(3, 5)], pages(1, 5), [(1, 3)]),
    "two that merge": ([pages(1, 2), pages(4, 5)], pages(1, 6), [(2, 4), (5, 6)]),
    "mapped again": ([pages(1, 5)], pages(1, 5), [(1, 5)]),
    "a part mapped again": ([pages(1, 5)], pages(2, 3), [(2, 3)]),
    "a hole that is filled": ([pages(1, 2), pages(4, 5)], pages(1, 5), [(2, 4)]),
    "protected": ([pages(1, 5)], pages(2, 3, prot=READ), []),
    "heap that shrank and grew": ([pages(1, 5, "[heap]")], pages(1, 4, "[heap]"), []),
    "a file over memory": ([pages(1, 5)], pages(1, 5, "/lib/x", 0), [(1, 5)]),
    "another part of the file": ([pages(1, 5, "/x", 0)], pages(2, 3, "/x", 9), [(2, 3)]),
    "the same part, protected": ([pages(1, 5, "/x", 0)], pages(2, 3, "/x", 1, READ), []),
}


@pytest.mark.parametrize("name", CASES)
def test_which_pages_are_new(name: str) -> None:
    before, new, fresh = CASES[name]
    space = Space()
    for mapping in before:
        space.map(mapping)
    assert space.map(new) == [(first << 12, end << 12) for first, end in fresh]
    assert space.at(new.start) == new
    assert space.at(new.end - 1) == new


def test_what_is_mapped_around_a_new_mapping_stays() -> None:
    space = Space()
    space.map(mapped(0x1000, 0x9000, "/lib/x", offset=0))
    space.map(mapped(0x3000, 0x4000))
    left, right = space.at(0x2FFF), space.at(0x4000)
    assert left is not None and (left.path, left.end) == ("/lib/x", 0x3000)
    assert right is not None and (right.path, right.offset) == ("/lib/x", 0x3000)
    assert space.at(0x9000) is None


def test_places_and_kinds_of_memory() -> None:
    space = Space()
    space.map(mapped(0x1000, 0x3000, "/lib/x", offset=0x5000))
    space.map(mapped(0x8000, 0x9000))
    assert place_of(space, 7, 0x1010) == Place("/lib/x", 0x5010, 0)
    space.map(mapped(0xC000, 0xD000, "/lib/y", offset=0)._replace(identity="ab"))
    assert place_of(space, 7, 0xC010) == Place("/lib/y", 0x10, 0, "ab")
    assert place_of(space, 7, 0x8010) == Place("", 0x8010, 7)
    space.map(mapped(0xA000, 0xB000, "[vdso]", offset=0))
    assert place_of(space, 7, 0xA010) == Place("[vdso]", 0x10, 0)
    assert memory_kind(space.at(0x1000)) == "private file"
    assert memory_kind(space.at(0x8000)) == "anonymous"
    shared = mapped(0x1000, 0x2000, "/dev/zero (deleted)")._replace(flags=SHARED)
    assert memory_kind(shared) == "shared"
    assert is_anonymous(None)


def test_what_is_unmapped_is_a_hole_until_it_is_filled() -> None:
    space = Space()
    space.map(mapped(0x1000, 0x9000, "/lib/x", offset=0))
    space.unmap(0x3000, 0x5000)
    left, right = space.at(0x2FFF), space.at(0x5000)
    assert left is not None and (left.start, left.end) == (0x1000, 0x3000)
    assert right is not None and (right.end, right.offset) == (0x9000, 0x4000)
    assert space.map(mapped(0x1000, 0x9000, "/lib/x", offset=0)) == [(0x3000, 0x5000)]


@pytest.mark.parametrize(
    ("to", "new_size", "mapping"),
    [
        (0x10000, 0x4000, (0x10000, 0x14000, 0x1000)),
        (0x10000, 0x1000, (0x10000, 0x11000, 0x1000)),
        # Where it is it grows, and is still one with what is before it.
        (0x2000, 0x8000, (0x1000, 0xA000, 0)),
    ],
)
def test_mremap_moves_a_part_of_a_mapping(
    to: int, new_size: int, mapping: tuple[int, int, int]
) -> None:
    space = Space()
    space.map(mapped(0x1000, 0x9000, offset=0))
    space.move(0x2000, 0x2000, to, new_size)
    moved, behind = space.at(to), space.at(0x8000)
    assert moved is not None and (moved.start, moved.end, moved.offset) == mapping
    assert behind is not None
    if to != 0x2000:
        assert (behind.start, behind.end, behind.offset) == (0x4000, 0x9000, 0x3000)


def test_a_child_has_a_copy() -> None:
    space = Space()
    space.map(mapped(0x1000, 0x2000))
    child = space.copy()
    space.map(mapped(0x5000, 0x6000))
    assert child.at(0x1000) and not child.at(0x5000)


def test_a_stack_grows_below_its_mapping() -> None:
    space = Space()
    space.map(mapped(0x7F0000000000, 0x7F0000021000, "[stack]"))
    assert is_anonymous(space.at(0x7EFFFFFF0000))
    assert space.at(0x7E0000000000) is None
