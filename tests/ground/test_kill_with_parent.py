# SPDX-License-Identifier: GPL-2.0
"""Commands end with their parent, whatever signal reaches the process between them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch import kill_with_parent, processes
from firsttouch.errors import HostError

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@pytest.fixture
def started() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The intermediate process, started as processes.kept starts it, and the command."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", kill_with_parent.__file__, "sleep", "1000"],
        stdin=subprocess.PIPE,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (children.read_text().split() and _ignores_signals(process.pid)):
        assert process.poll() is None
        time.sleep(0.01)
    yield process, int(children.read_text())
    process.kill()
    process.communicate()


def _ignores_signals(pid: int) -> bool:
    """Tell whether it ignores all signals already: a background job starts with some ignored."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return all(mask >> (number - 1) & 1 for number in _IGNORED)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", _IGNORED)
def test_a_signal_to_the_group_leaves_no_orphan(
    started: tuple[subprocess.Popen[bytes], int], number: signal.Signals
) -> None:
    process, command = started
    process.send_signal(number)
    # SIGCONT wakes it, as a signal that ends it would.
    process.send_signal(signal.SIGCONT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    assert _is_alive(command)
    # Then the parent ends by the same signal.
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=30) == 128 + signal.SIGKILL
    assert not _is_alive(command)


def test_leaving_the_context_kills_what_the_command_started(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! >{tmp_path}/child; echo ready; sleep 1000"
    with processes.child_process(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        child = int((tmp_path / "child").read_text())
        assert _is_alive(child)
    # The dead child of a dead shell is the first process's to reap.
    deadline = time.monotonic() + 30
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(child)


def test_a_command_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"sh failed with status 3") as error:
        processes.output(["sh", "-c", "echo why >&2; exit 3"])
    assert error.value.detail == ["why"]
    with pytest.raises(HostError, match=r"no-such-tool is missing: .*doctor"):
        processes.output(["no-such-tool"])
    said = processes.output(
        ["sh", "-c", "echo $GREETING; pwd"], cwd=tmp_path, env={"GREETING": "hi"}
    )
    assert said == f"hi\n{tmp_path}\n"


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
