# SPDX-License-Identifier: GPL-2.0
"""Doubles in recordings made by hand."""

from __future__ import annotations

import gc
import itertools
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.trace.doubles import Finder
from firsttouch.trace.events import Event
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.reading import summarize
from firsttouch.trace.records import Recording
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import Totals

_EXIT, _FORK, _SAMPLE, _MMAP2, _START, _CODE = 4, 7, 9, 10, 100, 102
_CALLS = 113
MUNMAP, BRK, MADVISE, MREMAP, MREMAPPED, MMAP = range(6)
_KERNEL, _USER, _IN_KERNEL, _SAYS_MAPPED, _SAYS_CALLS = 1, 2, 2, 32, 128
_ABI_32, _ABI_64 = 1, 2
AT, PAGE, HUGE = 0x7000_0000_0000, 4096, 2 << 20
# Instructions of x86-64: mov (%rdi), %al; mov %al, (%rdi); rep movsb.
LOAD, STORE, COPY = b"\x8a\x07", b"\x88\x07", b"\xf3\xa4"

times = itertools.count(1)


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def start(flags: int = _SAYS_MAPPED) -> bytes:
    return b"FTTRACE3" + record(_START, struct.pack("<IIIIQQ", flags, 62, PAGE, 1, 0, PAGE))


def sample(
    code: bytes,
    address: int,
    mapped: int,
    copies: tuple[int, int] = (0, 0),
    abi: int = _ABI_64,
    pid: int = 1,
    tid: int = 1,
) -> bytes:
    """Return a fault of some code, and the code; `copies` are RSI and RDI."""
    body = struct.pack("<QIIQQ", _pc(code), pid, tid, next(times), address)
    body += struct.pack("<5Q", abi, *copies, _pc(code), mapped)
    sample = struct.pack("<IIQ", pid, len(code), _pc(code)) + code.ljust(64, b"\0")
    return record(_SAMPLE, body, _USER) + record(_CODE, sample)


def _pc(code: bytes) -> int:
    return 0x400000 + 0x100 * code[0]


def fork(pid: int = 2, parent: int = 1) -> bytes:
    return record(_FORK, struct.pack("<4IQ2IQ", pid, parent, pid, parent, 0, 1, 1, next(times)))


def end(pid: int) -> bytes:
    return record(_EXIT, struct.pack("<4IQ2IQ", pid, 1, pid, 1, 0, pid, pid, next(times)))


def mapping(begin: int, end: int, path: bytes = b"//anon", prot: int = 3) -> bytes:
    body = struct.pack("<IIQQQ24sII", 1, 1, begin, end - begin, 0, b"", prot, 2)
    body += path.ljust(-len(path) // 8 * -8 + 8, b"\0")
    return record(_MMAP2, body + struct.pack("<IIQ", 1, 1, next(times)))


def call(which: int, *values: int, tid: int = 1) -> bytes:
    """Return a system call of enum ft_call, with the tracepoint's own fields before its values."""
    raw = bytes(16) + struct.pack(f"<{len(values)}Q", *values) + bytes(4)
    head = struct.pack("<QQIIQI", 7, 0x400000, 1, tid, next(times), len(raw))
    return record(_CALLS + which, head + raw)


def moved(start: int, to: int, size: int) -> bytes:
    return call(MREMAP, start, size, size, 1, 0) + call(MREMAPPED, to)


CASES = {
    "read, moved, written": (
        (sample(LOAD, AT, 0), moved(AT, AT + HUGE, PAGE), sample(STORE, AT + HUGE, PAGE)),
        1,
    ),
    "read, not moved, written elsewhere": (
        (sample(LOAD, AT, 0), moved(AT, -12 % 2**64, PAGE), sample(STORE, AT + HUGE, PAGE)),
        0,
    ),
    "read, written while mapped": ((sample(LOAD, AT, 0), sample(STORE, AT, PAGE)), 1),
    "read, given back, written": ((sample(LOAD, AT, 0), sample(STORE, AT, 0)), 0),
    "read, written, given back, written": (
        (sample(LOAD, AT, 0), sample(STORE, AT, PAGE), sample(STORE, AT, 0)),
        1,
    ),
    "written, copied after a fork": (
        (sample(STORE, AT, 0), fork(), sample(STORE, AT, PAGE)),
        0,
    ),
    "written by a copy, copied after a fork": (
        (sample(COPY, AT, 0, (AT + HUGE, AT)), fork(), sample(STORE, AT, PAGE)),
        0,
    ),
    "read by a copy, written after a fork": (
        (sample(COPY, AT, 0, (AT, AT + HUGE)), fork(), sample(STORE, AT, PAGE)),
        1,
    ),
    # Fault-around maps the page of the file, so that its first fault is the write.
    "read, a file mapped there, written": (
        (sample(LOAD, AT, 0), mapping(AT, AT + PAGE, b"/some/file"), sample(STORE, AT, PAGE)),
        0,
    ),
    "read, protected and not, written": (
        (
            mapping(AT, AT + HUGE),
            sample(LOAD, AT, 0),
            mapping(AT, AT + HUGE, prot=1),
            mapping(AT, AT + HUGE),
            sample(STORE, AT, PAGE),
        ),
        1,
    ),
    "read, written by a thread after the first ended": (
        (fork(1), sample(LOAD, AT, 0), end(1), sample(STORE, AT, PAGE)),
        1,
    ),
    "a page of its own in a block that was read": (
        (sample(LOAD, AT, 0), sample(STORE, AT + 5 * PAGE, PAGE)),
        0,
    ),
}


def find(recording: Recording) -> Totals:
    return Finder(recording, MappedFiles()).run()


@pytest.mark.parametrize("name", CASES)
def test_what_was_mapped_at_a_fault_decides(name: str, tmp_path: Path) -> None:
    events, doubles = CASES[name]
    file = tmp_path / "trace.data"
    file.write_bytes(start() + b"".join(events))
    assert find(Recording(file)).pairs.total() == doubles


def _kinds(file: Path, *events: bytes, flags: int = _SAYS_MAPPED) -> dict[str, int]:
    file.write_bytes(start(flags=flags) + b"".join(events))
    recording = Recording(file)
    return dict(summarize(recording, find(recording), Symbols(MappedFiles())).fault_kinds)


def test_a_fault_where_nothing_is_mapped_brings_no_page(tmp_path: Path) -> None:
    file, null = tmp_path / "trace.data", 3 * PAGE
    twice = (sample(LOAD, null, 0), sample(STORE, null, 0), sample(STORE, null, 0))
    assert _kinds(file, mapping(AT, AT + PAGE), *twice) == {"no memory": 3}
    # Where it is not seen, mremap(2) may have moved memory there.
    assert _kinds(file, mapping(AT, AT + PAGE), sample(STORE, AT - HUGE, 0)) == {"first write": 1}
    seen = _SAYS_MAPPED | _SAYS_CALLS
    assert _kinds(file, mapping(AT, AT + PAGE), sample(STORE, AT - HUGE, 0), flags=seen) == {
        "no memory": 1
    }
    assert _kinds(
        file,
        mapping(AT, AT + PAGE),
        moved(AT, AT - HUGE, PAGE),
        sample(STORE, AT - HUGE, 0),
        flags=seen,
    ) == {"first write": 1}
    # Pages that were there keep their kind; without a right to memory none comes.
    for prot, code, mapped, kind in (
        (0, STORE, 0, "no memory"),
        (1, STORE, 0, "no memory"),
        (1, LOAD, 0, "zero page"),
        (0, STORE, PAGE, "unknown"),
    ):
        denied = mapping(AT, AT + PAGE, prot=prot), sample(code, AT, mapped)
        assert _kinds(file, *denied, flags=seen) == {kind: 1}
    of_32_bits = sample(STORE, AT - HUGE, 0, abi=_ABI_32)
    assert _kinds(file, mapping(AT, AT + PAGE), of_32_bits, flags=seen) == {"unknown": 1}


def test_a_worker_of_io_uring_is_no_code_of_a_compiler(tmp_path: Path) -> None:
    file = tmp_path / "trace.data"
    body = struct.pack("<QIIQQ2Q", 0xFFFF_8000_0000_0000, 1, 2, next(times), AT, 0, 0)
    fault = record(_SAMPLE, body, _KERNEL)
    flags = _SAYS_MAPPED | _IN_KERNEL
    assert _kinds(file, mapping(AT, AT + PAGE), fault, flags=flags) == {"in the kernel": 1}
    (stack,) = find(Recording(file)).stacks
    assert str(Symbols(MappedFiles()).locate(stack)[stack[0]]) == "io_uring worker"


def test_a_recording_before_linux_5_11_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace.data"
    file.write_bytes(start(0))
    with pytest.raises(UserError, match=r"trace on Linux 5\.11 or later"):
        Recording(file)


@pytest.mark.parametrize(("tid", "contended"), [(1, 1), (2, 0)])
def test_a_fault_near_a_call_of_another_thread_may_wait(
    tmp_path: Path, tid: int, contended: int
) -> None:
    file, early = tmp_path / "trace.data", mapping(AT, AT + 2 * HUGE)
    first = call(MADVISE, AT, PAGE, 4, tid=2) + sample(STORE, AT + HUGE, 0, tid=2)
    then = call(MUNMAP, AT, PAGE, tid=tid) + sample(STORE, AT + HUGE, 0, tid=2)
    file.write_bytes(start() + early + first + then)
    assert find(Recording(file)).contended == contended + 1


def test_a_process_that_has_ended_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trace.data"
    children = (fork(pid) + sample(STORE, AT, 0, pid=pid) + end(pid) for pid in range(2, 40))
    file.write_bytes(start() + sample(LOAD, AT, 0) + b"".join(children))
    recording = Recording(file)
    events, alive = list(recording.events()), []

    def counted() -> Iterator[Event]:
        yield from events
        alive.append(sum(isinstance(each, Process) for each in gc.get_objects()))

    monkeypatch.setattr(recording, "events", counted)
    members = find(recording).members
    assert sum(what == "process" for what, _, _ in members) == 39
    assert alive == [1]
