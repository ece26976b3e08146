# SPDX-License-Identifier: GPL-2.0
"""A request that cannot be carried out: exit status 2 and one sentence that says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.bench.conftest import Ftbench, run_as_nobody

PAGE = os.sysconf("SC_PAGESIZE")
CPUS = len(os.sched_getaffinity(0))

# Arguments, and what the sentence must say.
REFUSED = {
    "no experiment": ([], "no experiment is named"),
    "misspelt experiment": (["pupulate"], 'did you mean "populate"?'),
    "another word": (["frobnicate"], "ftbench --list"),
    "misspelt general option": (["--lst"], "name it first"),
    "too much after --list": (["--list", "populate"], "leave it out"),
    "misspelt option": (["populate", "--siez", "1M"], "did you mean --size?"),
    "unknown option": (["populate", "--frobnicate", "1"], "ftbench populate --help"),
    "very long option": (["populate", "--" + "x" * 100], "ftbench populate --help"),
    "no option at all": (["populate", "ldadd"], "options begin with --"),
    "misspelt choice": (["populate", "--by", "ldad"], 'did you mean "ldadd"?'),
    "unknown choice": (
        ["populate", "--page", "frobnicate"],
        "give one of base, 4k, 16k, 32k, 64k, 128k, 256k, 512k, 1m, 2m, hugetlb",
    ),
    "missing value": (["populate", "--by"], "lacks its value"),
    "given twice": (["populate", "--size", "1M", "--size", "2M"], "given twice"),
    "value for a flag": (["populate", "--timeline=1"], "takes no value"),
    "size 0": (["populate", "--size", "0"], "give at least 4096"),
    "negative size": (["populate", "--size", "-4096"], "is negative"),
    "no number": (["populate", "--size", "lots"], "is not a number"),
    "empty number": (["populate", "--size="], "is not a number"),
    "number with a tail": (["populate", "--size", "4096x"], "is not a number"),
    "suffix with a tail": (["populate", "--size", "1GB"], "is not a number"),
    "suffix for a count": (["populate", "--threads", "1K"], "is not a number"),
    "fraction": (["populate", "--size", "1.5G"], "is not a number"),
    "sign": (["populate", "--size", "+4096"], "is not a number"),
    "blank": (["populate", "--size", " 4096"], "is not a number"),
    "not a multiple": (["populate", "--size", str(PAGE + 1)], f"give {2 * PAGE}"),
    "beyond 64 bits": (["populate", "--size", "99999999999999999999"], "is too large"),
    "beyond 63 bits": (["populate", "--size", "17179869184G"], "is too large"),
    "more than there is": (["populate", "--size", "4194304G"], "give at most"),
    "more than there is, read": (["read-fault", "--size", "4194304G"], "give at most"),
    "not a multiple, read": (["read-fault", "--size", str(PAGE + 4)], "not a multiple"),
    "no threads": (["populate", "--threads", "0"], "give at least 1"),
    "too many threads": (["populate", "--threads", "1025"], "give at most 1024"),
    "more threads than pages": (
        ["populate", "--page", "base", "--threads", "3", "--size", str(2 * PAGE)],
        "give at most 2",
    ),
    "no CPUs": (["populate", "--cpus", "0"], "give at least 1"),
    "more CPUs than there are": (
        ["populate", "--page", "base", "--cpus", str(CPUS + 1)],
        f"this process may use {CPUS}: give at most {CPUS}",
    ),
    "more CPUs than a program can have": (
        ["openjdk-pretouch", "--cpus", str(CPUS + 1)],
        f"this process may use {CPUS}: give at most {CPUS}",
    ),
    "too small for an order": (
        ["touch-order", "--size", str(8 * PAGE)],
        f"give at least {64 * PAGE}",
    ),
    "timeline of threads": (["populate", "--threads", "2", "--timeline"], "--threads 1"),
    "timeline of madvise": (["populate", "--by", "madvise", "--timeline"], "leave it out"),
    "no repetition": (["populate", "--repeat", "0"], "give at least 1"),
    "unknown counters": (["populate", "--counters", "cach"], 'did you mean "cache"?'),
    "empty path": (["file-read-fault", "--file="], "give a path"),
    "a directory": (["file-read-fault", "--file", "/"], "not a regular file"),
    "nowhere": (["file-read-fault", "--file", "/nowhere/x"], "cannot be created"),
    "no places": (["set-conflict", "--n", "0"], "give at least 1"),
    "odd stride": (["set-conflict", "--stride", "6"], "give 4"),
    "too wide": (["set-conflict", "--n", "64", "--stride", "2M"], "give at most 32"),
    "no rounds": (["zero-conflict", "--rounds", "0"], "give at least 1"),
    "no such colour": (
        ["zero-conflict", "--ways", "8", "--way_size", str(8 * PAGE), "--hot_color", "8"],
        "give at most 7",
    ),
    "way of an odd size": (
        ["zero-conflict", "--ways", "8", "--way_size", "96K"],
        "power of two",
    ),
    "odd working set": (["zero-scan", "--working_set", "65"], "give 64"),
    "odd stride of a scan": (["zero-scan", "--stride", "65"], "give 64"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=REFUSED)
def test_refused(ftbench: Ftbench, arguments: list[str], says: str) -> None:
    done = ftbench(*arguments)
    assert done.returncode == 2
    assert not done.stdout
    assert says in done.stderr
    assert done.stderr.startswith("ftbench: ")
    assert done.stderr.count("\n") == 1


def test_set_thp_without_root_is_refused(ftbench: Ftbench) -> None:
    done = run_as_nobody(ftbench, "populate", "--page", "2m", "--size", "4M", "--set-thp")
    if Path("/sys/kernel/mm/transparent_hugepage").is_dir():
        assert done.returncode == 2
        assert "run as root" in done.stderr
    else:
        assert "has no transparent huge pages" in done.stdout


def test_threads_that_cannot_be_started(ftbench: Ftbench) -> None:
    done = run_as_nobody(ftbench, "populate", "--page", "base", "--size", "4M", "--threads", "16")
    assert done.returncode == 2
    assert "could be started: give fewer" in done.stderr


def test_file_of_others_is_left_alone(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(b"precious" * 8192)
    done = ftbench("file-read-fault", "--size", str(4 * PAGE), "--file", str(path))
    assert done.returncode == 2
    assert "was not written by ftbench" in done.stderr
    assert path.read_bytes() == b"precious" * 8192


def test_file_that_is_too_short(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(PAGE))
    done = ftbench("file-read-fault", "--size", str(4 * PAGE), "--file", str(path))
    assert done.returncode == 2
    assert f"has only {PAGE} bytes" in done.stderr


def test_results_that_cannot_be_written(ftbench: Ftbench) -> None:
    # Not "w": it would create a file of that name if the device were missing.
    with Path("/dev/full").open("r+") as full:
        done = subprocess.run(
            [ftbench.path, "--list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
