# SPDX-License-Identifier: GPL-2.0
"""Where large folios are promised, and where Linux gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.finder.doubles import find
from firsttouch.finder.events import Mapped
from firsttouch.finder.process import Process
from firsttouch.finder.records import open_recording
from firsttouch.finder.remedies import AHEAD, MTHP_64, THP
from firsttouch.finder.replay import Remedies
from firsttouch.finder.spaces import Space
from firsttouch.finder.worlds import Outcome
from tests.finder.test_doubles import (
    AT,
    HUGE,
    MADVISE,
    MMAP,
    MUNMAP,
    PAGE,
    STORE,
    call,
    mapping,
    moved,
    sample,
    start,
)
from tests.finder.test_spaces import mapped

SAYS_MAPPED, SAYS_CALLS = 32, 128
MAP_STACK, HUGEPAGE, NOHUGEPAGE = 0x20000, 14, 15
BEFORE = AT - 2 * HUGE


def promised(outcomes: dict[str, Outcome]) -> set[bool]:
    """Return whether remedies with large folios of 64 KiB, of 2 MiB, and by streams save faults."""
    return {outcomes[name].saved > 0 for name in (MTHP_64, THP, AHEAD)}


def maps(begin: int = AT, end: int = AT + HUGE, prot: int = 3) -> bytes:
    return mapping(begin, end, prot=prot)


def asks(size: int, flags: int = MAP_STACK) -> bytes:
    return call(MMAP, 0, size, 3, flags | 0x22, -1 % 2**64, 0)


def advises(advice: int, begin: int = AT) -> bytes:
    return call(MADVISE, begin, HUGE, advice)


def test_folios_are_promised_but_where_the_program_wants_none(tmp_path: Path) -> None:
    file = tmp_path / "trace.data"
    for name, before, large in (
        ("no call", (maps(),), True),
        ("MADV_NOHUGEPAGE", (maps(), advises(NOHUGEPAGE)), False),
        ("both", (maps(), advises(NOHUGEPAGE), advises(HUGEPAGE)), True),
        # Its pages move, and others are mapped where it was.
        ("moved", (maps(BEFORE), advises(NOHUGEPAGE, BEFORE), moved(BEFORE, AT, HUGE)), False),
        ("anew", (maps(), advises(NOHUGEPAGE), call(MUNMAP, AT, HUGE), maps()), True),
        ("MAP_STACK", (asks(HUGE), maps()), False),
        # mmap(2) takes whole pages, and the kernel merges with what is there.
        ("merged", (maps(BEFORE, AT), asks(HUGE - PAGE + 1), maps(BEFORE)), False),
        ("another mapping", (asks(HUGE - PAGE), maps()), True),
        ("one of two", (asks(HUGE), maps(BEFORE, BEFORE + HUGE), maps()), True),
        # What is only recognized without the calls, as the stack of a thread.
        ("like a stack", (maps(AT - PAGE, prot=0), maps()), True),
    ):
        faults = [sample(STORE, AT + page * PAGE, 0) for page in range(512)]
        data = [start(flags=SAYS_MAPPED | SAYS_CALLS), *before, *faults]
        file.write_bytes(b"".join(data))
        assert promised(find(open_recording(file)).outcomes) == {large}, name


RESERVED = 0
STACK, TOP = 0x7F0000000000, 0x7F0000801000


@pytest.mark.parametrize(
    ("maps", "large"),
    [
        # pthread_create(3): all but the guard can be accessed.
        ((mapped(STACK, TOP, prot=RESERVED), mapped(STACK + 0x1000, TOP)), False),
        # The kernel merged what is reserved with the guard of the stack above.
        (
            (
                mapped(TOP, TOP + 0x1000, prot=RESERVED),
                mapped(STACK, TOP + 0x1000, prot=RESERVED),
                mapped(STACK + 0x1000, TOP),
            ),
            False,
        ),
        # A heap grows from where it begins, others take what they reserved in parts.
        ((mapped(STACK, TOP, prot=RESERVED), mapped(STACK, TOP)), True),
        ((mapped(STACK, TOP, prot=RESERVED), mapped(STACK + 0x1000, TOP - 0x1000)), True),
        # Other memory is where a stack was, and a file since.
        (
            (
                mapped(STACK, TOP, prot=RESERVED),
                mapped(STACK + 0x1000, TOP),
                mapped(STACK, TOP, "/a/file"),
                mapped(STACK, TOP),
            ),
            True,
        ),
    ],
)
def test_no_folio_is_promised_where_a_thread_has_its_stack(
    maps: tuple[Mapped, ...], large: bool
) -> None:
    remedies = Remedies(4096, 512)
    process = Process(1, Space(), 0, 512, remedies.process())
    for event in maps:
        process.map(event)
    block = (STACK >> 12) // 512 + 2
    area = process.areas.at(block << 21)
    process.replay.writes(block, (1 << 512) - 1, 0, 1, area.limits)
    process.replay.close()
    assert promised(remedies.outcomes) == {large}
