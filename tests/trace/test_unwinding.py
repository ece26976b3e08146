# SPDX-License-Identifier: GPL-2.0
"""Callers where no code keeps frame pointers: by .eh_frame, on both architectures."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from firsttouch.trace.events import Fault, Mapped, StackTop
from firsttouch.trace.mapped_files import MappedFile, MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.reading import own_place, read_recording
from firsttouch.trace.remedies import Replay, new_outcomes
from firsttouch.trace.sites import Trace
from firsttouch.trace.spaces import Place
from firsttouch.trace.unwinding import Frames, Rule, Unwinder
from tests.trace.test_symbols import offset_of

CHAIN = Path(__file__).parents[1] / "data/probes/chain.c"
_BASE, _STACK = 0x5555_0000_0000, 0x7FFF_0000_0000
_COMPILERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def compile_chain(*options: str, machine: str = "x86_64") -> Path:
        program = tmp_path / "chain"
        words: list[str | Path] = [*options, "-o", program, CHAIN]
        subprocess.run([_COMPILERS[machine], "-g", "-O2", "-w", *words], check=True)
        return program

    return compile_chain


def traced(recorder: Path, program: Path) -> Trace:
    data, file = (program.with_name(name) for name in ("trace.data", "file"))
    file.write_bytes(bytes(17 << 20))
    subprocess.run(
        [recorder, "-b", "-c", "-o", data, "--", program, file],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return read_recording(data).trace


@pytest.mark.parametrize("pointers", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
def test_a_fault_in_a_library_is_at_the_function_that_called_it(
    recorder: Path, build: Build, pointers: str
) -> None:
    trace = traced(recorder, build(pointers))
    faults = {
        place.where: (place.faults, place.callers)
        for place in trace.fault_places
        if place.place.object.endswith("/chain") and place.faults > 100
    }
    ours = ("work", "main")
    # A thousand bytes, with malloc's 8 in front of them, are 20,000 times 1,008.
    nodes = 20_000 * 1008 // 4096
    assert faults.pop("clear_cache (memset)") == (8192, ours)
    if read := faults.pop("load_file (read)", None):
        assert read == (4096, ours)
    assert sum(count for count, _ in faults.values()) == pytest.approx(nodes, abs=4)
    assert {name.split()[0] for name in faults} == {"make_nodes"}
    assert {callers for _, callers in faults.values()} == {ours}


@pytest.mark.parametrize("machine", _COMPILERS)
def test_frames_are_followed_to_the_end_of_the_recorded_stack(build: Build, machine: str) -> None:
    program = build("-fomit-frame-pointer", "-fno-inline", "-static", machine=machine)
    inner, work, main = (offset_of(program, name) for name in ("load_file", "work", "main"))
    file = MappedFile(program, Path("/"))
    frames = file.read(partial(Frames, machine=machine))
    assert frames
    process = mapped(program)
    # Where load_file begins nothing is on the stack, but for the return address on x86-64.
    leaf = frames.rule(file.address(inner))
    assert leaf == (Rule(True, 8, None, -8) if machine == "x86_64" else Rule(True, 0, None, None))
    # In the middle of work, which has its frame; of main, whose frame is not recorded whole.
    calls = [work + 0x20, main + 0x10]
    rule = frames.rule(file.address(calls[0] - 1))
    assert rule and rule.by_sp and rule.back is not None
    stack = bytearray(leaf.size + rule.size)
    if machine == "x86_64":
        struct.pack_into("<Q", stack, 0, _BASE + calls[0])
    # With the signature of a pointer, as arm64 may have it.
    signed = 0x7F << 56 if machine == "aarch64" else 0
    struct.pack_into("<Q", stack, leaf.size + rule.size + rule.back, signed | _BASE + calls[1])
    frame = StackTop(0, _BASE + calls[0], _STACK, bytes(stack))
    unwinder = Unwinder(machine, MappedFiles(Path("/")))
    fault = Fault(1, 1, 1, _BASE + inner, 0x1000, True, (), frame=frame)
    assert unwinder.chain(process, fault) == tuple(_BASE + call for call in calls)
    # Of a shorter part of it, as many frames as it has.
    short = fault._replace(frame=frame._replace(stack=bytes(stack[: leaf.size])))
    assert unwinder.chain(process, short) == (_BASE + calls[0],)


def test_a_chain_by_frame_pointers_goes_on_where_code_has_no_rules(build: Build) -> None:
    """As that of a JIT compiler, which calls a function of the program's."""
    program = build("-fno-inline", "-static")
    inner, jit, above = offset_of(program, "load_file"), 0x1234_5678, 0x1234_9999
    frame = StackTop(_STACK + 64, 0, _STACK, struct.pack("<Q", jit))
    fault = Fault(1, 1, 1, _BASE + inner, 0x1000, True, (above,), frame=frame)
    unwinder, process = Unwinder("x86_64", MappedFiles(Path("/"))), mapped(program)
    assert unwinder.chain(process, fault) == (jit, above)
    # A chain that begins in such code is the kernel's, and one without a stack.
    assert unwinder.chain(process, fault._replace(pc=jit)) == (above,)
    assert unwinder.chain(process, fault._replace(frame=None)) == (above,)
    joined = fault._replace(chain=(jit, above))
    assert unwinder.chain(process, joined) == (jit, above)


def test_a_damaged_table_has_no_rules(build: Build) -> None:
    program = build()
    inner = offset_of(program, "load_file")
    data = bytearray(program.read_bytes())
    at = bytes(data).index(b"\x01\x1b\x03\x3b")
    data[at + 12 : at + 4096] = b"\xff" * (4096 - 12)
    program.write_bytes(data)
    frame = StackTop(0, 0, _STACK, bytes(64))
    fault = Fault(1, 1, 1, _BASE + inner, 0x1000, True, (7,), frame=frame)
    assert Unwinder("x86_64", MappedFiles(Path("/"))).chain(mapped(program), fault) == (7,)


@pytest.mark.parametrize(
    ("paths", "own"),
    [
        (("/usr/lib/libc.so.6", "/usr/lib/libstdc++.so.6.0.30", "/bin/a", "/bin/b"), 2),
        (("/usr/lib/libjemalloc.so.2", "", "/bin/a"), 1),
        (("/lib64/ld-linux-x86-64.so.2", "/usr/lib/libc.so.6"), 0),
        (("/usr/lib/libcrypto.so.3", "/bin/a"), 0),
    ],
)
def test_libraries_of_the_runtime_are_passed_over(paths: tuple[str, ...], own: int) -> None:
    stack = [Place(path, number, 0) for number, path in enumerate(paths)]
    assert own_place(stack) is stack[own]


def mapped(program: Path) -> Process:
    """Return a process that has the file from its begin on at _BASE."""
    process = Process(1, "", Replay(new_outcomes(), 4096))
    size = program.stat().st_size
    process.map(Mapped(0, 1, _BASE, _BASE + size, 0, 5, 2, str(program)))
    return process
