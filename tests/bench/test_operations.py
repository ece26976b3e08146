# SPDX-License-Identifier: GPL-2.0
"""Operations on memory, on this host: each does what its name says, and does it so often."""

from __future__ import annotations

import os

import pytest

from tests.bench.conftest import Ftbench, Line

PAGE = os.sysconf("SC_PAGESIZE")
PIECES = 32
STRIDE = 16 * PAGE
SIZE = PIECES * STRIDE
PAGES = SIZE // PAGE

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
}
KINDS = ("untouched", "zero", "base", "shmem", "file")


def measure(ftbench: Ftbench, experiment: str, operation: str, memory: str) -> Line:
    return ftbench.line(
        experiment, "--operation", operation, "--memory", memory, "--size", str(SIZE)
    )


@pytest.mark.parametrize(("experiment", "operation"), DONE)
def test_an_operation_leaves_what_it_should(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    metrics = measure(ftbench, experiment, operation, "base")["metrics"]
    assert (metrics["operations"], metrics["resident_bytes"] // PAGE) == DONE[experiment, operation]
    # Written pages stay writable: no store after them faults.
    assert metrics["page_faults"] == 0


@pytest.mark.parametrize(("experiment", "operation"), DONE)
def test_an_operation_takes_each_kind_of_memory(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    for memory in KINDS:
        line = measure(ftbench, experiment, operation, memory)
        assert line["metrics"]["operations"] == DONE[experiment, operation][0]
        assert line["regions"] == [experiment]


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
