# SPDX-License-Identifier: GPL-2.0
"""Workers and their share: each guest once, whoever is killed and whatever the share loses."""

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
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from firsttouch.build.claims import is_claimed
from firsttouch.build.outcomes import outcome_place
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.lab import worker as workers
from firsttouch.lab.orders import Runner
from firsttouch.lab.posted import Order, PostedPlan, in_batches, open_plans, posted_plan
from firsttouch.lab.share import By, Share, open_share
from firsttouch.lab.worker import Worker
from firsttouch.places import REPOSITORY
from firsttouch.tables import Json
from tests.support.idle_worker import given, idle_runner, make_orders


@pytest.fixture
def share(tmp_path: Path) -> Share:
    return Share(open_share(tmp_path / "share", make=True).root, lease=2.0)


def _post(share: Share, number: int, *, audit: bool = False) -> tuple[PostedPlan, list[Order]]:
    orders = make_orders(number, audit=audit)
    plan = posted_plan(share, "plan")
    plan.post({}, in_batches(orders))
    return plan, orders


def _worker(share: Share, run: Runner | None = None, host: str = "one") -> Worker:
    runner = run or idle_runner(0)
    return Worker(share, lambda _: runner, host, lambda _: None)


def _check_all_is_there(plan: PostedPlan, orders: list[Order]) -> None:
    for order in orders:
        found = plan.share.outcome(order.key)
        assert found is not None, order.title
        assert found.table("outcome").rest() == given(order)
    assert not plan.open_batches()
    # What is left of claims is of workers that were killed: nobody holds it.
    left = plan.share.root.glob("claims/*/[!.]*")
    assert not [claim for claim in left if is_claimed(claim, plan.share.lease)]


def _start(share: Path, host: str, seconds: float, *before: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.support.idle_worker", str(share), host,
         str(seconds)],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_a_worker_runs_each_guest_once(share: Share) -> None:
    plan, orders = _post(share, 50)
    ran: Counter[str] = Counter()

    def run(order: Order, _log: Path, _stop: threading.Event) -> Mapping[str, Json]:
        ran[order.key] += 1
        return given(order)

    _worker(share, run).work(idle=0)
    _worker(share, run).work(idle=0)
    _check_all_is_there(plan, orders)
    assert set(ran.values()) == {1}
    assert len(ran) == 50


def test_what_another_plan_has_run_is_not_run_again(share: Share) -> None:
    _post(share, 20)
    _worker(share).work(idle=0)
    posted_plan(share, "plan").remove()
    plan, orders = _post(share, 20)
    second = _worker(share, lambda *_: pytest.fail("ran"))
    second.work(idle=0)
    assert second.ran == 0
    _check_all_is_there(plan, orders)


@pytest.mark.long
def test_workers_that_are_killed_at_random_lose_nothing(share: Share) -> None:
    plan, orders = _post(share, 150)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    hosts = itertools.cycle(("one", "two", "three"))
    running = [_start(share.root, next(hosts), 0.05) for _ in range(3)]
    deadline = time.monotonic() + 120
    kills = 0
    while plan.open_batches() and time.monotonic() < deadline:
        time.sleep(chance.uniform(0.1, 0.6))
        victim = chance.randrange(len(running))
        if kills < 12:
            running[victim].kill()
            running[victim].communicate()
            kills += 1
            running[victim] = _start(share.root, next(hosts), 0.05)
    for process in running:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "do not agree" not in said
    assert kills > 3
    _check_all_is_there(plan, orders)


def test_the_claim_of_a_host_that_is_gone_is_stuck_no_longer_than_its_lease(share: Share) -> None:
    plan, orders = _post(share, 4)
    claim = share.claim(orders[0].key)
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"host": "gone", "name": "far", "pid": 1, "started": "1"}))
    began = time.time()
    _worker(share).work(idle=1.0)
    _check_all_is_there(plan, orders)
    assert outcome_place(orders[0].key, share.root).stat().st_mtime - began >= share.lease - 0.5


@pytest.mark.long
def test_two_workers_see_one_share_at_different_paths(share: Share, tmp_path: Path) -> None:
    assert os.geteuid() == 0, "this test mounts in namespaces of its own: run it as root"
    assert shutil.which("unshare"), "unshare is missing: install util-linux"
    plan, orders = _post(share, 60)
    running = []
    for name in ("here", "there"):
        place = tmp_path / name
        place.mkdir()
        hidden = f'mount --bind "$0" {place} && mount -t tmpfs none "$0" && exec "$@"'
        running.append(
            _start(place, name, 0.05, "unshare", "-m", "sh", "-c", hidden, str(share.root))
        )
    for process in running:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
    _check_all_is_there(plan, orders)
    by = Counter(
        found.table("by").take("host", str)
        for order in orders
        if (found := share.outcome(order.key))
    )
    assert set(by) == {"here", "there"}


@pytest.mark.parametrize("loss", ["lost", "cut off", "empty"])
def test_a_write_that_the_share_loses_is_noticed_and_the_guest_run_again(
    share: Share, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, orders = _post(share, 9)
    lost: list[Path] = []
    keep = Share.keep

    def losing(self: Share, place: Path, outcome: Mapping[str, Json], by: By) -> object:
        kept = keep(self, place, outcome, by)
        if len(lost) < 3:
            lost.append(place)
            if loss == "lost":
                place.unlink()
            else:
                place.write_bytes(place.read_bytes()[:-9] if loss == "cut off" else b"")
        return kept

    monkeypatch.setattr(Share, "keep", losing)
    worker = _worker(share)
    worker.work(idle=1.0)
    assert worker.ran == 9 + 3
    _check_all_is_there(plan, orders)


def test_a_batch_that_the_share_damaged_is_posted_again(share: Share) -> None:
    plan, orders = _post(share, 9)
    batches = in_batches(orders)
    damaged = plan.path / "orders" / f"{next(iter(batches))}.json"
    damaged.write_text(damaged.read_text().replace("guest 1", "guest 7"))
    _worker(share).work(idle=0)
    assert not damaged.exists()
    plan.post({}, batches)
    _worker(share).work(idle=0)
    _check_all_is_there(plan, orders)


def test_a_full_share_loses_nothing_that_was_finished(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, orders = _post(share, 4)
    monkeypatch.setattr(workers, "_FULL", 0.01)
    keep, refused = Share.keep, itertools.count()

    def full(self: Share, place: Path, outcome: Mapping[str, Json], by: By) -> object:
        if next(refused) < 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
        return keep(self, place, outcome, by)

    monkeypatch.setattr(Share, "keep", full)
    said: list[str] = []
    worker = Worker(share, lambda _: idle_runner(0), "one", said.append)
    worker.work(idle=0)
    assert worker.ran == 4
    assert said == [f"{share.root} is full: free some space there; this worker waits."]
    _check_all_is_there(plan, orders)


def _broken(*_: object) -> Mapping[str, Json]:
    raise GuestError("no memory", ["the log"])


def test_a_guest_that_fails_is_tried_by_two_hosts_each_once(share: Share) -> None:
    plan, orders = _post(share, 2)
    for host in ("one", "one", "two", "three"):
        _worker(share, _broken, host).work(idle=0)
    for order in orders:
        failures = plan.failures(order.key)
        assert [failure.take("host", str) for failure in failures] == ["one", "two"]
        assert failures[0].strings("detail") == ("the log",)


def test_a_host_that_fails_what_others_run_stops_and_is_named(share: Share) -> None:
    plan, orders = _post(share, 30)
    good = _worker(share, idle_runner(0.1), "good")
    thread = threading.Thread(target=good.work, args=(1.0,))
    thread.start()
    with pytest.raises(HostError, match=r"bad failed 3 guests in a row and one that good has run"):
        _worker(share, _broken, "bad").work(idle=30)
    thread.join()
    _check_all_is_there(plan, orders)
    stopped = [line.take("stopped", str) for _, line in plan.news({}) if line.has("stopped")]
    assert len(stopped) == 1


def test_a_host_alone_goes_on_after_failures(share: Share) -> None:
    plan, orders = _post(share, 12)
    _worker(share, _broken).work(idle=0)
    assert all(len(plan.failures(order.key)) == 1 for order in orders)


def test_cells_that_fail_on_every_host_stop_no_host(share: Share) -> None:
    _, orders = _post(share, 30)
    bad = {order.key for order in orders[:10]}

    def run(order: Order, log: Path, stop: threading.Event) -> Mapping[str, Json]:
        return _broken() if order.key in bad else given(order)

    both = [_worker(share, run, host) for host in ("one", "two")]
    threads = [threading.Thread(target=worker.work, args=(2.0,)) for worker in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plan = posted_plan(share, "plan")
    assert all(len(plan.failures(key)) == 2 for key in bad)
    assert all(share.outcome(order.key) for order in orders[10:])


def test_a_second_outcome_with_other_bytes_names_both_hosts(share: Share) -> None:
    """A lease may pass while a host sleeps: then two hosts run the same guest."""
    plan, (order,) = _post(share, 1)

    def slow(order: Order, _log: Path, _stop: threading.Event) -> Mapping[str, Json]:
        share.keep(
            outcome_place(order.key, share.root), {"commands": []},
            By("awake", "a", 1.0),
        )  # fmt: skip
        return given(order)

    said: list[str] = []
    Worker(share, lambda _: slow, "asleep", said.append).work(idle=0)
    assert "two runs of the same guest do not agree, on awake and asleep" in said[0]
    (failure,) = plan.failures(order.key)
    assert failure.take("error", str) in said[0]
    # Neither is believed.
    assert share.outcome(order.key) is None


def test_an_audit_is_done_by_another_host(share: Share) -> None:
    plan, orders = _post(share, 10, audit=True)
    both = [_worker(share, idle_runner(0.05), host) for host in ("one", "two")]
    threads = [threading.Thread(target=worker.work, args=(1.0,)) for worker in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _check_all_is_there(plan, orders)
    for order in orders:
        first, again = share.outcome(order.key), plan.audited(order.key)
        assert first is not None and again is not None
        assert first.take("digest", str) == again.take("digest", str)
        assert first.table("by").take("host", str) != again.table("by").take("host", str)


def test_a_worker_alone_audits_itself(share: Share) -> None:
    plan, orders = _post(share, 3, audit=True)
    worker = _worker(share)
    worker.work(idle=0.5)
    assert worker.ran == 6
    assert all(plan.audited(order.key) for order in orders)


def test_an_audit_that_differs_is_a_failure_that_names_its_hosts(share: Share) -> None:
    plan, (order,) = _post(share, 1, audit=True)
    times = itertools.count()

    def run(*_: object) -> Mapping[str, Json]:
        return {"commands": [next(times)]}

    _worker(share, run).work(idle=0.5)
    (failure,) = plan.failures(order.key)
    assert "do not agree, on one (they gave different bytes)" in failure.take("error", str)
    assert share.outcome(order.key) is None


def test_workers_leave_a_plan_that_is_removed(share: Share) -> None:
    plan, _ = _post(share, 30)
    ran = []

    def run(order: Order, _log: Path, _stop: threading.Event) -> Mapping[str, Json]:
        ran.append(order)
        if len(ran) == 5:
            plan.remove()
        return given(order)

    _worker(share, run).work(idle=0)
    assert len(ran) == 5
    assert not open_plans(share)


def _operations(monkeypatch: pytest.MonkeyPatch, share: Share, number: int) -> float:
    """Return how often a guest needs the file system, in a share with so many guests."""
    plan, orders = _post(share, number)
    count = itertools.count()

    def counting(original: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **named: object) -> object:
            next(count)
            return original(*arguments, **named)

        return counted

    with monkeypatch.context() as patch:
        for name in ("stat", "link", "rename", "unlink", "mkdir", "scandir", "utime", "fsync"):
            real = (lambda _: None) if name == "fsync" else getattr(os, name)
            patch.setattr(os, name, counting(real))
        patch.setattr("io.open", counting(open))
        _worker(share).work(idle=0)
    _check_all_is_there(plan, orders)
    return next(count) / number


def test_a_guest_needs_as_few_operations_in_a_long_plan_as_in_a_short_one(
    share: Share, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = _operations(monkeypatch, share, 36)
    long = _operations(
        monkeypatch, Share(open_share(tmp_path / "other", make=True).root, lease=2.0), 324
    )
    assert long <= 1.1 * short <= 50
    largest = max(
        len([*folders, *files]) for _, folders, files in os.walk(tmp_path / "other" / "plans")
    )
    assert largest <= 2 * 18


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (None, "is not a share: `firsttouch lab --on DIRECTORY` makes one"),
        ({"notes.txt": "mine"}, "is not a share: `firsttouch lab --on DIRECTORY` makes one"),
        ({"share.json": '{"schema": 7}'}, "has schema 7, but this firsttouch works with schema 1"),
        ({"share.json": "x"}, "not valid JSON"),
    ],
)
def test_what_is_no_share_is_refused(
    tmp_path: Path, contents: Mapping[str, str] | None, complaint: str
) -> None:
    root = tmp_path / "share"
    for name, text in (contents or {}).items():
        root.mkdir()
        (root / name).write_text(text)
    with pytest.raises(UserError, match=complaint):
        open_share(root)
    if contents:
        with pytest.raises(UserError, match=complaint):
            open_share(root, make=True)
