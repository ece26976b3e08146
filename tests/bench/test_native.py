# SPDX-License-Identifier: GPL-2.0
"""Each experiment on this host, small: fault counts are exact wherever they are taken."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import RUNS, Ftbench, check_run, faults

PAGE = os.sysconf("SC_PAGESIZE")
PAGES = 512
SIZE = str(PAGES * PAGE)


@pytest.mark.parametrize("run", RUNS["run"], ids=lambda run: " ".join(run["argv"]))
def test_each_run_takes_exactly_its_faults(ftbench: Ftbench, run: dict[str, Any]) -> None:
    check_run(ftbench, run)


def test_a_result_names_its_experiment_params_and_regions(ftbench: Ftbench) -> None:
    line = ftbench.line("populate", "--by", "store", "--page", "base", "--size", SIZE)
    assert (line["experiment"], line["regions"]) == ("populate", ["populate"])
    params = {"by": "store", "page": "base", "size": int(SIZE), "threads": 1, "cpus": 1}
    assert line["params"] == params
    assert line["metrics"]["anon_huge_bytes"] == 0
    # Of the whole system, so at least this process's.
    assert line["metrics"]["pgfault"] >= faults(line)


def test_each_of_the_cpus_has_a_thread(ftbench: Ftbench) -> None:
    cpus = min(2, len(os.sched_getaffinity(0)))
    line = ftbench.line(
        "populate", "--by", "store", "--page", "base", "--size", SIZE, "--cpus", str(cpus)
    )
    assert (line["params"]["threads"], faults(line)) == (cpus, PAGES)


@pytest.mark.parametrize("memory", ["anonymous", "memfd", "system-v"])
@pytest.mark.parametrize("part", ["touch", "exit"])
def test_each_process_faults_for_itself(ftbench: Ftbench, memory: str, part: str) -> None:
    line = ftbench.line(
        "shared", "--processes", "3", "--memory", memory, "--part", part, "--order", "stride-17",
        "--size", str(256 * PAGE),
    )  # fmt: skip
    metrics = line["metrics"]
    assert metrics["touches"] == 3 * 15
    assert 3 <= metrics["process_faults"] <= 3 * 15
    assert metrics["process_faults"] <= metrics["mapped_pages"]
    assert faults(line) < 10


def test_file_warm_and_cold(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "file"
    warm = ftbench.line("file-read-fault", "--cache", "warm", "--size", "4M", "--file", str(path))
    # A fault maps neighbours too: there is at least one fault, at most one a page.
    assert 1 <= faults(warm) <= (4 << 20) // PAGE
    assert warm["metrics"]["major_faults"] == 0
    contents = path.read_bytes()
    assert len(contents) == 4 << 20
    assert all(any(contents[at : at + PAGE]) for at in range(0, len(contents), PAGE))

    done = ftbench("file-read-fault", "--cache", "cold", "--size", "4M", "--file", str(path))
    if done.returncode == 0:
        cold = json.loads(done.stdout)
        assert cold["metrics"]["major_faults"] >= 1
    else:
        # A file system without a disk behind it has no cold cache.
        assert done.returncode == 1
        assert "the cache is not cold" in done.stderr
    assert path.read_bytes() == contents


def test_timeline(ftbench: Ftbench) -> None:
    line = ftbench.line(
        "populate", "--by", "load-store", "--page", "base", "--size", str(64 * PAGE), "--timeline"
    )
    if line["timeline"] is None:
        assert "perf" in line["timeline_absent"]
        return
    assert line["timeline_lost"] == 0
    assert line["timeline_kinds"] == "by order"
    samples = line["timeline"]
    assert [page for _, page, _ in samples] == [page for page in range(64) for _ in range(2)]
    assert [write for _, _, write in samples] == [0, 1] * 64
    times = [time for time, _, _ in samples]
    assert times == sorted(times)
    assert 0 < times[-1] <= line["metrics"]["elapsed_ns"]
