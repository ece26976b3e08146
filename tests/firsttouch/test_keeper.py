# SPDX-License-Identifier: GPL-2.0
"""Commands end with their parent, whatever signal reaches the keeper between them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch import kill_with_parent as keeper


@pytest.fixture
def kept() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A keeper, started as processes.kept starts it, and the process that it keeps."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, "sleep", "1000"], stdin=subprocess.PIPE
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (children.read_text().split() and _ignores_signals(process.pid)):
        assert process.poll() is None
        time.sleep(0.01)
    yield process, int(children.read_text())
    process.kill()
    process.communicate()


def _ignores_signals(pid: int) -> bool:
    """Tell whether the keeper has got as far as to ignore SIGQUIT, the last that it does."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(mask >> (signal.SIGQUIT - 1) & 1)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_the_group_leaves_no_orphan(
    kept: tuple[subprocess.Popen[bytes], int], number: signal.Signals
) -> None:
    process, command = kept
    process.send_signal(number)
    time.sleep(0.2)
    assert process.poll() is None
    assert _is_alive(command)
    # Then the parent goes, as the same signal made it.
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=30) == 128 + signal.SIGKILL
    assert not _is_alive(command)
