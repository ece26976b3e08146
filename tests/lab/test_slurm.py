# SPDX-License-Identifier: GPL-2.0
"""Slurm's commands: what they print is recorded from 22.05.8, what they are given is checked."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.errors import HostError, UserError
from firsttouch.lab import slurm, slurm_jobs
from firsttouch.lab.gathering import Gathering
from firsttouch.lab.hosts import Record
from firsttouch.lab.plan import Request
from firsttouch.lab.shared_plan import shared_plan
from firsttouch.lab.slurm import Partition, Task
from firsttouch.lab.slurm_jobs import Array, follow_nodes
from firsttouch.progress import Reporter
from tests.support.guest_runs import execute, idle, make_jobs

_SINFO = "cells*|0/4/0/4|24000\nminute|2/1/1/4|64000+\nminute|0/4/4/8|1\n"
_SQUEUE = """\
3|PENDING|Resources|
3|PENDING|Resources|
4|PENDING|BeginTime|
2|RUNNING|None|ftn1
2|RUNNING|None|ftn2
"""
_CONFIG = """\
Configuration data as of 2026-11-23T04:36:26
MailProg                = /usr/bin/mail
MaxArraySize            = 11
MaxBatchRequeue         = 5
"""
_REFUSED = """\
sbatch: error: invalid partition specified: nope
sbatch: error: Batch job submission failed: Invalid partition name specified
"""
_DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
_KILLED = (
    "slurmstepd-ftn1: error: *** JOB 8 ON ftn1 CANCELLED AT 2026-11-23 DUE TO TIME LIMIT ***\n"
)


@dataclass
class FakeSlurm:
    """Slurm's commands as scripts: each prints what it was told, and notes what it was given."""

    directory: Path
    out: io.StringIO

    def answers(self, command: str, printed: str, error: str = "") -> None:
        """From now on `command` prints that, or fails with an `error`."""
        (self.directory / f"{command}.out").write_text(printed)
        (self.directory / f"{command}.err").write_text(error)
        script = self.directory / command
        script.write_text(
            '#!/bin/sh\n{ for word; do printf "%s\\0" "$word"; done; echo; } >>"$0.given"\n'
            f'cat "$0.out"; cat "$0.err" >&2; exit {int(bool(error))}\n'
        )
        script.chmod(0o755)

    def given(self, command: str) -> list[list[str]]:
        """Return the words of each call of `command`."""
        file = self.directory / f"{command}.given"
        calls = file.read_text().splitlines() if file.exists() else []
        return [call.removesuffix("\0").split("\0") for call in calls]


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path / "bin", io.StringIO())
    fake.directory.mkdir()
    monkeypatch.setenv("PATH", f"{fake.directory}:/usr/bin:/bin")
    monkeypatch.setattr(slurm_jobs, "_EVERY", 0)
    fake.answers("sinfo", _SINFO)
    fake.answers("squeue", "")
    fake.answers("sbatch", "7\n")
    fake.answers("scontrol", _CONFIG)
    fake.answers("scancel", "")
    return fake


@pytest.fixture
def array(fake_slurm: FakeSlurm, tmp_path: Path) -> Array:
    reporter = Reporter(Console(file=fake_slurm.out, width=1000))
    return Array("ft-1", "exec run 'a b'", ("--partition=p",), 3, "guests", tmp_path / "a%b",
                 reporter)  # fmt: skip


def test_the_partition_is_the_named_or_the_default_one(fake_slurm: FakeSlurm) -> None:
    assert slurm.find_partition("") == Partition((), 4, 24000 << 20, 11)
    # CPUs that are allocated or idle, and the node with the least memory.
    assert slurm.find_partition("minute") == Partition(("--partition=minute",), 7, 1 << 20, 11)
    with pytest.raises(UserError, match=r"slurm:minutes: no such partition; did you mean 'minute'"):
        slurm.find_partition("minutes")
    fake_slurm.answers("sinfo", _SINFO.replace("*", ""))
    with pytest.raises(UserError, match=r"--on slurm:NAME \(cells, minute\)"):
        slurm.find_partition("")


def test_a_guest_asks_for_memory_only_where_slurm_knows_that_of_nodes() -> None:
    assert Partition((), 4, 24000 << 20, 11).guest_options()[-1] == "--mem=5120M"
    assert not any("mem" in option for option in Partition((), 4, 1 << 20, 11).guest_options())


def test_a_host_without_slurm_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="sbatch is not on PATH: run this on a front end"):
        slurm.find_partition("")


def test_tasks_are_read(fake_slurm: FakeSlurm) -> None:
    fake_slurm.answers("squeue", _SQUEUE)
    tasks = slurm.live_tasks("ft-1")
    assert tasks is not None
    assert tasks[0] == Task("3", "PENDING", "Resources", "")
    assert slurm.describe(tasks) == "2 run, 1 wait (BeginTime), 2 wait (Resources)"
    ((*_, name, _, _),) = fake_slurm.given("squeue")
    assert name == "ft-1"


def test_an_array_is_submitted_once_and_its_end_is_seen_twice(
    fake_slurm: FakeSlurm, array: Array, tmp_path: Path
) -> None:
    array.attend(0)
    assert fake_slurm.given("sbatch") == [[
        "--parsable", "--job-name=ft-1", "--array=0-2", "--requeue", "--open-mode=append",
        "--export=ALL", "--partition=p", f"--output={tmp_path}/a%%b/ft-1-%A-%a-%N.log",
        "--wrap", "exec run 'a b'",
    ]]  # fmt: skip
    fake_slurm.answers("squeue", "7|RUNNING|None|n1\n7|PENDING|Priority|\n")
    array.attend(0)
    array.attend(0)
    fake_slurm.answers("squeue", "")
    array.attend(1)
    assert len(fake_slurm.given("sbatch")) == 1
    array.attend(1)
    assert len(fake_slurm.given("sbatch")) == 2
    said = fake_slurm.out.getvalue().splitlines()
    assert [re.sub(r", logs.*", "", line) for line in said] == [
        "Slurm job 7: guests: 3 tasks",
        "Slurm job 7: guests: 1 run, 1 wait (Priority).",
        "All tasks of Slurm job 7 have ended, and work is left.",
        "Slurm job 7: guests: 3 tasks",
    ]


def test_jobs_that_are_there_are_joined(fake_slurm: FakeSlurm, array: Array) -> None:
    fake_slurm.answers("squeue", "5|RUNNING|None|n1\n")
    array.attend(0)
    assert not fake_slurm.given("sbatch")
    with pytest.raises(KeyboardInterrupt), array.followed():
        raise KeyboardInterrupt
    assert "Slurm job 5 goes on" in fake_slurm.out.getvalue()
    assert "`scancel 5` ends it" in fake_slurm.out.getvalue()
    # Once they have ended, the work that is left needs others.
    fake_slurm.answers("squeue", "")
    array.attend(0)
    array.attend(0)
    assert len(fake_slurm.given("sbatch")) == 1


def test_tasks_that_slurm_holds_are_replaced(fake_slurm: FakeSlurm, array: Array) -> None:
    """So it does to a task whose launch its controller did not outlive."""
    array.attend(0)
    held = "7|PENDING|launch failed requeued held|\n"
    fake_slurm.answers("squeue", f"{held}7|RUNNING|None|n1\n")
    array.attend(0)
    assert not fake_slurm.given("scancel")
    fake_slurm.answers("squeue", held)
    array.attend(1)
    assert fake_slurm.given("scancel") == [["--quiet", "7"]]
    fake_slurm.answers("squeue", "")
    array.attend(1)
    array.attend(1)
    assert len(fake_slurm.given("sbatch")) == 2


def test_jobs_are_ended_once_the_controller_answers(fake_slurm: FakeSlurm, array: Array) -> None:
    array.cancel()
    assert not fake_slurm.given("scancel")
    array.attend(0)
    fake_slurm.answers("scancel", "", _DOWN)
    array.cancel()
    assert fake_slurm.given("scancel") == [["--quiet", "7"]] * 12


def test_a_controller_that_does_not_answer_is_waited_for(
    fake_slurm: FakeSlurm, array: Array
) -> None:
    array.attend(0)
    fake_slurm.answers("squeue", "", _DOWN)
    for _ in range(5):
        array.attend(0)
    assert len(fake_slurm.given("sbatch")) == 1
    assert fake_slurm.out.getvalue().count("controller does not answer") == 1


@pytest.mark.parametrize("error", [_DOWN, "sbatch: error: Socket timed out on send/recv\n"])
def test_a_lost_reply_submits_nothing_twice(
    fake_slurm: FakeSlurm, array: Array, error: str
) -> None:
    fake_slurm.answers("sbatch", "", error)
    array.attend(0)
    fake_slurm.answers("squeue", "9|RUNNING|None|n1\n")
    array.attend(0)
    assert len(fake_slurm.given("sbatch")) == 1
    assert array.job == "9"


def test_what_sbatch_refuses_is_shown(fake_slurm: FakeSlurm, array: Array) -> None:
    fake_slurm.answers("sbatch", "", _REFUSED)
    with pytest.raises(HostError, match="Slurm refuses the guests: see below") as raised:
        array.attend(0)
    assert raised.value.detail == _REFUSED.splitlines()


def _end_arrays(array: Array, times: int, done: Callable[[int], int]) -> None:
    for number in range(times):
        array.attend(done(number))
        array.attend(done(number))


def test_arrays_that_end_and_do_nothing_are_an_error(fake_slurm: FakeSlurm, array: Array) -> None:
    array.attend(0)
    (array.logs / "ft-1-7-0-n1.log").write_text(_KILLED)
    _end_arrays(array, 8, lambda number: number + 1)
    with pytest.raises(HostError, match="SBATCH_TIMELIMIT") as raised:
        _end_arrays(array, 3, lambda _: 8)
    assert raised.value.detail == _KILLED.splitlines()
    assert len(fake_slurm.given("sbatch")) == 1 + 8 + 2


@pytest.mark.parametrize(
    ("said", "submitted"),
    [("firsttouch: n1 has another QEMU.", 1), ("firsttouch: interrupted.", 2)],
)
def test_a_command_that_says_why_it_ended_is_not_repeated(
    fake_slurm: FakeSlurm, array: Array, said: str, submitted: int
) -> None:
    array.attend(0)
    (array.logs / "ft-1-7-0-n1.log").write_text(f"Running\n{said}\n")
    array.attend(0)
    if submitted == 1:
        with pytest.raises(HostError) as raised:
            array.attend(0)
        assert said in raised.value.detail
    else:
        array.attend(0)
    assert len(fake_slurm.given("sbatch")) == submitted


def test_a_task_that_says_why_it_ended_is_told_once_with_its_node(
    fake_slurm: FakeSlurm, array: Array
) -> None:
    array.attend(0)
    fake_slurm.answers("squeue", "7|RUNNING|None|n2\n")
    (array.logs / "ft-1-7-0-n1.log").write_text("firsttouch: QEMU failed: install it.\n")
    array.attend(0)
    array.attend(0)
    said = fake_slurm.out.getvalue()
    assert said.count("A job on n1 ended: QEMU failed: install it.") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("wanted", "guests", "count"), [(None, 9, 4), (2, 9, 2), (7, 3, 3), (20, 99, 11)]
)
def test_there_are_as_many_jobs_as_have_guests_and_an_array_may_have(
    fake_slurm: FakeSlurm, tmp_path: Path, own_cache: Path, wanted: int | None, guests: int,
    count: int,
) -> None:  # fmt: skip
    reporter = Reporter(Console(file=fake_slurm.out, width=1000))
    jobs = make_jobs(guests)
    plan = shared_plan(jobs, ())
    gathering = Gathering(
        {key: [job] for key, job in jobs.items()}, frozenset(jobs), tmp_path, reporter, Record(),
        lambda _: None,
    )  # fmt: skip
    request = Request(release="7.3", workers=wanted, settings={"by": ("ldadd",)})
    # A job that was submitted runs, however slow this host is.
    sbatch = fake_slurm.directory / "sbatch"
    running = "echo '7|RUNNING|None|n1' >\"${0%sbatch}squeue.out\"; exit 0"
    sbatch.write_text(sbatch.read_text().replace("exit 0", running))
    # What runs the guests is this host, when the array has been submitted.
    given_words = fake_slurm.directory / "sbatch.given"

    def run_guests() -> None:
        while not given_words.exists():
            time.sleep(0.01)
        execute(plan, jobs, idle(0), "n1")

    submitted = threading.Thread(target=run_guests)
    submitted.start()
    follow_nodes(gathering, plan, slurm.find_partition("cells"), request, reporter)
    submitted.join()
    # On a busy host it is submitted again: no job of it is in the queue, and guests are left.
    given, *_ = fake_slurm.given("sbatch")
    assert f"--array=0-{count - 1}" in given
    assert "--partition=cells" in given and "--mem=5120M" in given
    assert shlex.split(given[-1])[2:] == [
        "-m", "firsttouch", "lab", "--release", "7.3", "--set", "by=ldadd", "--join", "--jobs", "1",
    ]  # fmt: skip
    assert ("jobs are enough" in fake_slurm.out.getvalue()) == bool(wanted and wanted > count)
    # At the end no task is left to wait for a node in vain.
    assert fake_slurm.given("scancel") == [["--quiet", "7"]]
    assert own_cache.is_dir() and not plan.path.exists()


def test_the_benchmark_refuses_a_release_that_does_not_exist(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.lab.bench_slurm", str(tmp_path), "5.10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "argument RELEASE: invalid choice: '5.10'" in done.stderr
    assert not list(tmp_path.iterdir())
