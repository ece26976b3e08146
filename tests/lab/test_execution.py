# SPDX-License-Identifier: GPL-2.0
"""Processes that run one plan: each guest once, whoever is killed and whatever is lost."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firsttouch.building.claims import is_claimed
from firsttouch.building.outcomes import (
    By,
    guest_claim,
    keep_outcome,
    outcome_place,
    run_by,
    stored_document,
)
from firsttouch.errors import GuestError, HostError
from firsttouch.lab import execution as executions
from firsttouch.lab.execution import Execution
from firsttouch.lab.guests import Job
from firsttouch.lab.shared_plan import Failure, SharedPlan
from firsttouch.places import REPOSITORY
from firsttouch.tables import Json
from tests.support.guest_runs import LEASE, Run, execute, given, idle, make_jobs

pytestmark = pytest.mark.usefixtures("own_cache")
_PLAN = SharedPlan("plan", frozenset(), LEASE)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "_POLL", 0.01)


@pytest.fixture(autouse=True)
def _waiting(own_cache: Path) -> Iterator[None]:
    """A process waits for the plan's guests, so that the plan is there when these have ended."""
    with _PLAN.following():
        yield


def _audited(jobs: Mapping[str, Job]) -> SharedPlan:
    return SharedPlan("plan", frozenset(jobs), LEASE)


def _broken(*_: object) -> Mapping[str, Json]:
    raise GuestError("no memory", ["the log"])


def _together(
    plan: SharedPlan, jobs: Mapping[str, Job], runs: Mapping[str, Run]
) -> dict[str, Execution]:
    """Run guests by a process of each host at once; return their executions."""
    ready = threading.Barrier(len(runs))

    def start(host: str, run: Run) -> Execution:
        # Each knows of the others from the first guest on.
        with plan.running(host):
            ready.wait()
            return execute(plan, jobs, run, host, joins=True)

    with ThreadPoolExecutor() as pool:
        started = {host: pool.submit(start, host, run) for host, run in runs.items()}
        return {host: future.result() for host, future in started.items()}


def _check_all_is_there(jobs: Mapping[str, Job], own_cache: Path) -> None:
    for key in jobs:
        document = stored_document(key)
        assert document is not None
        assert document.table("outcome").rest() == given(key)
    # What is left of claims is of processes that were killed: nobody holds it.
    left = own_cache.glob("claims/*/[!.]*")
    assert not [claim for claim in left if is_claimed(claim, LEASE)]


def _hosts(jobs: Mapping[str, Job]) -> Counter[str]:
    documents = [stored_document(key) for key in jobs]
    return Counter(run_by(document).host for document in documents if document)


def test_two_hosts_run_each_guest_once(own_cache: Path) -> None:
    jobs = make_jobs(50)
    ran: Counter[str] = Counter()

    def run(key: str, stop: threading.Event) -> Mapping[str, Json]:
        ran[key] += 1
        return idle(0.01)(key, stop)

    _together(_PLAN, jobs, {"one": run, "two": run})
    _check_all_is_there(jobs, own_cache)
    assert set(ran.values()) == {1}
    assert len(ran) == 50
    assert set(_hosts(jobs)) == {"one", "two"}
    # What the store has is not run again.
    assert execute(_PLAN, jobs, lambda *_: pytest.fail("ran"), "one").ran == 0


def _start(host: str, number: int, store: Path, *before: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.support.guest_runs", host, str(number), "0.05"],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(store)},
    )  # fmt: skip


@pytest.mark.long
def test_processes_that_are_killed_at_random_lose_nothing(own_cache: Path) -> None:
    jobs = make_jobs(150)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    hosts = itertools.cycle(("one", "two", "three"))
    running = [_start(next(hosts), 150, own_cache.parent) for _ in range(3)]
    for _ in range(12):
        time.sleep(chance.uniform(0.1, 0.6))
        victim = chance.randrange(len(running))
        running[victim].kill()
        running[victim].communicate()
        running[victim] = _start(next(hosts), 150, own_cache.parent)
    for process in running:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert not any(_PLAN.failures(key) for key in jobs)
    _check_all_is_there(jobs, own_cache)


@pytest.mark.long
def test_two_hosts_see_one_store_at_different_paths(own_cache: Path, tmp_path: Path) -> None:
    assert os.geteuid() == 0, "this test mounts in namespaces of its own: run it as root"
    assert shutil.which("unshare"), "unshare is missing: install util-linux"
    jobs = make_jobs(60)
    running = []
    for host in ("here", "there"):
        place = tmp_path / host
        place.mkdir()
        hidden = f'mount --bind "$0" {place} && mount -t tmpfs none "$0" && exec "$@"'
        running.append(
            _start(host, 60, place, "unshare", "-m", "sh", "-c", hidden, str(own_cache.parent))
        )
    for process in running:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
    _check_all_is_there(jobs, own_cache)
    assert set(_hosts(jobs)) == {"here", "there"}


@pytest.mark.long
def test_the_claim_of_a_host_that_is_gone_is_stuck_no_longer_than_its_lease(
    own_cache: Path,
) -> None:
    jobs = make_jobs(4)
    first = next(iter(jobs))
    claim = guest_claim(first)
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"host": "gone", "name": "far", "pid": 1, "started": "1"}))
    began = time.time()
    execute(_PLAN, jobs, idle(0), "one")
    _check_all_is_there(jobs, own_cache)
    assert outcome_place(first).stat().st_mtime - began >= LEASE - 0.5


@pytest.mark.parametrize("loss", ["lost", "cut off", "empty"])
def test_a_write_that_the_store_loses_is_noticed_and_the_guest_run_again(
    loss: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = make_jobs(9)
    lost: list[Path] = []

    def losing(key: str, outcome: Mapping[str, Json], by: By) -> object:
        outcome_kept = keep_outcome(key, outcome, by)
        if len(lost) < 3:
            lost.append(place := outcome_place(key))
            if loss == "lost":
                place.unlink()
            else:
                place.write_bytes(place.read_bytes()[:-9] if loss == "cut off" else b"")
        return outcome_kept

    monkeypatch.setattr(executions, "keep_outcome", losing)
    assert execute(_PLAN, jobs, idle(0), "one").ran == 9 + 3
    _check_all_is_there(jobs, own_cache)


def test_a_full_store_ends_the_run_and_keeps_what_was_finished(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = make_jobs(5)
    finished = itertools.count()

    def full(key: str, outcome: Mapping[str, Json], by: By) -> object:
        if next(finished) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(outcome_place(key)))
        return keep_outcome(key, outcome, by)

    monkeypatch.setattr(executions, "keep_outcome", full)
    with pytest.raises(OSError, match="No space left"):
        execute(_PLAN, jobs, idle(0), "one")
    assert sum(outcome_place(key).exists() for key in jobs) == 3
    assert execute(_PLAN, jobs, idle(0), "one").ran == 2
    _check_all_is_there(jobs, own_cache)


def test_a_guest_that_fails_is_tried_by_two_hosts_each_once() -> None:
    jobs = make_jobs(2)
    tried: Counter[str] = Counter()

    def failing(host: str) -> Run:
        def run(*_: object) -> Mapping[str, Json]:
            tried[host] += 1
            return _broken()

        return run

    _together(_PLAN, jobs, {host: failing(host) for host in ("one", "two")})
    assert tried == {"one": 2, "two": 2}
    for key in jobs:
        ended = _PLAN.how_ended(key)
        assert ended and ended.failure
        assert (ended.failure.error, ended.failure.detail) == ("no memory", ("the log",))
    # A third host does not try it.
    execute(_PLAN, jobs, lambda *_: pytest.fail("tried"), "three")


@pytest.mark.long
def test_a_host_that_fails_what_others_run_stops_and_is_named(own_cache: Path) -> None:
    jobs = make_jobs(30)
    match = r"bad failed \d+ guests in a row and one that good has run \(.*: no memory\)"
    with pytest.raises(HostError, match=match):
        _together(_PLAN, jobs, {"good": idle(0.05), "bad": _broken})
    _check_all_is_there(jobs, own_cache)
    assert set(_hosts(jobs)) == {"good"}


def test_a_host_alone_goes_on_after_failures() -> None:
    jobs = make_jobs(12)
    execute(_PLAN, jobs, _broken, "one")
    assert all(len(_PLAN.failures(key)) == 1 for key in jobs)


@pytest.mark.parametrize("bad", [slice(0, 10), slice(0, 29)])
def test_cells_that_fail_on_every_host_stop_no_host(bad: slice) -> None:
    jobs = make_jobs(30)
    broken = set(list(jobs)[bad])

    def run(key: str, stop: threading.Event) -> Mapping[str, Json]:
        return _broken() if key in broken else given(key)

    _together(_PLAN, jobs, {"one": run, "two": run})
    for key in jobs:
        assert len(_PLAN.failures(key)) == (2 if key in broken else 0)
        assert bool(stored_document(key)) == (key not in broken)


def test_a_second_outcome_with_other_bytes_names_both_hosts() -> None:
    """A lease may pass while a host sleeps: then two hosts run the same guest."""
    jobs = make_jobs(1)
    (key,) = jobs

    def slow(key: str, _stop: threading.Event) -> Mapping[str, Json]:
        keep_outcome(key, {"commands": []}, By("awake", 1.0))
        return given(key)

    execute(_PLAN, jobs, slow, "asleep")
    ended = _PLAN.how_ended(key)
    assert ended and ended.failure
    assert "two runs of the same guest do not agree, on awake and asleep" in ended.failure.error
    # Neither is believed.
    assert stored_document(key) is None


def test_an_audit_is_done_by_another_host(own_cache: Path) -> None:
    jobs = make_jobs(10)
    plan = _audited(jobs)
    both = _together(plan, jobs, {"one": idle(0.02), "two": idle(0.02)})
    assert sum(execution.ran for execution in both.values()) == 20
    _check_all_is_there(jobs, own_cache)
    for key in jobs:
        ended = plan.how_ended(key)
        assert ended and ended.by and ended.again
        assert {ended.by.host, ended.again.host} == {"one", "two"}


def test_a_host_alone_audits_itself() -> None:
    jobs = make_jobs(3)
    assert execute(_audited(jobs), jobs, idle(0), "one").ran == 6


@pytest.mark.parametrize("how", ["other bytes", "fails"])
def test_an_audit_that_differs_is_a_failure_that_names_its_hosts(how: str) -> None:
    jobs = make_jobs(1)
    (key,) = jobs
    plan = _audited(jobs)
    keep_outcome(key, given(key), By("one", 1.0))

    def run(*_: object) -> Mapping[str, Json]:
        return {"commands": ["other"]} if how == "other bytes" else _broken()

    execute(plan, jobs, run, "two")
    ended = plan.how_ended(key)
    assert ended and ended.failure
    assert "do not agree, on one and two" in ended.failure.error
    assert stored_document(key) is None


def test_a_guest_that_a_cluster_ended_with_its_process_has_not_failed() -> None:
    """Slurm signals all processes of a job, and QEMU may end first."""
    jobs = make_jobs(1)

    def run(_key: str, stop: threading.Event) -> Mapping[str, Json]:
        threading.Timer(0.1, stop.set).start()
        raise GuestError("the guest ended before its commands did")

    # Nothing has ended, so the process would wait for a signal.
    thread = threading.Thread(target=execute, args=(_PLAN, jobs, run, "n1"), kwargs={"grace": 30},
                              daemon=True)  # fmt: skip
    thread.start()
    thread.join(1.0)
    assert not _PLAN.failures(next(iter(jobs)))


def test_a_plan_ends_only_when_nobody_uses_it() -> None:
    plan = SharedPlan("used", frozenset(), LEASE)
    with plan.following():
        with plan.running("one"):
            assert plan.hosts() == {"one"}
        assert plan.path.is_dir()
        assert not plan.hosts()
    assert not list(plan.path.parent.glob("*used*"))


def test_an_interrupted_run_can_be_joined_and_the_next_run_forgets_it() -> None:
    plan = SharedPlan("interrupted", frozenset(), LEASE)
    with pytest.raises(KeyboardInterrupt), plan.following():
        plan.add_failure("key", Failure("one", "it broke"))
        raise KeyboardInterrupt
    plan.check_joinable()
    assert plan.failures("key")
    with plan.running("two"):
        assert not plan.failures("key")


@pytest.mark.long
def test_processes_enter_and_leave_a_plan_at_once() -> None:
    """None of them may remove the folder in which another one has its claim."""
    plan = SharedPlan("busy", frozenset(), LEASE)

    def enter(host: str) -> None:
        for _ in range(20):
            with plan.running(host):
                assert host in plan.hosts()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(enter, f"n{number}") for number in range(8)]:
            done.result()
    assert not list(plan.path.parent.glob("*busy*"))


def _operations(monkeypatch: pytest.MonkeyPatch, number: int) -> float:
    """Return how many times a guest of a plan of so many looks into a file, or lists a folder."""
    counted = itertools.count()

    def counting(original: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            next(counted)
            return original(*given, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("open", "scandir", "link", "unlink", "stat"):
            patch.setattr(os, name, counting(getattr(os, name)))
        plan = SharedPlan(f"plan-{number}", frozenset(), LEASE)
        jobs = {key.replace("0", str(number % 10)): job for key, job in make_jobs(number).items()}
        execute(plan, jobs, idle(0), "one")
    return next(counted) / number


@pytest.mark.long
def test_a_guest_needs_as_few_operations_in_a_long_plan_as_in_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short, long = _operations(monkeypatch, 20), _operations(monkeypatch, 201)
    assert 0 < long < 1.2 * short
