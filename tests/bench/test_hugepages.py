# SPDX-License-Identifier: GPL-2.0
"""Huge pages of ftbench: the hugeTLB pool is the machine's, so these tests run one by one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench.conftest import Ftbench, faults

PAGE = os.sysconf("SC_PAGESIZE")
CACHE = ("--ways", "4", "--way_size", str(4 * PAGE))


@pytest.mark.parametrize(
    ("arguments", "reads"),
    [
        (("set-conflict", "--n", "9", "--rounds", "100"), {"reads": 900}),
        (("set-conflict", "--n", "9", "--rounds", "100", "--loads", "dependent"), {"reads": 900}),
        (("set-conflict", "--n", "40", "--rounds", "10", "--stride", "64K"), {"reads": 400}),
        (("zero-conflict", *CACHE, "--hot_color", "3", "--rounds", "100"), {"reads": 500}),
        (
            ("zero-scan", "--stride", "64", "--rounds", "3", "--zero_pages", "2",
             "--working_set", "8K"),
            {"set_reads": 3 * 128, "zero_reads": 3 * 2 * PAGE // 64},
        ),
        (
            ("zero-scan", "--stride", str(PAGE), "--rounds", "3", "--zero_pages", "16"),
            {"set_reads": 0, "zero_reads": 48},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_cache_experiments_fault_nothing(
    ftbench: Ftbench, arguments: tuple[str, ...], reads: dict[str, int]
) -> None:
    line = ftbench.line(*arguments)
    if not line["metrics"]:
        (reason,) = set(line["unavailable"].values())
        assert "as root, echo" in reason or "this kernel" in reason
        return
    assert faults(line) == 0
    assert {name: line["metrics"][name] for name in reads} == reads
    if "zero_frames" in line["metrics"]:
        assert line["metrics"]["zero_frames"] == 1
        assert line["metrics"]["hot_lines_checked"] == 4


_POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")


@pytest.mark.parametrize(
    "arguments",
    [
        ("set-conflict", "--rounds", "10"),
        ("zero-scan", "--working_set", "64K", "--rounds", "2"),
        ("zero-conflict", "--ways", "8", "--way_size", "32K", "--rounds", "10"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_hugetlb_pool_is_enlarged_only_when_asked(
    ftbench: Ftbench, arguments: tuple[str, ...]
) -> None:
    """A run that is killed could not restore its size."""
    if int((_POOL / "free_hugepages").read_text()):
        pytest.fail("the test needs an empty pool: echo 0 > /proc/sys/vm/nr_hugepages")
    line = ftbench.line(*arguments)
    assert line.get("backing") != "hugeTLB"
    if os.geteuid() == 0 and line["metrics"]:
        assert ftbench.line(*arguments, "--set-pool")["backing"] == "hugeTLB"
    assert int((_POOL / "nr_hugepages").read_text()) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enlarge the pool")
def test_the_pool_is_as_before_where_runs_enlarge_it_at_once(ftbench: Ftbench) -> None:
    arguments = ("set-conflict", "--rounds", "1", "--set-pool")
    with ThreadPoolExecutor(8) as runs:
        lines = list(runs.map(lambda _: ftbench.line(*arguments), range(80)))
    assert "hugeTLB" in {line.get("backing") for line in lines}
    assert int((_POOL / "nr_hugepages").read_text()) == 0
