# SPDX-License-Identifier: GPL-2.0
"""Runs one command and kills it when its parent ends.

Called as ``python -S kill_with_parent.py COMMAND ARG...`` with standard input a pipe
whose other end only the parent holds. When the parent is gone, however it
went, the pipe reads as closed and the command's whole process group is
killed: a guest or a build of hundreds of processes leaves nothing behind.

It imports nothing from this package, so that it starts in milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys


def main() -> int:
    """Run the command; return its exit status, 128 + N if signal N ended it."""
    # The command leads a group of its own; this process stays outside, to be
    # able to kill all of it and still say how it ended.
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    ended = os.pidfd_open(child.pid)
    parent = sys.stdin.fileno()
    # A key, a closed terminal or timeout(1) signals the whole process group,
    # the parent too, which decides; this process only follows it, or nobody
    # would be left to kill the command.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    ready, _, _ = select.select([ended, parent], [], [])
    if ended not in ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    # What the command started in the background goes with it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
