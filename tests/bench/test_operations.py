# SPDX-License-Identifier: GPL-2.0
"""Operations on memory, on this host: each does what its name says, and does it so often."""

from __future__ import annotations

import json
import os

import pytest

from tests.bench.conftest import Ftbench, Line, run_as_nobody

PAGE = os.sysconf("SC_PAGESIZE")
PIECES = 32
STRIDE = 16 * PAGE
SIZE = PIECES * STRIDE
PAGES = SIZE // PAGE

KINDS = ("untouched", "zero", "base", "shmem", "file")
# By experiment and operation: how many operations there are, and the pages that
# are mapped where the memory was, after all of them were written.
DONE = {
    ("unmap", "at-once"): (1, 0),
    ("unmap", "pieces"): (PIECES, 0),
    ("unmap", "holes"): (PIECES, PAGES - PIECES),
    ("protect", "none-to-write"): (1, PAGES),
    ("protect", "write-to-read"): (1, PAGES),
    ("protect", "read-to-write"): (1, PAGES),
    ("protect", "guards"): (PIECES, PAGES),
    ("protect", "stores-after"): (PAGES, PAGES),
    ("remap", "moved"): (1, 0),
    ("remap", "moved-askew"): (1, 0),
    ("remap", "moved-pieces"): (PIECES, 0),
    ("remap", "moved-grown"): (1, 0),
    ("remap", "grown"): (1, PAGES),
    ("remap", "shrunk"): (1, 1),
    ("advise", "dontneed"): (1, 0),
    ("advise", "free"): (1, PAGES),
    ("advise", "cold"): (1, PAGES),
    ("advise", "collapse"): (1, PAGES),
    ("advise", "populate-read"): (1, 0),
    ("advise", "populate-write"): (1, PAGES),
    ("fork", "fork"): (1, PAGES),
    ("fork", "exit"): (1, PAGES),
    ("fork", "stores"): (PAGES, PAGES),
    ("fork", "stores-copied"): (PAGES, PAGES),
    ("fork", "stores-reused"): (PAGES, PAGES),
    ("copy-across", "read-bytes"): (PIECES, PAGES),
    ("copy-across", "read"): (PIECES, PAGES),
    ("copy-across", "write"): (PIECES, PAGES),
    ("copy-across", "direct"): (PIECES, PAGES),
    ("lock", "lock"): (1, PAGES),
    ("lock", "lock-pieces"): (PIECES // 2, PAGES),
    ("lock", "lock-on-fault"): (1, PAGES),
    ("lock", "unlock"): (1, PAGES),
}
# Each page is met for the first time, or was shared by a fork.
FAULTS = {
    ("advise", "populate-read"), ("advise", "populate-write"), ("fork", "stores-copied"),
    ("fork", "stores-reused"),
}  # fmt: skip
# Not of memory that the kernel gives back, or makes larger, otherwise. And this
# host may have no huge page left.
REFUSED = {
    ("advise", "free"): {"shmem", "file"},
    ("advise", "collapse"): set(KINDS),
}


def measure(ftbench: Ftbench, experiment: str, operation: str, memory: str) -> Line:
    return ftbench.line(
        experiment, "--operation", operation, "--memory", memory, "--size", str(SIZE)
    )


def is_refused(line: Line, experiment: str, operation: str, memory: str) -> bool:
    """Tell whether there are no figures, for one of two reasons, where that may be."""
    if line["metrics"] or memory not in REFUSED.get((experiment, operation), ()):
        return False
    reasons: set[str] = set(line["unavailable"].values())
    return reasons.pop().startswith(
        (f"this kernel refuses {operation} for such memory", f"no memory for {operation}: free")
    )


@pytest.mark.parametrize(("experiment", "operation"), DONE)
def test_an_operation_leaves_what_it_should(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    line = measure(ftbench, experiment, operation, "base")
    if is_refused(line, experiment, operation, "base"):
        return
    metrics = line["metrics"]
    assert (metrics["operations"], metrics["resident_bytes"] // PAGE) == DONE[experiment, operation]
    least = PAGES if (experiment, operation) in FAULTS else 0
    # A fork protects some pages of the program itself, too.
    assert least <= metrics["page_faults"] <= least + 9 * (experiment == "fork")


@pytest.mark.parametrize(("experiment", "operation"), DONE)
def test_an_operation_takes_each_kind_of_memory(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    for memory in KINDS:
        line = measure(ftbench, experiment, operation, memory)
        if is_refused(line, experiment, operation, memory):
            continue
        assert line["metrics"]["operations"] == DONE[experiment, operation][0]
        assert line["regions"] == [experiment]


def test_what_may_not_be_locked_is_said(ftbench: Ftbench) -> None:
    done = run_as_nobody(ftbench, "lock", "--memory", "base", "--size", str(SIZE))
    (reason,) = set(json.loads(done.stdout)["unavailable"].values())
    assert "raise ulimit -l" in reason


def test_a_disk_that_is_none_is_said(ftbench: Ftbench) -> None:
    line = ftbench.line(
        "copy-across", "--operation", "direct", "--memory", "base", "--device", "/dev/shm"
    )
    assert "name a disk with --device" in line["unavailable"]["page_faults"]


def test_every_operation_is_tested(ftbench: Ftbench) -> None:
    experiments = ftbench.line("--list=json")["experiments"]
    assert set(DONE) == {
        (experiment["name"], choice)
        for experiment in experiments
        for param in experiment["params"]
        if param["name"] == "operation"
        for choice in param["choices"]
    }


def test_stores_after_protection_was_changed_fault_where_nothing_was_written(
    ftbench: Ftbench,
) -> None:
    for memory in ("untouched", "zero"):
        line = measure(ftbench, "protect", "stores-after", memory)
        assert line["metrics"]["page_faults"] == PAGES


def test_a_size_that_is_no_multiple_is_refused(ftbench: Ftbench) -> None:
    refused = ftbench("unmap", "--memory", "base", "--size", str(STRIDE + PAGE))
    assert refused.returncode == 2
    assert f"give {2 * STRIDE}" in refused.stderr
    refused = ftbench("unmap", "--memory", "2m", "--size", "1M")
    assert refused.returncode == 2 or "unavailable" in refused.stdout


def test_a_folder_without_room_for_the_file_is_named(ftbench: Ftbench) -> None:
    refused = ftbench("unmap", "--memory", "file", "--dir", "/nowhere")
    assert refused.returncode == 2
    assert "name another folder with --dir" in refused.stderr
