# SPDX-License-Identifier: GPL-2.0
"""Claims: one holder at a time, across processes and hosts; a dead holder's claim is free."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.building.claims import claimed, claimed_if_free, is_claimed
from firsttouch.errors import HostError
from firsttouch.places import REPOSITORY

_HOLD = """
import sys
from pathlib import Path
from firsttouch.building.claims import claimed
with claimed(Path(sys.argv[1]), lambda: print("waits", flush=True)):
    print("holds", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""
# Adds 1 to a file, slowly enough to be disturbed by another that does so, too.
_COUNT = """
import sys, time
from pathlib import Path
from firsttouch.building.claims import claimed
claim, counter, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()
for _ in range(rounds):
    with claimed(claim):
        count = int(counter.read_text())
        time.sleep(0.002)
        counter.write_text(str(count + 1))
"""


def _start(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    return tmp_path / "thing.claim"


@pytest.fixture
def holder(claim: Path) -> Iterator[subprocess.Popen[str]]:
    with _start(_HOLD, claim) as process:
        assert _said(process) == "holds"
        yield process
        process.kill()


def _others(claim: Path, host: str = "another host", age: float = 0) -> None:
    """Leave a claim of a process of another host, last touched `age` seconds ago."""
    claim.write_text(json.dumps({"host": host, "name": "far", "pid": 1, "started": "1"}))
    touched = time.time() - age
    os.utime(claim, (touched, touched))


def test_of_two_processes_the_second_waits_and_says_so_once(
    claim: Path, holder: subprocess.Popen[str]
) -> None:
    with _start(_HOLD, claim) as second:
        assert _said(second) == "waits"
        assert is_claimed(claim)
        _let_go(holder)
        assert _said(holder) == "released"
        assert _said(second) == "holds"
        _let_go(second)
        assert _said(second) == "released"
    assert list(claim.parent.iterdir()) == []


def test_one_that_does_not_wait_is_told_that_it_is_held(
    claim: Path, holder: subprocess.Popen[str]
) -> None:
    with claimed_if_free(claim) as held:
        assert not held
    assert is_claimed(claim)
    _let_go(holder)
    assert _said(holder) == "released"
    with claimed_if_free(claim) as held:
        assert held
        assert is_claimed(claim)
    assert list(claim.parent.iterdir()) == []


def test_what_a_killed_process_held_is_taken_over_at_once(
    claim: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not is_claimed(claim)
    waited: list[bool] = []
    with claimed(claim, lambda: waited.append(True), lease=3600):
        assert is_claimed(claim)
    assert not waited


def test_a_process_that_is_stopped_keeps_what_it_holds(
    claim: Path, holder: subprocess.Popen[str]
) -> None:
    """A holder of this host that is alive keeps its claim, however old it is."""
    holder.send_signal(signal.SIGSTOP)
    os.utime(claim, (0, 0))
    assert is_claimed(claim)
    with claimed_if_free(claim) as held:
        assert not held
    holder.send_signal(signal.SIGCONT)


def test_a_number_that_another_process_has_now_is_not_the_holder(claim: Path) -> None:
    with claimed(claim):
        mine = json.loads(claim.read_text())
    claim.write_text(json.dumps({**mine, "started": "1"}))
    assert not is_claimed(claim)
    claim.write_text(json.dumps(mine))
    assert is_claimed(claim)


def test_another_hosts_claim_is_respected_until_its_lease_has_passed(claim: Path) -> None:
    _others(claim, age=50)
    assert is_claimed(claim, lease=60)
    with claimed_if_free(claim, lease=60) as held:
        assert not held
    _others(claim, age=70)
    assert not is_claimed(claim, lease=60)
    with claimed_if_free(claim, lease=60) as held:
        assert held
        assert json.loads(claim.read_text())["pid"] == os.getpid()
    assert list(claim.parent.iterdir()) == []


@pytest.mark.parametrize("contents", ["", "{", "[]"])
def test_a_claim_that_cannot_be_read_is_respected_as_another_hosts(
    claim: Path, contents: str
) -> None:
    claim.write_text(contents)
    assert is_claimed(claim, lease=60)
    os.utime(claim, (0, 0))
    assert not is_claimed(claim, lease=60)


def test_a_lease_begins_when_the_claim_is_taken_and_not_when_the_wait_began(claim: Path) -> None:
    """Another host can see only the age of the claim."""
    _others(claim)

    def wait_for_an_hour() -> None:
        # Called by the waiter itself, so it does nothing else meanwhile.
        (renewed,) = (file for file in claim.parent.iterdir() if file != claim)
        os.utime(renewed, (0, 0))
        claim.unlink()

    with claimed(claim, wait_for_an_hour, lease=3600):
        assert time.time() - claim.stat().st_mtime < 60


def test_a_holder_touches_its_claim_as_long_as_it_lives(claim: Path) -> None:
    with claimed(claim, lease=0.3):
        os.utime(claim, (0, 0))
        deadline = time.monotonic() + 30
        while claim.stat().st_mtime < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claim.stat().st_mtime > 1


def test_who_lost_a_claim_does_not_release_the_next_ones(claim: Path) -> None:
    with claimed(claim):
        claim.unlink()
        _others(claim)
    assert json.loads(claim.read_text())["host"] == "another host"
    assert list(claim.parent.iterdir()) == [claim]


def test_a_claim_that_cannot_be_removed_twice_is_not_taken_twice(claim: Path) -> None:
    """While one process is about to remove a claim, no other removes it, unless that one dies."""
    _others(claim, age=70)
    removing = claim.with_name(f".{claim.name}.dead-{claim.stat().st_ino}")
    os.link(claim, removing)
    with claimed_if_free(claim, lease=60) as held:
        assert not held
    removing.unlink()
    with claimed_if_free(claim, lease=60) as held:
        assert held


@pytest.mark.long
@pytest.mark.parametrize("left", ["killed", "another host"])
def test_of_many_that_wait_exactly_one_gets_what_was_left(
    claim: Path, tmp_path: Path, left: str
) -> None:
    """Processes take over an abandoned claim, then each other's: never two at a time."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    rounds = 20
    if left == "killed":
        with _start(_HOLD, claim) as process:
            assert _said(process) == "holds"
            process.kill()
    else:
        _others(claim, age=10_000)
    counting = [_start(_COUNT, claim, counter, str(rounds)) for _ in range(8)]
    for process in counting:
        _let_go(process)
    for process in counting:
        assert process.wait(timeout=120) == 0
        process.communicate()
    assert counter.read_text() == str(8 * rounds)
    assert not claim.exists()


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_hard_links_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Such as FAT, and some file systems in user space."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with (
        pytest.raises(HostError, match=r"without hard links.* on another one"),
        claimed(tmp_path / "claim"),
    ):
        pytest.fail("held")
    assert not list(tmp_path.iterdir())
