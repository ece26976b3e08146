# SPDX-License-Identifier: GPL-2.0
"""`lab --on DIRECTORY`: the same results as here, from workers that have only the share."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.build.outcomes import outcome_place
from firsttouch.cli.main import main
from firsttouch.errors import GuestError, HostError
from firsttouch.files import digest
from firsttouch.lab import follow
from firsttouch.lab.follow import Crew, Tend
from firsttouch.lab.layouts import layout_of
from firsttouch.lab.orders import make_guest_runner
from firsttouch.lab.plan import Request
from firsttouch.lab.posted import PostedPlan, open_plans
from firsttouch.lab.share import By, Share, open_share
from firsttouch.lab.worker import Worker
from firsttouch.progress import Reporter
from firsttouch.tables import Json, Table
from firsttouch.vm.guest import Guest
from tests.lab.conftest import FakeLab, fake_outcome
from tests.support import fake_qemu

_SMALL = Request(
    experiments=("populate",), settings={"page": ("4k",)}, arms=("stock", "on"), size=1 << 24
)


@pytest.fixture
def elsewhere(fake_lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a share; guests of its workers are not booted either."""

    def outcome(guest: Guest, log: Path, **_: object) -> dict[str, Json]:
        for word, error in fake_lab.failing.items():
            if any(word in command for command in guest.commands):
                log.write_text("the kernel's log\n")
                raise error
        fake_lab.ran.append(guest)
        return fake_outcome(guest)

    monkeypatch.setattr("firsttouch.lab.orders.guest_outcome", outcome)
    monkeypatch.setattr("firsttouch.lab.here.guest_outcome", outcome)
    open_share(tmp_path / "share", make=True)
    return tmp_path / "share"


def _tended(monkeypatch: pytest.MonkeyPatch, tend: Tend) -> None:
    """Have `tend` look after the workers of `--on DIRECTORY`."""
    monkeypatch.setattr(
        "firsttouch.lab.run.by_hand", lambda share, _: nullcontext(Crew(share, tend))
    )


@contextmanager
def _workers(root: Path, *hosts: str) -> Iterator[list[Worker]]:
    stop = threading.Event()
    share = Share(open_share(root).root, lease=2.0)
    make = make_guest_runner(Reporter())
    working = [Worker(share, make, host, lambda _: None, stop) for host in hosts]
    threads = [threading.Thread(target=worker.work, args=(600,)) for worker in working]
    for thread in threads:
        thread.start()
    try:
        yield working
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _forget(own_cache: Path) -> None:
    shutil.rmtree(own_cache / "outcomes")


def _bytes(request: Request) -> bytes:
    return (request.out / "results.jsonl").read_bytes()


def _hosts(request: Request) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads((request.out / "hosts.json").read_text())
    return found


def test_results_are_those_of_here_byte_for_byte(
    fake_lab: FakeLab, elsewhere: Path, own_cache: Path
) -> None:
    here = replace(_SMALL, out=fake_lab.out / "here")
    there = replace(_SMALL, out=fake_lab.out / "there", on=str(elsewhere), audit=0.5)
    fake_lab.run(here)
    _forget(own_cache)
    fake_lab.ran.clear()
    with _workers(elsewhere, "one", "two") as workers:
        outcome = fake_lab.run(there)
    assert not outcome.failures
    assert _bytes(there) == _bytes(here)
    assert sum(worker.ran for worker in workers) == len(fake_lab.ran) > 16
    hosts = _hosts(there)
    assert len(hosts["guests"]) == 16
    assert set(hosts["hosts"]) <= {"one", "two"}
    assert len(hosts["audited"]) == len(fake_lab.ran) - 16
    # Where it ran is in no result.
    assert b'"one"' not in _bytes(there)
    # Nothing is left of the plan, and all outcomes are.
    assert not open_plans(open_share(elsewhere))
    assert len(list(elsewhere.glob("outcomes/*/*.json"))) == 16
    # A worker's guests are made of the parts in its own store, which the share gave it.
    assert all(guest.image.is_relative_to(own_cache / "parts") for guest in fake_lab.ran)


def test_a_worker_makes_the_guest_of_a_layout(fake_lab: FakeLab, elsewhere: Path) -> None:
    request = replace(
        _SMALL, settings={"page": ("4k",), "by": ("ldadd",)}, layouts=(4,),
        out=fake_lab.out, on=str(elsewhere),
    )  # fmt: skip
    with _workers(elsewhere, "one"):
        outcome = fake_lab.run(request)
    assert not outcome.failures
    assert [guest.kaslr_seed for guest in fake_lab.ran] == 2 * [layout_of(4).kaslr_seed]


def test_a_run_that_was_interrupted_is_joined_by_the_same_command(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    request = replace(_SMALL, out=fake_lab.out, on=str(elsewhere))

    def interrupt(_plan: PostedPlan, _living: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        _tended(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            fake_lab.run(request)
    (plan,) = open_plans(open_share(elsewhere))
    assert f"The workers go on. To cancel what they have left: rm -r {plan.path}" in (
        capsys.readouterr().err.replace("\n", " ")
    )
    batches = plan.batches()
    Worker(open_share(elsewhere), make_guest_runner(Reporter()), "one", print).work(idle=0)
    assert len(fake_lab.ran) == 16
    joined: list[list[str]] = []

    def note(found: PostedPlan, _living: int) -> None:
        joined.append(found.batches())

    _tended(monkeypatch, note)
    outcome = fake_lab.run(request)
    assert len(outcome.results) == 16
    assert len(fake_lab.ran) == 16
    assert all(found == batches for found in joined)


def test_a_guest_that_fails_is_reported_once_with_its_log(
    fake_lab: FakeLab, elsewhere: Path
) -> None:
    fake_lab.failing = {"--by swp ": GuestError("it broke", ["the log"])}
    request = replace(_SMALL, out=fake_lab.out, on=str(elsewhere))
    with _workers(elsewhere, "one", "two"):
        outcome = fake_lab.run(request)
    assert len(outcome.results) == 14
    assert {cell.params["by"] for cell, _ in outcome.failures} == {"swp"}
    assert len(outcome.failures) == 2
    for cell, error in outcome.failures:
        assert (str(error), error.detail) == ("it broke", ["the log"])
        assert (fake_lab.out / "log" / cell.log_name).read_text() == "the kernel's log\n"
    # The same command tries them again, as it does here.
    fake_lab.failing = {}
    with _workers(elsewhere, "one"):
        assert len(fake_lab.run(request).results) == 16


def test_a_quiet_run_looks_at_some_of_its_guests_at_a_time(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """News may be lost, and a look at 100,000 guests takes longer than the time between two."""
    monkeypatch.setattr(follow, "_LOOKED_AT", 5)
    monkeypatch.setattr(PostedPlan, "tell", lambda *_: None)
    looks: list[int] = []

    def note(plan: PostedPlan, _living: int) -> None:
        looks.append(len(looked))
        looked.clear()

    looked: list[str] = []
    failures = PostedPlan.failures

    def count(plan: PostedPlan, key: str) -> list[Table]:
        if threading.current_thread() is threading.main_thread():
            looked.append(key)
        return failures(plan, key)

    monkeypatch.setattr(PostedPlan, "failures", count)
    _tended(monkeypatch, note)
    with _workers(elsewhere, "one"):
        outcome = fake_lab.run(replace(_SMALL, out=fake_lab.out, on=str(elsewhere)))
    assert len(outcome.results) == 16
    assert len(looks) > 3
    assert max(looks) <= 5


def test_one_host_alone_fails_a_guest_for_good(fake_lab: FakeLab, elsewhere: Path) -> None:
    fake_lab.failing = {"--by swp ": GuestError("it broke")}
    with _workers(elsewhere, "one", "one"):
        outcome = fake_lab.run(replace(_SMALL, out=fake_lab.out, on=str(elsewhere)))
    assert len(outcome.failures) == 2


@pytest.mark.parametrize("on", ["here", "elsewhere"])
def test_an_audit_that_differs_fails_the_run(
    fake_lab: FakeLab, elsewhere: Path, own_cache: Path, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(1000))

    def chance(guest: Guest, _log: Path, **_: object) -> dict[str, Json]:
        return {**fake_outcome(guest), "chance": next(times)}

    monkeypatch.setattr("firsttouch.lab.orders.guest_outcome", chance)
    monkeypatch.setattr("firsttouch.lab.here.guest_outcome", chance)
    where = "here" if on == "here" else str(elsewhere)
    request = replace(_SMALL, out=fake_lab.out, on=where, audit=1.0)
    with _workers(elsewhere, "one", "two"):
        outcome = fake_lab.run(request)
    assert len(outcome.failures) == 16
    assert not outcome.results
    assert not _bytes(request)
    # Nothing that was in doubt is kept.
    keys = [path.stem for path in own_cache.glob("outcomes/*/*.json")]
    assert len(keys) == 1, "the guard's alone"
    assert all("do not agree, on" in str(error) for _, error in outcome.failures)
    assert not list(elsewhere.glob("outcomes/*/*.json"))


@pytest.mark.parametrize("on", ["here", "elsewhere"])
def test_what_the_store_has_can_be_audited(fake_lab: FakeLab, elsewhere: Path, on: str) -> None:
    fake_lab.run(replace(_SMALL, out=fake_lab.out))
    fake_lab.ran.clear()
    where = "here" if on == "here" else str(elsewhere)
    request = replace(_SMALL, out=fake_lab.out, on=where, audit=1.0)
    with _workers(elsewhere, "one"):
        outcome = fake_lab.run(request)
    assert not outcome.failures
    assert len(outcome.results) == len(fake_lab.ran) == len(_hosts(request)["audited"]) == 16
    assert not _hosts(request)["guests"]


def test_an_audit_finds_that_store_and_share_differ(
    fake_lab: FakeLab, elsewhere: Path, own_cache: Path
) -> None:
    done = fake_lab.run(replace(_SMALL, out=fake_lab.out))
    (result, *_) = done.results
    share = open_share(elsewhere)
    kept = [path.stem for path in own_cache.glob("outcomes/*/*.json")]
    (key,) = [key for key in kept if digest([key, 0]) == result.key]
    share.keep(outcome_place(key, share.root), {"commands": []}, By("one", "one~1", 1.0))
    request = replace(_SMALL, out=fake_lab.out, on=str(elsewhere), audit=1.0)
    with _workers(elsewhere, "two"):
        outcome = fake_lab.run(request)
    ((cell, error),) = outcome.failures
    assert cell == result.cell
    assert "two runs of the same guest do not agree, on one and " in str(error)


@pytest.mark.parametrize("loss", ["outcome", "part", "batch"])
def test_what_the_share_loses_is_made_again(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Lost after it was written and seen: a server that crashes may lose what it acknowledged."""
    lost: list[Path] = []
    tell = PostedPlan.tell

    def losing(plan: PostedPlan, worker: str, news: Mapping[str, Json]) -> None:
        if not lost and "key" in news:
            (file, *_) = {
                "outcome": [outcome_place(str(news["key"]), elsewhere)],
                "part": [*elsewhere.glob("parts/*/*")],
                "batch": [*plan.path.glob("orders/*")],
            }[loss]
            file.unlink()
            lost.append(file)
        tell(plan, worker, news)

    monkeypatch.setattr(PostedPlan, "tell", losing)
    with _workers(elsewhere, "one", "two"):
        outcome = fake_lab.run(replace(_SMALL, out=fake_lab.out, on=str(elsewhere)))
    assert len(outcome.results) == 16
    assert lost


def test_a_part_that_is_damaged_is_copied_again(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged: list[Path] = []

    def damage(plan: PostedPlan, _living: int) -> None:
        if not damaged:
            (file, *_) = elsewhere.glob("parts/*/*")
            file.write_text("x" * file.stat().st_size)
            damaged.append(file)
            thread.start()

    _tended(monkeypatch, damage)
    worker = Worker(open_share(elsewhere), make_guest_runner(Reporter()), "one", print)
    thread = threading.Thread(target=worker.work, args=(600,))
    outcome = fake_lab.run(replace(_SMALL, out=fake_lab.out, on=str(elsewhere)))
    worker.stop.set()
    thread.join()
    assert len(outcome.results) == 16
    assert damaged


def _posted(fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a plan in the share."""

    def interrupt(_plan: PostedPlan, _living: int) -> None:
        raise KeyboardInterrupt

    _tended(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        fake_lab.run(replace(_SMALL, out=fake_lab.out, on=str(elsewhere)))


def _refusal(elsewhere: Path) -> str:
    worker = Worker(open_share(elsewhere), make_guest_runner(Reporter()), "other", print)
    with pytest.raises(HostError) as error:
        worker.work(idle=0)
    (plan,) = open_plans(open_share(elsewhere))
    ((name, line),) = plan.news({})
    assert name.startswith("other~")
    assert line.take("stopped", str) == str(error.value)
    return str(error.value)


def test_another_qemu_is_refused_in_one_sentence(
    fake_lab: FakeLab, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _posted(fake_lab, elsewhere, monkeypatch)
    fake_qemu.install(tmp_path / "tools", monkeypatch)
    monkeypatch.setattr(socket, "gethostname", lambda: "other")
    assert _refusal(elsewhere).startswith("other has another QEMU than the run (QEMU")
    assert not fake_lab.ran


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("digest_files", "it has another code of firsttouch than the run"),
        ("output", "it has another device tree compiler than the run"),
        ("", "from the same files"),
    ],
)
def test_a_host_that_would_run_another_guest_says_why(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    _posted(fake_lab, elsewhere, monkeypatch)
    monkeypatch.setattr("firsttouch.lab.orders.guest_key", lambda _: "0" * 64)
    if what:
        monkeypatch.setattr(f"firsttouch.lab.orders.{what}", lambda *_: "another")
    assert said in _refusal(elsewhere)
    assert not fake_lab.ran


# -- the command line


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["lab", "--on", "slrum"],
            "--on slrum: write here, slurm, slurm:PARTITION, or a directory as",
        ),
        (["lab", "--audit", "some"], "--audit some: write a percentage, such as 1%."),
        (["lab", "--audit", "0%"], "--audit 0%: write a percentage"),
        (["worker"], "the following arguments are required: SHARE"),
        (["worker", "/nowhere"], "/nowhere is not a share: `firsttouch lab --on DIRECTORY`"),
        (["worker", "/proc"], "/proc is not a share"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = _said(capsys)
    assert complaint in said
    assert said.startswith("firsttouch: ")


@pytest.mark.long
def test_a_share_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_share(tmp_path / "share", make=True)

    def refuse(_self: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    assert main(["worker", str(tmp_path / "share")]) == 2
    assert "as a share (Permission denied): give a directory that this user can write" in (
        _said(capsys)
    )


def test_the_worker_of_the_command_line_runs_a_plan(
    fake_lab: FakeLab, elsewhere: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _posted(fake_lab, elsewhere, monkeypatch)
    assert main(["worker", str(elsewhere), "--jobs", "2", "--idle", "0"]) == 0
    assert len(fake_lab.ran) == 16
    said = _said(capsys)
    assert f"takes guests from {elsewhere}, 2 guests at once." in said
    assert "ran 16 guests; the share has none left." in said
