# SPDX-License-Identifier: GPL-2.0
"""Operations on memory, on this host: each does what its name says, and does it so often."""

import fcntl
import os
import resource
import tempfile
import tomllib
from collections.abc import Iterator

import pytest

from firsttouch.files import REPOSITORY
from tests.bench.conftest import Ftbench, Line

PAGE = os.sysconf("SC_PAGESIZE")
PIECES, PAGES = 32, 512
SIZE = PAGES * PAGE
_DATA = tomllib.loads((REPOSITORY / "tests/data/operations.toml").read_text())
_ROUNDS = [(name, word) for name, words in _DATA["rounds"].items() for word in words]
_REASONS = (
    "this kernel refuses {} for such memory",
    "no memory for {}: free",
    "this kernel has no userfaultfd(2) for such memory",
    "such memory is no file's",
)


def measure(ftbench: Ftbench, experiment: str, operation: str, memory: str) -> Line:
    return ftbench.line(
        experiment, "--operation", operation, "--memory", memory, "--size", str(SIZE)
    )


@pytest.mark.parametrize(
    ("experiment", "operation"),
    [(name, word) for name in _DATA["done"] for word in _DATA["done"][name]],
)
def test_an_operation_leaves_what_it_should(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    refused = {*_DATA["refused"].get(experiment, ()),
               *_DATA["refused"].get(f"{experiment} {operation}", ())}  # fmt: skip
    operations, resident, *least = _DATA["done"][experiment][operation]
    least = least[0] if least else 0
    for memory in ("untouched", "zero", "base", "shmem", "file"):
        line = measure(ftbench, experiment, operation, memory)
        metrics = line["metrics"]
        if not metrics and memory in refused:
            (reason,) = set(line["unavailable"].values())
            assert reason.startswith(tuple(each.format(operation) for each in _REASONS))
            continue
        assert (metrics["operations"], line["regions"]) == (operations, [experiment])
        if memory == ("shmem" if experiment == "page-cache" else "base"):
            assert metrics["resident_bytes"] // PAGE == resident
            assert least <= metrics["page_faults"] <= least + 9 * (experiment == "fork")


@pytest.mark.parametrize(("experiment", "operation"), _ROUNDS)
def test_each_round_is_done_and_takes_the_same_faults(
    ftbench: Ftbench, experiment: str, operation: str
) -> None:
    line = ftbench.line(experiment, "--operation", operation, "--rounds", "300")
    assert line["metrics"]["operations"] == 300
    faults, rest = divmod(line["metrics"]["page_faults"], 300)
    expected = _DATA["rounds"][experiment][operation]
    # A page of the file that somebody else holds locked is not mapped around a fault: it takes
    # a fault of its own.
    assert rest <= (3 if expected < 0 else 0)
    assert faults > 10 if expected < 0 else faults == expected


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
@pytest.mark.parametrize(
    ("operation", "memory"),
    [(word, memory) for word, memories in _DATA["swapping"].items() for memory in memories],
)
def test_memory_is_swapped_out_and_in(
    ftbench: Ftbench, swap_file: str, operation: str, memory: str
) -> None:
    metrics = ftbench.line(
        "swapping", "--operation", operation, "--memory", memory, "--size", str(SIZE),
        "--swap", swap_file,
    )["metrics"]  # fmt: skip
    left = metrics["resident_bytes"] // PAGE
    expected = _DATA["swapping"][operation][memory]
    assert [metrics["operations"], left, metrics["page_faults"]] == expected
