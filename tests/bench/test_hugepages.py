# SPDX-License-Identifier: GPL-2.0
"""Huge pages of ftbench: the hugeTLB pool is the machine's, so these tests run one by one."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import RUNS, Ftbench, check_run


@pytest.mark.parametrize("run", RUNS["cache"], ids=lambda run: " ".join(run["argv"]))
def test_cache_experiments_fault_nothing(ftbench: Ftbench, run: dict[str, Any]) -> None:
    check_run(ftbench, run)


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
