# SPDX-License-Identifier: GPL-2.0
"""Signals reach the traced program once, whoever sends them, and none stops the recorder."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import Firsttouch
from tests.trace.conftest import run_trace, sentences_of

pytestmark = pytest.mark.long


def _signalled(firsttouch: Firsttouch, trouble: Path, *, to_group: bool, late: float) -> str:
    """Signal a traced program as `timeout` does; return how many signals it got.

    The tracer, but not the recorder, is stopped for so many seconds at the time.
    """
    with subprocess.Popen(
        firsttouch.command("trace", "--no-survey", "--", trouble, "signals"),
        cwd=firsttouch.directory, env=firsttouch.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if late:
            os.kill(process.pid, signal.SIGSTOP)
        os.kill(process.pid, signal.SIGUSR1)
        if to_group:
            os.killpg(process.pid, signal.SIGUSR1)
        if late:
            time.sleep(late)
            os.kill(process.pid, signal.SIGCONT)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return printed


def test_a_signal_to_the_tracer_is_sent_on(firsttouch: Firsttouch, trouble: Path) -> None:
    assert _signalled(firsttouch, trouble, to_group=False, late=0.0) == "1\n"


@pytest.mark.parametrize("late", [0.05, 0.3])
def test_a_signal_to_the_group_comes_once(
    firsttouch: Firsttouch, trouble: Path, late: float
) -> None:
    """Also where the tracer, on a busy host, sees it long after the recorder."""
    assert _signalled(firsttouch, trouble, to_group=True, late=late) == "1\n"


def test_who_ignores_sigchld_may_trace(firsttouch: Firsttouch) -> None:
    command = firsttouch.command("trace", "--", "sh", "-c", "exit 3")
    done = subprocess.run(
        ["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", *command],
        cwd=firsttouch.directory, env=firsttouch.environment(), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr


def test_a_process_that_outlives_the_command_is_named(firsttouch: Firsttouch) -> None:
    trace = run_trace(firsttouch, "--", "sh", "-c", "sleep 4 >/dev/null 2>&1 & sleep 0.5")
    assert trace.outlived == ("sleep",)
    assert "sleep: still running when the command ended" in sentences_of(firsttouch)
