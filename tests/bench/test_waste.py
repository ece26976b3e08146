# SPDX-License-Identifier: GPL-2.0
"""Anonymous pages that are all zero at a program's end: exact, wherever a process ends."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.conftest import Ftbench

# The program that touches pages, with three numbers; ftbench's params; the figures.
Waste = Callable[..., tuple[int, int]]


@pytest.fixture(scope="module")
def touches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("touches") / "touches"
    source = Path(__file__).with_name("touches.c")
    # Static: a loader's own memory would be measured, too.
    subprocess.run(
        ["gcc", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", program, source],
        check=True,
    )
    return program


@pytest.fixture
def waste(ftbench: Ftbench, touches: Path, tmp_path: Path) -> Waste:
    def measure(where: str, written: int, zeroed: int, read: int) -> tuple[int, int]:
        (tmp_path / "script").write_text(f"exec {touches} {where} {written} {zeroed} {read}")
        line = ftbench.line("waste", "--scripts", str(tmp_path), "--program", "script")
        metrics = line["metrics"]
        if not metrics and "ptrace(2) is forbidden" in line["unavailable"]["page_faults"]:
            pytest.skip("ptrace(2) is forbidden here")
        return metrics["anon_pages"], metrics["zero_filled_pages"]

    return measure


@pytest.mark.parametrize(
    "where", ["process", "child", "thread", "last-thread", "beside-a-thread", "before-vfork"]
)
def test_zero_filled_pages_are_counted_exactly(waste: Waste, where: str) -> None:
    pages, zero = waste(where, 100, 0, 5)
    assert waste(where, 100, 7, 5) == (pages + 7, zero + 7)
    assert waste(where, 0, 0, 5) == (pages - 100, zero)
    assert waste(where, 100, 0, 0) == (pages, zero)
