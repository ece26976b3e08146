# SPDX-License-Identifier: GPL-2.0
"""Runs the recorder on a command or a process, and passes signals and the exit status on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.building.programs import HOST_RECORDER
from firsttouch.errors import HostError, UserError
from firsttouch.progress import Reporter

DATA_FILE = "trace.data"
# Signals that mean the traced program.
_PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
_FROM_A_PROCESS = 0
_PATIENCE = 0.2  # seconds


@dataclass(frozen=True)
class Target:
    """What to trace: a command, or for `seconds` (None: until it ends) a running process.

    `environment` has variables that the command gets, too.
    """

    command: tuple[str, ...]
    pid: int | None = None
    seconds: float | None = None
    call_chains: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


def record(target: Target, file: Path, reporter: Reporter, *, aside: bool = False) -> None:
    """Record into `file` until the command or the time ends.

    The command has this process's standard streams; with `aside` what it prints
    goes to standard error. Raises BuildError if the recorder does not build,
    HostError if it cannot write `file`, UserError if it cannot be started.
    """
    recorder = HOST_RECORDER.obtain(reporter)
    arguments: list[str | Path] = [recorder, "-o", file]
    if target.call_chains:
        arguments.append("-c")
    if target.pid is not None:
        arguments += ["-p", str(target.pid)]
    if target.seconds is not None:
        arguments += ["-s", str(target.seconds)]
    with _signals_blocked():
        try:
            process = subprocess.Popen(
                [*arguments, "--", *target.command],
                stdout=sys.stderr if aside else None,
                env={**os.environ, **target.environment},
            )
        except OSError as error:
            raise UserError(
                f"the recorder cannot be started ({error.strerror}): shorten the command, see "
                "`ulimit -a`, or set XDG_CACHE_HOME to a folder whose programs may be executed."
            ) from None
        status = _wait(process)
    if status and not file.exists():
        raise HostError(f"cannot write {file}: name another directory by --out.")
    if status == 1:
        raise HostError(
            f"{file} is not complete, because its disk is full: free some space, then `firsttouch "
            f"report {shlex.quote(str(file.parent))}` shows the recorded part."
        )


def root_of(pid: int) -> Path:
    """Return the directory below which a process has its files: of a container, another than "/".

    It stays open until this process ends, so that the files are there when the other has ended.
    """
    process, ours = Path(f"/proc/{pid}"), Path("/proc/self")
    with suppress(OSError):
        if not all((process / part).samefile(ours / part) for part in ("ns/mnt", "root")):
            return Path(f"/proc/{os.getpid()}/fd/{os.open(process / 'root', os.O_PATH)}")
    return Path("/")


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the recorder; pass on the signals that other processes send to this one.

    What a terminal sends, all processes get. Another thread may take a SIGCHLD,
    so none is waited for long.
    """
    while True:
        received = signal.sigtimedwait({signal.SIGCHLD, *_PASSED_ON}, _PATIENCE)
        if received and received.si_signo != signal.SIGCHLD and received.si_code == _FROM_A_PROCESS:
            process.send_signal(received.si_signo)
        status = process.poll()
        if status is not None:
            return status


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Keep the signals that `_wait` takes from this process while the context lasts."""
    # Who started this process may ignore it: the recorder's end would not be noticed.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED_ON})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
