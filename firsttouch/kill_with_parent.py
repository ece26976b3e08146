# SPDX-License-Identifier: GPL-2.0
"""Runs one command and kills it when its parent ends.

Called as ``python -S kill_with_parent.py COMMAND ARG...``. Standard input is a pipe whose other
end only the parent holds. When the parent ends in any way, the pipe closes, and this program kills
the command's whole process group. It imports nothing from this package, to start in milliseconds.
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
    # The command leads its own process group. This process stays outside it, so
    # that it can kill the whole group and still report the command's status.
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    ended = os.pidfd_open(child.pid)
    parent = sys.stdin.fileno()
    # Ctrl-C, a closed terminal and timeout(1) signal the parent too, and the
    # parent decides what to do. This process must survive to kill the command.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    ready, _, _ = select.select([ended, parent], [], [])
    if ended not in ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    # The command may have left processes in the background.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
