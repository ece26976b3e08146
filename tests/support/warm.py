# SPDX-License-Identifier: GPL-2.0
"""Runs the command line in forks of a process that has imported it.

A start takes a quarter of the time that `python -m firsttouch` takes, most of which is imports,
and many tests do little else. Each run has its own process, as a user's has.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

Finished = subprocess.CompletedProcess[str]

# The commands that tests run often. What they import only when they need it, a fork does.
_COMMANDS = "kernel", "lab", "results", "tried"
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([f"firsttouch.cli.{name}" for name in _COMMANDS])


def run_warm(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], wait: int
) -> Finished:
    """Run the command line to its end; TimeoutExpired after `wait` seconds."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-warm-") as name:
        out, error = Path(name, "out"), Path(name, "error")
        process = _FORKS.Process(
            target=_run, args=(list(arguments), directory, dict(environment), out, error)
        )
        process.start()
        process.join(wait)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), wait)
        said, complained = out.read_text("utf-8"), error.read_text("utf-8")
        return Finished(list(arguments), process.exitcode, said, complained)


def _run(
    arguments: list[str], directory: Path, environment: dict[str, str], out: Path, error: Path
) -> None:
    """Become the process that was asked for."""
    for file, descriptor in ((out, 1), (error, 2)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = ["firsttouch", *arguments]
    from firsttouch.__main__ import run

    sys.exit(run())
