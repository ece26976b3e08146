# SPDX-License-Identifier: GPL-2.0
"""What is predicted of programs that start others, or map files: starts.c."""

from __future__ import annotations

import tempfile

import pytest

from firsttouch.trace.remedies import AROUND, SPAWN
from firsttouch.trace.sites import FILE_NAME, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import Compile
from tests.trace.test_remedies import remedies

pytestmark = pytest.mark.long


def test_what_is_predicted_of_spawning_is_measured(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    program = compile_c("starts.c")
    traces = []
    for kind in ("fork", "spawn"):
        done = firsttouch("trace", "--no-survey", "--", program, kind)
        assert done.returncode == 0, done.stderr
        traces.append(read_trace(firsttouch.directory / "out" / FILE_NAME))
    before, after = traces
    saved = remedies(before)[SPAWN].saved
    assert saved > 19 * 500
    assert after.faults == pytest.approx(before.faults - saved, rel=0.1)
    # A child has a fault or two of its own before it executes the program.
    assert remedies(after)[SPAWN].saved <= 2 * 20


def test_faults_that_fault_around_leaves_are_one_for_each_page_table(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    program = compile_c("starts.c")
    # Other tests drop what is cached of disks.
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(8 << 20))
        file.flush()
        done = firsttouch("trace", "--no-survey", "--", program, "read", file.name)
    assert done.returncode == 0, done.stderr
    traced = read_trace(firsttouch.directory / "out" / FILE_NAME)
    # What had to be read from a disk stays, and a fault for each.
    saved = remedies(traced)[AROUND].saved + 2 * traced.major
    # Of 64 KiB each, or of more if the kernel's own window or folios are larger; and the loader's.
    assert 100 <= saved + 5 <= 8 * 256 + 60


def test_fault_around_leaves_writes_to_shared_mappings(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    program = compile_c("starts.c")
    # Files in /dev/shm are shared memory, not files. A write(2) of a page makes a folio of a page;
    # Linux 6.18 and later map a whole folio at one fault.
    with tempfile.NamedTemporaryFile(dir="/var/tmp", buffering=0) as file:
        for _ in range(2048):
            file.write(bytes(4096))
        done = firsttouch("trace", "--no-survey", "--", program, "write", file.name)
    assert done.returncode == 0, done.stderr
    traced = read_trace(firsttouch.directory / "out" / FILE_NAME)
    assert traced.fault_kinds["file"] > 2048
    assert remedies(traced)[AROUND].saved < 100
