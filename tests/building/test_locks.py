# SPDX-License-Identifier: GPL-2.0
"""Locks: one holder at a time, across processes; a dead holder's lock is free."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.locks import NoLocksError, locked, locked_if_free
from firsttouch.places import REPOSITORY

# Adds 1 to a file, slowly enough to be disturbed by another that does so, too.
_COUNT = """
import sys, time
from pathlib import Path
from firsttouch.building.locks import locked
lock, counter = map(Path, sys.argv[1:])
sys.stdin.readline()
for _ in range(20):
    with locked(lock):
        count = int(counter.read_text())
        time.sleep(0.002)
        counter.write_text(str(count + 1))
"""
_HOLD = """
import sys
from pathlib import Path
from firsttouch.building.locks import locked
with locked(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.readline()
"""


def _start(script: str, *arguments: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip


def test_a_lock_has_one_holder_until_it_dies(tmp_path: Path) -> None:
    lock = tmp_path / "folder/lock"
    with _start(_HOLD, lock) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "holds\n"
        with locked_if_free(lock) as free:
            assert not free
        holder.kill()
        holder.wait()
        # Its file stays; it is no lock.
        assert lock.exists()
        waits: list[bool] = []
        with locked(lock, lambda: waits.append(True)), locked_if_free(lock) as free:
            assert not free and not waits
    assert not list(lock.parent.iterdir())


@pytest.mark.long
def test_processes_that_race_for_a_lock_never_hold_it_together(tmp_path: Path) -> None:
    lock, counter = tmp_path / "lock", tmp_path / "counter"
    counter.write_text("0")
    racing = [_start(_COUNT, lock, counter) for _ in range(6)]
    for process in racing:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in racing:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert counter.read_text() == str(6 * 20)
    assert not lock.exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NoLocksError, match="without locks"), locked(tmp_path / "lock"):
        pytest.fail("held")
