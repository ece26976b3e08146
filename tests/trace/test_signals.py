# SPDX-License-Identifier: GPL-2.0
"""Signals reach the traced program once, whoever sends them, and none stops the recorder."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Firsttouch

pytestmark = pytest.mark.long


@pytest.mark.parametrize("to_group", [False, True], ids=["process", "process and group"])
def test_a_signal_comes_once(firsttouch: Firsttouch, trouble: Path, to_group: bool) -> None:
    with subprocess.Popen(
        firsttouch.command("trace", "--", trouble, "signals"),
        cwd=firsttouch.directory, env=firsttouch.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # What `timeout` does.
        os.kill(process.pid, signal.SIGUSR1)
        if to_group:
            os.killpg(process.pid, signal.SIGUSR1)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert printed == "1\n"


def test_who_ignores_sigchld_may_trace(firsttouch: Firsttouch) -> None:
    command = firsttouch.command("trace", "--", "sh", "-c", "exit 3")
    done = subprocess.run(
        ["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", *command],
        cwd=firsttouch.directory, env=firsttouch.environment(), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
