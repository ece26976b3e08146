# SPDX-License-Identifier: GPL-2.0
"""Commands end with their parent, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsttouch import processes
from firsttouch.errors import HostError

# A command that does not end by itself, and that has started another one.
_COMMAND = "sleep 1000 & echo $! >{folder}/child; echo ready; sleep 1000"
_PARENT = """
import signal, subprocess, sys
from firsttouch.processes import child_process
# A job in the background ignores them, or one of nohup.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
with child_process(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE) as process:
    print(process.stdout.readline(), end="", flush=True)
    process.wait()
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
)
def test_a_signal_to_the_parent_leaves_no_orphan(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, _COMMAND.format(folder=tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        child = int((tmp_path / "child").read_text())
        assert _is_running(child)
        # The terminal signals the whole group.
        os.killpg(parent.pid, number)
    _wait_for_the_end_of(child)


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -TERM $$", 128 + 15)])
def test_the_status_is_that_of_the_command(script: str, status: int) -> None:
    with processes.child_process(["sh", "-c", script]) as process:
        assert process.wait() == status


def test_leaving_the_context_kills_what_the_command_started(tmp_path: Path) -> None:
    script = _COMMAND.format(folder=tmp_path)
    with processes.child_process(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        child = int((tmp_path / "child").read_text())
        assert _is_running(child)
    _wait_for_the_end_of(child)


def test_a_failure_shows_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match=r"sh failed with status 3") as error:
        processes.output(["sh", "-c", "echo why >&2; exit 3"])
    assert error.value.detail == ["why"]
    with pytest.raises(HostError, match=r"no-such-tool is missing: .*doctor"):
        processes.output(["no-such-tool"])
    said = processes.output(
        ["sh", "-c", "echo $GREETING; pwd"], cwd=tmp_path, env={"GREETING": "hi"}
    )
    assert said == f"hi\n{tmp_path}\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="setpriv is missing"), processes.child_process(["sh"]):
        pass


def _wait_for_the_end_of(pid: int) -> None:
    # The dead child of a dead shell is the first process's to reap.
    deadline = time.monotonic() + 30
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
