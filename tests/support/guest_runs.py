# SPDX-License-Identifier: GPL-2.0
"""Guests that are not booted: `python -m tests.support.guest_runs NUMBER SECONDS`.

Runs so many guests as a process of `firsttouch lab` would, each in at most so
many seconds, and prints the keys of those that it ran.
"""

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab import outcomes
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job
from firsttouch.lab.run import run_guests
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest
from tests.support.sources import fake_source

# Runs a guest, given its key; returns its outcome.
Run = Callable[[str], dict[str, Json]]


def make_jobs(number: int) -> dict[str, Job]:
    """Return jobs by key; the numbers are spread as digests are."""
    source = fake_source()
    jobs = {}
    for index in range(number):
        key = f"{index * 0x9E3779B97F4A7C15 % 2**64:016x}" * 4
        guest = Guest(Path("image"), Path("init"), load_machine("neoverse-n1"), (), (key,))
        cell = Cell("6.12", "stock", "neoverse-n1", "populate", {"size": index})
        jobs[key] = Job(guest, key, (cell,), source, load_arm("stock"))
    return jobs


def given(key: str) -> dict[str, Json]:
    """Return the outcome of a guest that is not run."""
    return {"commands": [], "key": key}


def execute(
    jobs: Mapping[str, Job],
    run: Run = given,
    at_once: int = 1,
    failed: dict[str, GuestError] | None = None,
) -> list[str]:
    """Run guests that are not booted until all have ended; return the keys of those that ran."""
    ran: list[str] = []

    def outcome(guest: Guest, _log: Path, *, stop: threading.Event) -> dict[str, Json]:
        (key,) = guest.commands
        ran.append(key)
        return run(key)

    with (
        tempfile.TemporaryDirectory() as logs,
        mock.patch.object(outcomes, "guest_outcome", outcome),
    ):
        run_guests(jobs, at_once, Path(logs), {} if failed is None else failed)
    return ran


def main(number: str, seconds: str) -> None:
    """Run guests until all have ended."""

    def idle(key: str) -> dict[str, Json]:
        print(key, flush=True)
        time.sleep(random.uniform(0, float(seconds)))
        return given(key)

    execute(make_jobs(int(number)), idle)


if __name__ == "__main__":
    main(*sys.argv[1:])
