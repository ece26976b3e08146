# SPDX-License-Identifier: GPL-2.0
"""Child processes that never outlive this one, and short commands that print a result."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from firsttouch.errors import HostError

# A shell that runs a command, and that gets a signal when its parent ends in any way: then it
# kills the process group that it leads.
_WITH_PARENT = (
    "setpriv", "--pdeathsig", "TERM",
    "sh", "-c", "trap 'kill -KILL 0' TERM; \"$@\" & wait $!", "sh",
)  # fmt: skip


def missing(tool: str) -> HostError:
    return HostError(f"{tool} is missing: `firsttouch doctor` prints a fix.")


@contextlib.contextmanager
def child_process(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[str] = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[str]]:
    """Run `command` in the background while the context lasts; `env` is as of `output`.

    `stdout` gets its errors, too. Leaving the context in any way, and the death of this thread,
    kill the command and all that it started. No signal of the terminal reaches them.
    """
    if shutil.which(_WITH_PARENT[0]) is None:
        raise missing(_WITH_PARENT[0])
    with subprocess.Popen(
        [*_WITH_PARENT, *map(str, command)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def output(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return what `command` prints on standard output.

    `env` is added to the environment. Raises HostError if the command is missing or fails;
    `detail` then has the last lines that it printed.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise missing(name) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines()
        raise HostError(f"{name} failed with status {done.returncode}: see below.", lines[-8:])
    return done.stdout
