# SPDX-License-Identifier: GPL-2.0
"""What a process says of a fault's chain of calls, and whose it takes a mapping for."""

from __future__ import annotations

import pytest

from firsttouch.trace.events import Call, Fault
from firsttouch.trace.kinds import UNKNOWN
from firsttouch.trace.process import Process
from firsttouch.trace.remedies import Replay, new_outcomes
from firsttouch.trace.spaces import Place
from tests.trace.test_spaces import mapped

CODE, DATA, JIT, NOWHERE = 0x1000, 0x3000, 0x5000, 0x9000
READ_EXECUTE, ALL = 5, 7
FILE = Place("/bin/true", CODE, 0)


@pytest.mark.parametrize(
    ("chain", "places"),
    [
        ((CODE, JIT), (FILE, Place("", JIT, 1))),
        ((CODE, DATA, CODE), (FILE,)),
        ((CODE, NOWHERE, CODE), (FILE,)),
        ((NOWHERE,), ()),
    ],
)
def test_callers_end_where_no_code_is(chain: tuple[int, ...], places: tuple[Place, ...]) -> None:
    process = Process(1, "", Replay(new_outcomes(), 4096))
    process.map(mapped(CODE, CODE + 0x1000, "/bin/true", prot=READ_EXECUTE))
    process.map(mapped(DATA, DATA + 0x1000, "/bin/true"))
    process.map(mapped(JIT, JIT + 0x1000, prot=ALL))
    # Each goes on behind its call.
    assert process.callers(tuple(pc + 1 for pc in chain)) == places


def test_code_is_decoded_again_where_another_library_is_mapped() -> None:
    process = Process(1, "", Replay(new_outcomes(), 4096))
    process.decoded = {CODE: UNKNOWN, JIT: UNKNOWN}
    process.map(mapped(JIT, JIT + 0x1000, prot=ALL))
    process.map(mapped(CODE, CODE + 0x1000, "/lib/other.so", prot=READ_EXECUTE))
    assert list(process.decoded) == [JIT]


def test_a_mapping_begins_where_the_kernel_has_merged_nothing() -> None:
    process = Process(1, "", Replay(new_outcomes(), 4096))
    process.map(mapped(CODE, CODE + 0x1000, "/lib/libc.so.6", prot=READ_EXECUTE))
    for start, first, begun in (
        (0x800000, 0x800000, True),
        # The next one ends where that begins. A fault in the old one begins nothing.
        (0x400000, 0x900000, False),
        (0x400000, 0x400000, True),
    ):
        if process.new is None:
            process.map(mapped(start, 0xA00000))
        process.begin(Fault(0, 1, 1, CODE, first, True, ()))
        assert (process.new is None) is begun


@pytest.mark.parametrize(("end", "heap"), [(0x3000, True), (0x2F10, True), (0x2000, False)])
def test_what_brk_maps_first_is_the_heap_without_its_name(end: int, heap: bool) -> None:
    process = Process(1, "", Replay(new_outcomes(), 4096))
    up = -(-end // 4096) * 4096
    assert process.call(Call(0, 1, 1, CODE, (), None, "brk", end, 0), ()) == (up, 0)
    process.map(mapped(0x1000, 0x3000))
    space = process.space.at(0x1000)
    assert space is not None and (space.path == "[heap]") is heap
    # What it gives back is what is behind the new end, up to the one before.
    assert process.call(Call(0, 1, 1, CODE, (), None, "brk", 0x1800, 0), ()) == (0x2000, up)
