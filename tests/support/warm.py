# SPDX-License-Identifier: GPL-2.0
"""Runs the command line in forks of a process that has imported it.

A start takes a quarter of the time that `python -m firsttouch` takes, most of which is imports,
and many tests do little else. Each run has its own process, as a user's has.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from firsttouch.places import REPOSITORY

Finished = subprocess.CompletedProcess[str]

# The commands that tests run often. What they import only when they need it, a fork does.
_COMMANDS = "doctor", "kernel", "lab", "results", "store", "survey", "trace", "tried"


class Warm:
    """The process that is forked. It ends when it is closed, and with this one."""

    def __init__(self) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its.fileno())],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )

    def run(
        self, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], wait: int
    ) -> Finished:
        """Run the command line to its end; TimeoutExpired after `wait` seconds."""
        with (
            self._lock,
            tempfile.TemporaryFile("w+") as request,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as error,
        ):
            json.dump([list(arguments), str(directory), dict(environment)], request)
            request.flush()
            files = [file.fileno() for file in (request, out, error)]
            socket.send_fds(self._socket, [b"run"], files)
            self._socket.settimeout(None)
            process = int(self._socket.recv(100))
            self._socket.settimeout(wait)
            try:
                status = int(self._socket.recv(100))
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                self._socket.settimeout(None)
                self._socket.recv(100)
                raise subprocess.TimeoutExpired(list(arguments), wait) from None
            for file in (out, error):
                file.seek(0)
            return Finished(list(arguments), status, out.read(), error.read())

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait()


@functools.cache
def warm() -> Warm:
    """Return the process of this session."""
    return Warm()


def _serve(connection: socket.socket) -> list[int]:
    """Fork for each request; return its files in the fork. Exit with the other end."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, 100, 3)
        if not message:
            sys.exit()
        process = os.fork()
        if not process:
            return files
        for file in files:
            os.close(file)
        connection.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(files: Sequence[int]) -> int:
    """Become the process that was asked for."""
    request, out, error = files
    os.lseek(request, 0, os.SEEK_SET)
    with os.fdopen(request, encoding="utf-8") as file:
        arguments, directory, environment = json.load(file)
    os.dup2(out, 1)
    os.dup2(error, 2)
    os.close(out)
    os.close(error)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = ["firsttouch", *arguments]
    from firsttouch.__main__ import run

    return run()


def main() -> int:
    """Import the command line, then run it for each request, in a fork."""
    for name in _COMMANDS:
        import_module(f"firsttouch.cli.{name}")
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        files = _serve(connection)
    return _run(files)


if __name__ == "__main__":
    sys.exit(main())
