# SPDX-License-Identifier: GPL-2.0
"""A watch of pages in QEMU: which were accessed, and which of them were written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pmu.conftest import HERE, Ran

pytestmark = pytest.mark.long

GUEST = HERE / "guests" / "pages.S"
FIRST = 0x50000
CACHES = ("l1d=32K:4:64:lru",)
# The pages of pages.S in the order of their first accesses, and whether they are written.
# Each is where its address says.
PLACED = [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 0), (7, 0), (9, 1), (10, 0)]
CLEARED = 8
MOVED = [[0x80000, 0x50400, 0, 0, False], [0x80000, 0x50600, 0, 0, True]]
# Then four faults find nothing there: a load begins a new page, a store may not; then both.
FAULTED = [
    [0x80000, 0x50400, 1, 2, None],
    [0x80000, 0x50400, 3, 3, True],
    [0x80000, 0x50400, 4, 4, False],
]


@pytest.mark.parametrize("options", [(), CACHES], ids=["alone", "with caches"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_pages_that_are_written_and_that_are_not(
    run_guest: Callable[..., Ran],
    build_guest: Callable[..., Path],
    options: tuple[str, ...],
    cpus: int,
) -> None:
    smp = ("-smp", str(cpus), "-accel", "tcg,thread=single")
    counts = run_guest(build_guest(GUEST), "pages=on", *options, qemu=smp).counts
    first, second = counts["watches"]
    placed = [[FIRST + page, FIRST + page, 0, 0, written == 1] for page, written in PLACED]
    cleared = [row for row in first["pages"] if row[0] == FIRST + CLEARED]
    assert [row for row in first["pages"] if row not in cleared] == placed + MOVED + FAULTED
    assert second["pages"] == [[FIRST + 1, FIRST + 1, 0, 0, False]]
    if counts["api"]["plugin"] < 2:
        assert (cleared, first["dc_zva_unplaced"]) == ([], 1)
    else:
        ((_, physical, *_, written),) = cleared
        assert physical in (FIRST + CLEARED, None)
        assert (written, first["dc_zva_unplaced"]) == (True, 0)


def test_a_watch_changes_no_count(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path]
) -> None:
    guest = build_guest(GUEST)
    watched = run_guest(guest, "pages=on", *CACHES).counts
    plain = run_guest(guest, *CACHES).counts
    assert "watches" not in plain
    assert watched["whole_run"] == plain["whole_run"]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("-DNO_END", "ended inside a watch of pages"),
        ("-DNO_BEGIN", "a watch of pages ends .* that did not begin"),
    ],
)
def test_unbalanced_markers_fail(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], flag: str, words: str
) -> None:
    ran = run_guest(build_guest(GUEST, flag), "pages=on")
    assert ran.finished.returncode == 1
    assert re.search(words, ran.finished.stderr)
    assert not ran.out.exists()
