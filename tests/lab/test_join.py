# SPDX-License-Identifier: GPL-2.0
"""`lab --join`, and runs that follow other processes: the same results as here, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.errors import GuestError, HostError
from firsttouch.lab import gathering as gatherings
from firsttouch.lab.gathering import Gathering, follow
from firsttouch.lab.plan import Request
from firsttouch.lab.run import RunResults, join_run
from firsttouch.lab.shared_plan import Ended, SharedPlan
from firsttouch.lab.slurm import Partition
from firsttouch.progress import Reporter
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest
from tests.conftest import Firsttouch
from tests.lab.conftest import FakeLab, fake_outcome
from tests.support import fake_qemu
from tests.support.contract import real_contract

_SMALL = Request(
    experiments=("populate",), settings={"page": ("4k",)}, arms=("stock", "on"), size=1 << 24
)


@pytest.fixture
def follows(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Request], RunResults]]:
    """Return what has `lab --join` run the guests of a request, and follows it."""
    monkeypatch.setattr("firsttouch.lab.run.find_partition", lambda _: Partition((), 2, 0, 10))
    monkeypatch.setattr("firsttouch.lab.run.build_kernels", lambda *_: None)
    joined: list[threading.Thread] = []

    def nodes(
        gathering: Gathering, plan: SharedPlan, _partition: Partition, request: Request, _: Reporter
    ) -> None:
        def attend(_done: int) -> None:
            if not joined:
                same = replace(request, on="here", jobs=1)
                arguments = (same, real_contract(), Reporter())
                joined.append(threading.Thread(target=join_run, args=arguments))
                joined[0].start()

        follow(gathering, plan, attend)
        joined.pop().join()

    monkeypatch.setattr("firsttouch.lab.run.follow_nodes", nodes)
    yield lambda request: fake_lab.run(replace(request, on="slurm"))
    for thread in joined:
        thread.join()


def _bytes(request: Request) -> bytes:
    return (request.out / "results.jsonl").read_bytes()


def _hosts(request: Request) -> dict[str, list[dict[str, object]]]:
    document: dict[str, list[dict[str, object]]] = json.loads(
        (request.out / "hosts.json").read_text()
    )
    return document


@pytest.mark.long
def test_results_are_those_of_here_byte_for_byte(
    fake_lab: FakeLab, own_cache: Path, follows: Callable[[Request], RunResults]
) -> None:
    here = replace(_SMALL, out=fake_lab.out / "here")
    there = replace(_SMALL, out=fake_lab.out / "there", audit=0.5)
    fake_lab.run(here)
    shutil.rmtree(own_cache / "outcomes")
    fake_lab.ran.clear()
    assert not follows(there).failures
    assert _bytes(there) == _bytes(here)
    hosts = _hosts(there)
    assert len(hosts["guests"]) == 16
    assert len(hosts["audited"]) == len(fake_lab.ran) - 16 > 0
    # Nothing is left of the plan.
    assert not list((own_cache / "plans").iterdir())


@pytest.mark.long
def test_a_guest_that_fails_is_reported_once_with_its_log(
    fake_lab: FakeLab, follows: Callable[[Request], RunResults], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(guest: Guest, log: Path, **more: object) -> dict[str, Json]:
        log.write_text("the kernel's log\n")
        return fake_lab.guest_outcome(guest, log)

    monkeypatch.setattr("firsttouch.lab.execution.guest_outcome", outcome)
    fake_lab.failing = {"--by swp ": GuestError("it broke", ["the log"])}
    request = replace(_SMALL, out=fake_lab.out)
    ended = follows(request)
    assert len(ended.results) == 14
    assert {cell.params["by"] for cell, _ in ended.failures} == {"swp"}
    assert len(ended.failures) == 2
    for cell, error in ended.failures:
        assert (str(error), [*error.detail]) == ("it broke", ["the log"])
        assert (fake_lab.out / "log" / cell.log_name).read_text() == "the kernel's log\n"
    # The same command tries them again, as it does here.
    fake_lab.failing = {}
    assert len(follows(request).results) == 16


def test_a_run_looks_at_some_of_its_guests_at_a_time(
    fake_lab: FakeLab, follows: Callable[[Request], RunResults], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at 100,000 guests takes longer than the time between two."""
    monkeypatch.setattr(gatherings, "_LOOKED_AT", 5)
    looks: list[int] = [0]
    how_ended = SharedPlan.how_ended

    def count(plan: SharedPlan, key: str, *, others_may_come: bool = False) -> Ended | None:
        looks[-1] += threading.current_thread() is threading.main_thread()
        return how_ended(plan, key, others_may_come=others_may_come)

    monkeypatch.setattr(SharedPlan, "how_ended", count)
    monkeypatch.setattr("firsttouch.lab.gathering.time.sleep", lambda _: looks.append(0))
    assert len(follows(replace(_SMALL, out=fake_lab.out)).results) == 16
    assert len(looks) > 3
    assert max(looks) <= 5


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_an_audit_that_differs_fails_the_run(
    fake_lab: FakeLab, own_cache: Path, follows: Callable[[Request], RunResults], where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    times = iter(range(1000))

    def chance(guest: Guest, _log: Path, **_: object) -> dict[str, Json]:
        return {**fake_outcome(guest), "chance": next(times)}

    monkeypatch.setattr("firsttouch.lab.execution.guest_outcome", chance)
    request = replace(_SMALL, out=fake_lab.out, audit=1.0)
    outcome = fake_lab.run(request) if where == "here" else follows(request)
    assert len(outcome.failures) == 16
    assert not outcome.results
    assert not _bytes(request)
    # Nothing that was in doubt is kept.
    keys = [path.stem for path in own_cache.glob("outcomes/*/*.json")]
    assert len(keys) == 1, "the guard's alone"
    assert all("do not agree, on" in str(error) for _, error in outcome.failures)


@pytest.mark.long
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_what_the_store_has_can_be_audited(
    fake_lab: FakeLab, follows: Callable[[Request], RunResults], where: str
) -> None:
    fake_lab.run(replace(_SMALL, out=fake_lab.out))
    request = replace(_SMALL, out=fake_lab.out, audit=1.0)
    # Each audit runs them once more.
    for _ in range(2):
        fake_lab.ran.clear()
        outcome = fake_lab.run(request) if where == "here" else follows(request)
        assert not outcome.failures
        assert len(outcome.results) == len(fake_lab.ran) == len(_hosts(request)["audited"]) == 16
        assert not _hosts(request)["guests"]


def test_an_outcome_that_a_server_lost_is_a_failure(
    fake_lab: FakeLab, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that crashes may lose what it acknowledged."""
    take = Gathering.take

    def losing(self: Gathering, key: str, ended: Ended) -> None:
        if len(self.left) == 3:
            (own_cache / "outcomes" / key[:2] / f"{key}.json").unlink()
        take(self, key, ended)

    with monkeypatch.context() as patch:
        patch.setattr(Gathering, "take", losing)
        outcome = fake_lab.run(replace(_SMALL, out=fake_lab.out, jobs=1))
    assert len(outcome.results) == 15
    ((_, error),) = outcome.failures
    assert "is no longer in the store" in str(error)
    assert len(fake_lab.run(replace(_SMALL, out=fake_lab.out)).results) == 16


@pytest.fixture
def begun(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that has begun and was interrupted; return the folder of its plan."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("firsttouch.lab.execution.Execution._work", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fake_lab.run(replace(_SMALL, out=fake_lab.out))
    (plan,) = (fake_lab.parts.parent / "cache/firsttouch/plans").iterdir()
    return plan


def _refusal(request: Request = _SMALL) -> str:
    with pytest.raises(HostError) as error:
        join_run(request, real_contract(), Reporter())
    return str(error.value)


def test_a_run_that_has_not_begun_cannot_be_joined(fake_lab: FakeLab) -> None:
    assert _refusal().startswith("no run of this plan is under way in ")
    assert not fake_lab.ran


def test_a_run_of_other_options_cannot_be_joined(fake_lab: FakeLab, begun: Path) -> None:
    assert begun.is_dir()
    other = replace(_SMALL, settings={"page": ("64k",)})
    assert _refusal(other).startswith("no run of this plan is under way in ")
    assert not fake_lab.ran


def test_a_host_that_would_run_other_guests_says_why(
    fake_lab: FakeLab, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert begun.is_dir()
    fake_qemu.install(tmp_path / "tools", monkeypatch)
    monkeypatch.setattr("firsttouch.lab.shared_plan.socket.gethostname", lambda: "other")
    said = _refusal()
    assert said.startswith("other has another QEMU than ")
    assert "and so makes other guests: install the same on both." in said
    assert not fake_lab.ran


def test_the_command_joins_a_run(
    fake_lab: FakeLab, begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lab", *_SMALL.words(), "--join", "--jobs", "2"]
    assert main(words) == 0
    assert len(fake_lab.ran) == 16
    printed = capsys.readouterr()
    assert "This host ran 16 guests; the run has none left." in " ".join(printed.err.split())
    assert not printed.out
    assert not begun.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["lab", "--on", "slrum"], "--on slrum: write here, slurm or slurm:PARTITION; other hosts"),
        (["lab", "--on", "./share"], "--on ./share: write here, slurm or slurm:PARTITION"),
        (["lab", "--join", "--on", "slurm"], "--join runs guests on this host: leave out --on"),
        (["lab", "--audit", "some"], "--audit some: write a percentage, such as 1%."),
        (["lab", "--audit", "0%"], "--audit 0%: write a percentage"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert complaint in said
    assert said.startswith("firsttouch: ")


def test_the_options_of_a_request_ask_for_the_same_plan() -> None:
    """A job of Slurm gets them."""
    request = Request(
        release="7.3", machines=("cortex-a72",), experiments=("populate", "cow"),
        arms=("stock", "on"), size=1 << 24, settings={"page": ("4k",), "by": ("ldadd", "store")},
        layouts=(3, 4, 5), quick=True, audit=0.015,
    )  # fmt: skip
    asked: list[Request] = []

    def join(request: Request, *_: object) -> int:
        asked.append(request)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firsttouch.cli.lab.join_run", join)
        assert main(["lab", *request.words(), "--join"]) == 0
    assert asked == [request]


# A guest on a stock kernel, two on a changed one, and the guard's.
_PLAN = (
    "--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k", "--size", "4M",
    "--arm", "stock", "--arm", "off", "--arm", "on",
)  # fmt: skip
# What is found in the recording needs the programs, for their symbols.
_RECORDED = ("--experiment", "doubles", "--set", "program=bc", "--arm", "stock")


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("plan", "cells"), [(_PLAN, 3), pytest.param(_RECORDED, 1, marks=pytest.mark.regress)]
)
def test_two_processes_give_the_bytes_of_one(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]], tmp_path: Path,
    plan: Sequence[str], cells: int,
) -> None:  # fmt: skip
    here = firsttouch("lab", *plan, "--out", "here", **own_outcomes("store-here"))
    assert here.returncode == 0, here.stderr
    store = own_outcomes("store-there")
    words = ("lab", *plan, "--audit", "100%")
    front = firsttouch.start(*words, "--out", "there", "--jobs", "1", **store)
    running = tmp_path / "store-there/firsttouch/plans"
    while not list(running.glob("*/running/*")):
        assert front.poll() is None, front.communicate()
        time.sleep(0.05)
    joined = firsttouch(*words, "--join", "--jobs", "1", **store)
    said = front.communicate(timeout=900)[1]
    assert (front.returncode, joined.returncode) == (0, 0), said + joined.stderr
    for name in ("results.jsonl", "summary.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    hosts = json.loads((tmp_path / "there" / "hosts.json").read_text())
    assert len(hosts["audited"]) == len(hosts["guests"]) == cells
    assert f"{cells} gave the same bytes" in said
    ran = re.search(r"This host ran (\d) guest", joined.stderr)
    assert ran and (cells == 1 or 0 < int(ran[1]) < 2 * cells)
