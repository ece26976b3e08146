# SPDX-License-Identifier: GPL-2.0
"""Guests that the store lacks run once, whoever is killed, and with several runs at once."""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from firsttouch.building.store import outcome_place, stored_outcome
from firsttouch.errors import GuestError
from firsttouch.files import REPOSITORY
from firsttouch.lab import outcomes
from firsttouch.lab import run as run_module
from firsttouch.lab.guests import Job
from firsttouch.lab.run import guests_at_once
from firsttouch.tables import Fields, Json
from firsttouch.vm.guest import MEMORY
from tests.support.guest_runs import execute, given, make_jobs


@pytest.fixture(autouse=True)
def _fast(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL", 0.01)


def _check_all_is_there(jobs: Mapping[str, Job]) -> None:
    for key in jobs:
        stored = stored_outcome(key)
        assert stored is not None and stored.rest() == given(key)


def _start(number: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.guest_runs", str(number), str(seconds)],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
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


def test_a_guest_that_fails_is_no_reason_to_end() -> None:
    jobs = make_jobs(9)
    bad = list(jobs)[:4]

    def run(key: str) -> dict[str, Json]:
        if key in bad:
            raise GuestError("no memory", ["the log"])
        return given(key)

    failed: dict[str, GuestError] = {}
    assert len(execute(jobs, run, failed=failed)) == 9
    assert [key for key in jobs if key in failed] == bad
    assert not any(outcome_place(key).exists() for key in bad)


@pytest.mark.parametrize(("cpus", "room", "at_once"), [(8, 100, 8), (8, 2.5, 2), (8, 0.1, 1)])
def test_as_many_guests_as_cpus_and_memory_allow(
    monkeypatch: pytest.MonkeyPatch, cpus: int, room: float, at_once: int
) -> None:
    monkeypatch.setattr(run_module, "processors", lambda: cpus)
    monkeypatch.setattr(run_module, "available_memory", lambda: int(room * MEMORY))
    assert guests_at_once(None) == at_once
