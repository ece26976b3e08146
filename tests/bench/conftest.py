# SPDX-License-Identifier: GPL-2.0
"""ftbench as the tests use it: this machine's binary, and the one for arm64."""

import json
import os
import platform
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.programs import BENCH, HOST_BENCH
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter

Line = dict[str, Any]


@dataclass(frozen=True)
class Ftbench:
    """The program, run as a user runs it."""

    path: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, check=False, timeout=120
        )

    def lines(self, *arguments: str) -> list[Line]:
        """Return the results of a run that must succeed."""
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def line(self, *arguments: str) -> Line:
        """Return the result of a single run that must succeed."""
        (line,) = self.lines(*arguments)
        return line


def faults(line: Line) -> int:
    """Return a result's page faults, which are its minor and its major faults."""
    metrics = line["metrics"]
    assert metrics["page_faults"] == metrics["minor_faults"] + metrics["major_faults"]
    return int(metrics["page_faults"])


RUNS = tomllib.loads((REPOSITORY / "tests/data/ftbench-runs.toml").read_text())


def check_run(ftbench: Ftbench, run: dict[str, Any]) -> None:
    """Run an entry of `RUNS`, which must count what it says."""
    page = os.sysconf("SC_PAGESIZE")
    lines = ftbench.lines(
        *(re.sub(r"^(\d+)p$", lambda n: str(int(n[1]) * page), word) for word in run["argv"])
    )
    assert [line["run"] for line in lines] == [*range(1, 1 + run.get("runs", 1))]
    for line in lines:
        metrics, expected = line["metrics"], run.get("metrics", {})
        if not metrics and not run["faults"]:
            (reason,) = set(line["unavailable"].values())
            assert "as root, echo" in reason or "this kernel" in reason
            continue
        here = run.get("arm64") if platform.machine() == "aarch64" else None
        assert faults(line) in (here or [run["faults"]])
        assert {name: metrics[name] for name in expected} == expected


@pytest.fixture(scope="session")
def ftbench(reporter: Reporter) -> Ftbench:
    """Return this machine's ftbench, as the store has it."""
    return Ftbench(HOST_BENCH.obtain(reporter))


@pytest.fixture(scope="session")
def arm64_ftbench(reporter: Reporter) -> Path:
    """Return the arm64 ftbench, as the store has it."""
    return BENCH.obtain(reporter)
