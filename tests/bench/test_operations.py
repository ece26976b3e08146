# SPDX-License-Identifier: GPL-2.0
"""Operations on memory, on this host: each does what its name says, and does it so often."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

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
    ("heap", "up"): (1, PAGES),
    ("heap", "up-pieces"): (PIECES, PAGES),
    ("heap", "up-stores"): (PIECES, 2 * PAGES),
    ("heap", "down"): (1, 0),
    ("heap", "down-pieces"): (PIECES, 0),
    ("userfault", "copy"): (PIECES, PAGES),
    ("userfault", "zero"): (PIECES, 0),
    ("userfault", "missing"): (PAGES, PAGES),
    ("userfault", "protect"): (1, PAGES),
    ("userfault", "permit"): (1, PAGES),
    ("userfault", "protected"): (PAGES, PAGES),
    ("page-cache", "read-bytes"): (PIECES, PAGES),
    ("page-cache", "read"): (PIECES, PAGES),
    ("page-cache", "write"): (PIECES, PAGES),
    ("page-cache", "loads"): (PAGES, PAGES),
    ("page-cache", "stores"): (PAGES, PAGES),
    ("page-cache", "populate"): (1, PAGES),
}
# Those that have no memory, each round by round.
ROUNDS = [
    ("switch", "call"), ("switch", "pipe"), ("switch", "thread"), ("switch", "process"),
    ("program-start", "child"), ("program-start", "least"), ("program-start", "ftbench"),
    ("program-start", "dynamic"),
]  # fmt: skip
# Those that need root, to swap to a file: the operations, and the pages and the
# faults of each. A load of what was never written gets the zero page.
SWAPPING = {
    ("out", "untouched"): (1, 0, 0),
    ("out", "base"): (1, 0, 0),
    ("out", "shmem"): (1, 0, 0),
    ("in", "untouched"): (PAGES, 0, PAGES),
    ("in", "base"): (PAGES, PAGES, PAGES),
    ("in-stores", "untouched"): (PAGES, PAGES, PAGES),
    ("in-stores", "base"): (PAGES, PAGES, PAGES),
}
# Each page is met for the first time, or was shared by a fork.
FAULTS = dict.fromkeys(
    [
        ("advise", "populate-read"), ("advise", "populate-write"), ("fork", "stores-copied"),
        ("fork", "stores-reused"), ("heap", "up-stores"), ("userfault", "missing"),
        ("userfault", "protected"), ("page-cache", "stores"),
    ],
    PAGES,
)  # fmt: skip
# A fault that reads maps the cached pages of 64 KiB around it.
FAULTS |= dict.fromkeys(
    [("page-cache", "loads"), ("page-cache", "populate")], PAGES * PAGE // 65536
)
# Not of memory that the kernel gives back, or makes larger, otherwise. And this
# host may have no huge page left.
REFUSED = {
    ("advise", "free"): {"shmem", "file"},
    ("advise", "collapse"): set(KINDS),
    **{(experiment, operation): {"file"} for experiment, operation in DONE
       if experiment == "userfault"},
    **{(experiment, operation): {"untouched", "zero", "base"} for experiment, operation in DONE
       if experiment == "page-cache"},
}  # fmt: skip


def measure(ftbench: Ftbench, experiment: str, operation: str, memory: str) -> Line:
    return ftbench.line(
        experiment, "--operation", operation, "--memory", memory, "--size", str(SIZE)
    )


def is_refused(line: Line, experiment: str, operation: str, memory: str) -> bool:
    """Tell whether there are no figures, for a reason that there may be."""
    if line["metrics"] or memory not in REFUSED.get((experiment, operation), ()):
        return False
    reasons: set[str] = set(line["unavailable"].values())
    return reasons.pop().startswith(
        (
            f"this kernel refuses {operation} for such memory",
            f"no memory for {operation}: free",
            "this kernel has no userfaultfd(2) for such memory",
            "such memory is no file's",
        )
    )


@pytest.mark.parametrize(("experiment", "operation"), DONE)
def test_an_operation_leaves_what_it_should(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    memory = "shmem" if experiment == "page-cache" else "base"
    line = measure(ftbench, experiment, operation, memory)
    if is_refused(line, experiment, operation, memory):
        return
    metrics = line["metrics"]
    assert (metrics["operations"], metrics["resident_bytes"] // PAGE) == DONE[experiment, operation]
    least = FAULTS.get((experiment, operation), 0)
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


@pytest.mark.parametrize(("experiment", "operation"), ROUNDS)
def test_each_round_is_done_and_takes_the_same_faults(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    line = ftbench.line(experiment, "--operation", operation, "--rounds", "300")
    assert line["metrics"]["operations"] == 300
    faults, rest = divmod(line["metrics"]["page_faults"], 300)
    # A page of the file that somebody else holds locked is not mapped around a fault: it takes
    # a fault of its own.
    assert rest <= 3 * (operation in ("ftbench", "dynamic"))
    if operation == "least":
        # Of its stack, on which arguments are put, and of its text.
        assert faults == 2
    elif operation in ("ftbench", "dynamic"):
        assert faults > 10
    else:
        assert faults == 0


def count_switches() -> int:
    """Count the switches of all that ended: those that waited, and those that had to go."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_nvcsw + usage.ru_nivcsw


def test_each_round_of_another_process_or_thread_is_two_switches(ftbench: Ftbench) -> None:
    switches = {}
    for operation in ("pipe", "thread", "process"):
        before = count_switches()
        ftbench.line("switch", "--operation", operation, "--rounds", "1000")
        switches[operation] = count_switches() - before
    # It is done twice, once to warm up.
    assert switches["pipe"] < 1000
    assert min(switches["thread"], switches["process"]) >= 4000


@pytest.mark.parametrize("cpus", [1, 2])
def test_blocks_go_through_a_socket_and_nobody_sleeps(ftbench: Ftbench, cpus: int) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    line = ftbench.line("socket", "--block", "16K", "--cpus", str(cpus))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before < 200
    assert (line["metrics"]["operations"], line["metrics"]["page_faults"]) == (1024, 0)
    refused = ftbench("socket", "--block", "16M", "--cpus", str(cpus))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "ftbench: socket: --block 16777216: the socket has less room: give a smaller one\n"
    )


def test_the_heap_ends_where_it_was(ftbench: Ftbench) -> None:
    """A second run finds the heap as the first did: it fits below the same limit."""
    limit = ["prlimit", f"--data={3 * SIZE + (8 << 20)}"]
    done = subprocess.run(
        [*limit, ftbench.path, "heap", "--operation", "up-stores", "--memory", "base",
         "--size", str(SIZE), "--repeat", "20"],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["metrics"]["page_faults"] for line in lines] == [PAGES] * 20


@pytest.fixture
def swap_file() -> Iterator[str]:
    """Return a file of a disk: nothing is swapped to a tmpfs, where temporary files may be.

    The kernel swaps to all areas. What another test's swapoff(2) brings back is resident.
    """
    folder = os.open("/var/tmp", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(os.urandom(4 * SIZE))
        file.flush()
        yield file.name
    os.close(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may swap to a file")
@pytest.mark.parametrize(("operation", "memory"), SWAPPING)
def test_memory_is_swapped_out_and_in(
    ftbench: Ftbench, swap_file: str, operation: str, memory: str
) -> None:
    metrics = ftbench.line(
        "swapping", "--operation", operation, "--memory", memory, "--size", str(SIZE),
        "--swap", swap_file,
    )["metrics"]  # fmt: skip
    assert (
        metrics["operations"],
        metrics["resident_bytes"] // PAGE,
        metrics["page_faults"],
    ) == SWAPPING[operation, memory]


def test_a_host_without_room_to_swap_to_is_told_so(ftbench: Ftbench) -> None:
    free = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("SwapFree:")
    )
    if free * 1024 < SIZE:
        line = measure(ftbench, "swapping", "out", "base")
        assert "name an area by --swap" in line["unavailable"]["page_faults"]


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
    assert {*DONE, *ROUNDS, *(("swapping", operation) for operation, _ in SWAPPING)} == {
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
