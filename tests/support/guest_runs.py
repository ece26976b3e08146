# SPDX-License-Identifier: GPL-2.0
"""Guests that are not booted: `python -m tests.support.guest_runs HOST NUMBER SECONDS`.

Runs the guests of a plan of so many in the store, as a process of that host
would. Each gives its own key after at most so many seconds.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.machines import load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.lab.cells import Cell
from firsttouch.lab.execution import Execution
from firsttouch.lab.guests import Job
from firsttouch.lab.shared_plan import SharedPlan
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest

LEASE = 2.0
# Runs a guest: its key, and what is set when it is to stop. Returns its outcome.
Run = Callable[[str, threading.Event], Mapping[str, Json]]


def make_jobs(number: int) -> dict[str, Job]:
    """Return jobs by key; the numbers are spread as digests are."""
    source = KernelSource(
        load_release("6.12"), "6.12.1", "package", "0" * 64, lambda: Path(), lambda *_: Path()
    )  # fmt: skip
    jobs = {}
    for index in range(number):
        key = f"{index * 0x9E3779B97F4A7C15 % 2**64:016x}" * 4
        guest = Guest(Path("image"), Path("init"), load_machine("neoverse-n1"), (), (key,))
        cell = Cell("6.12", "stock", "neoverse-n1", "populate", {"size": index})
        jobs[key] = Job(guest, key, (cell,), source, load_arm("stock"))
    return jobs


def given(key: str) -> dict[str, Json]:
    """Return the outcome of a guest that is not run."""
    return {"commands": [key] * 20}


def idle(seconds: float) -> Run:
    """Return what runs guests that take at most so many seconds."""

    def run(key: str, stop: threading.Event) -> Mapping[str, Json]:
        stop.wait(random.uniform(0, seconds))
        return given(key)

    return run


def execute(
    plan: SharedPlan,
    jobs: Mapping[str, Job],
    run: Run,
    host: str,
    *,
    joins: bool = False,
    grace: float = 0.0,
) -> Execution:
    """Run the guests of a plan that are not booted, until all have ended; return the execution."""
    with tempfile.TemporaryDirectory() as logs:
        execution = Execution(plan, jobs, host, Path(logs), joins, grace)

        def outcome(key: str, _log: Path) -> Mapping[str, Json]:
            return run(key, execution.stop)

        with mock.patch.object(execution, "_outcome", outcome):
            execution.run(1, lambda *_: None)
    return execution


def main(host: str, number: str, seconds: str) -> None:
    """Run guests until all have ended."""
    jobs = make_jobs(int(number))
    execute(SharedPlan("plan", frozenset(), LEASE), jobs, idle(float(seconds)), host, joins=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
