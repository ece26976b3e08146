# SPDX-License-Identifier: GPL-2.0
"""Guests that the store lacks run once, whoever is killed, and with several runs at once."""

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

import pytest

from firsttouch.building.store import stored_outcome
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.machines import load_machine
from firsttouch.files import REPOSITORY
from firsttouch.lab import outcomes
from firsttouch.lab import run as run_module
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job
from firsttouch.lab.run import run_guests
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, Json
from firsttouch.vm.guest import Guest
from tests.support.sources import fake_source

# Runs a guest, given its key.
Run = Callable[[str], dict[str, Json]]


def make_jobs(number: int) -> dict[str, Job]:
    """Return jobs by key; the numbers are spread as digests are."""
    source = fake_source()
    jobs = {}
    for index in range(number):
        key = f"{index * 0x9E3779B97F4A7C15 % 2**64:016x}" * 4
        guest = Guest(Path("image"), Path("init"), load_machine("neoverse-n1"), (), (key,))
        cell = Cell("6.12", "stock", "neoverse-n1", "populate", {"size": index})
        jobs[key] = Job(guest, key, (cell,), source, load_arm("stock"), load_experiment("populate"))
    return jobs


def given(key: str) -> dict[str, Json]:
    """Return the outcome of a guest that is not run."""
    return {"commands": [], "key": key}


def execute(jobs: Mapping[str, Job], run: Run = given, at_once: int = 1) -> list[str]:
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
        run_guests(jobs, at_once, Path(logs), Reporter())
    return ran


def main(number: str, seconds: str) -> None:
    """Run guests as a process of `firsttouch lab` would; print the keys of those that it ran."""

    def idle(key: str) -> dict[str, Json]:
        print(key, flush=True)
        time.sleep(random.uniform(0, float(seconds)))
        return given(key)

    execute(make_jobs(int(number)), idle)


@pytest.fixture(autouse=True)
def _fast(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL", 0.01)


def _check_all_is_there(jobs: Mapping[str, Job]) -> None:
    for key in jobs:
        stored = stored_outcome(key)
        assert stored is not None and stored.rest() == given(key)


def _start(number: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lab.test_execution", str(number), str(seconds)],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def test_each_guest_runs_once_and_each_outcome_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = make_jobs(300)
    read: Counter[str] = Counter()

    def counted(key: str) -> Fields | None:
        read[key] += 1
        return stored_outcome(key)

    monkeypatch.setattr(outcomes, "stored_outcome", counted)
    assert sorted(execute(jobs, at_once=64)) == sorted(jobs)
    assert read == Counter(jobs.keys())
    _check_all_is_there(jobs)
    assert execute(jobs) == []


def test_two_processes_at_once_share_the_guests() -> None:
    jobs = make_jobs(40)
    both = [_start(40, 0.02) for _ in range(2)]
    ran = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0], ran
    assert sorted(ran[0] + ran[1]) == sorted(jobs)
    assert all(ran)
    _check_all_is_there(jobs)


def test_the_guest_of_a_killed_process_runs_again_at_once() -> None:
    jobs = make_jobs(2)
    with _start(2, 3600) as process:
        assert process.stdout is not None
        (held,) = {process.stdout.readline().strip()}
        process.kill()
    assert held in execute(jobs)
    _check_all_is_there(jobs)


if __name__ == "__main__":
    main(*sys.argv[1:])
