# SPDX-License-Identifier: GPL-2.0
"""Which upgraded pages were in vain, from faults and watched pages made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from firsttouch.finder.doubles import find
from firsttouch.finder.found import Found
from firsttouch.finder.records import open_recording
from firsttouch.finder.vain import Page, Vain, Watch, pages_in_vain

UP = True
V, P = 0x1000, 0x7003


def found(*faults: tuple[int, bool], spaces: tuple[int, ...] = ()) -> Found:
    """Return faults, in order: the number of the page and whether the kernel upgraded it."""
    made = Found()
    for row, (page, upgraded) in enumerate(faults):
        made.faults.page.append(page)
        made.faults.space.append(spaces[row] if spaces else 0)
        if upgraded:
            made.upgrades.add(row)
    return made


CASES = {
    "never written": ([(V, UP)], [Page(V, P, 1, 1, False)], (1, 0)),
    "written": ([(V, UP)], [Page(V, P, 1, 1, True)], (0, 0)),
    "no upgrade": ([(V, False)], [Page(V, P, 1, 1, False)], (0, 0)),
    "freed, and allocated again for a write": (
        [(V, UP), (V, False)],
        [Page(V, P, 1, 2, None)],
        (0, 1),
    ),
    "freed, and its place upgraded again and written": (
        [(V, UP), (V, UP)],
        [Page(V, P, 1, 1, False), Page(V, P, 2, 2, True)],
        (1, 0),
    ),
    "freed, and another's": (
        [(V, UP), (V + 9, False)],
        [Page(V, P, 1, 1, False), Page(V + 9, P, 1, 1, True)],
        (1, 0),
    ),
    "moved by mremap, then written": (
        [(V, UP)],
        [Page(V, P, 1, 1, False), Page(V + 9, P, 0, 0, True)],
        (0, 0),
    ),
    "a child wrote to its copy": (
        [(V, UP), (V, False)],
        [Page(V, P, 1, 1, False), Page(V, P + 1, 2, 2, True)],
        (1, 0),
    ),
    "another process at the same address before": (
        [(V, False), (V, UP)],
        [Page(V, P + 1, 1, 1, True), Page(V, P, 2, 2, False)],
        (1, 0),
    ),
    "a fault that the PMU did not see": (
        [(V, UP), (V, False)],
        [Page(V, P, 1, 1, False)],
        (0, 1),
    ),
    "an access that never came": ([(V, UP)], [], (0, 1)),
    "written by DC ZVA at this address": (
        [(V, UP)],
        [Page(V, P, 1, 1, False), Page(V, None, 0, 1, True)],
        (0, 1),
    ),
    "a page in phase, and its neighbour": (
        [(0x1000, UP), (0x1001, UP)],
        [Page(0x1000, 0x7000, 1, 1, False), Page(0x1001, 0x7001, 1, 1, True)],
        (1, 0),
    ),
    "a huge page": (
        [(0x1001, UP)],
        [Page(0x1001, 0x7001, 1, 1, False), Page(0x1080, 0x7080, 0, 0, False)],
        (512, 0),
    ),
    "a huge page, written at its end": (
        [(0x1001, UP)],
        [Page(0x1001, 0x7001, 1, 1, False), Page(0x11FF, 0x71FF, 0, 0, True)],
        (0, 0),
    ),
    "a huge page beside memory that is written": (
        [(0x1001, UP), (0x1200, False)],
        [Page(0x1001, 0x7001, 1, 1, False), Page(0x1200, 0x7200, 1, 1, True)],
        (512, 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_in_vain(name: str) -> None:
    faults, pages, (in_vain, unsure) = CASES[name]
    assert pages_in_vain(found(*faults), Watch(tuple(pages), 7)) == Vain(in_vain, unsure, 7)


def test_another_space_in_the_block_does_not_make_a_huge_page_small() -> None:
    faults = found((0x1001, UP), (0x1002, False), spaces=(0, 1))
    pages = (Page(0x1001, 0x7001, 1, 1, False), Page(0x1002, 0x9000, 1, 1, True))
    assert pages_in_vain(faults, Watch(pages, 0)) == Vain(512, 0, 0)


def test_a_recording_tells_which_faults_were_upgraded(tmp_path: Path) -> None:
    """Two faults of a page, the first upgraded twice: the kernel asked for a huge page, too."""

    def record(kind: int, misc: int, body: bytes) -> bytes:
        return struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def fault(time: int, address: int) -> bytes:
        return record(9, 2, struct.pack("<QIIQQ", 0x400, 7, 7, time, address))

    def upgrade(time: int, address: int) -> bytes:
        return record(108, 0, struct.pack("<IIQQ", 7, 7, time, address))

    page = 0x5000
    file = tmp_path / "data"
    file.write_bytes(
        b"FTTRACE1"
        + record(100, 0, struct.pack("<IIIIQQ", 16, 183, 4096, 7, 0, 65536))
        + b"".join((upgrade(2, page + 8), upgrade(3, page + 8), fault(1, page + 8)))
        + b"".join((fault(4, page), fault(5, 2 * page), upgrade(6, 3 * page)))
    )
    recording = open_recording(file)
    assert recording.upgrades
    assert find(recording, tmp_path).upgrades == {0}
