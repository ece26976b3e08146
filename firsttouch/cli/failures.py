# SPDX-License-Identifier: GPL-2.0
"""How a command ends: its exit status, and a message if it cannot continue."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from firsttouch.building.store import store_root
from firsttouch.errors import FirsttouchError
from firsttouch.files import least_room
from firsttouch.terminal import ERRORS, interrupt_on_signals

# The text by which a compiler or another tool reports a full disk.
_NO_SPACE = os.strerror(errno.ENOSPC)
_STANDARD_OUTPUT = "standard output"


def exit_status(run: Callable[[], int], options: argparse.Namespace) -> int:
    """Run a command and return its exit status; print why it ended if it could not continue.

    If a signal ended the command, the status is 128 + the signal's number: 130
    after Ctrl-C, 141 if the reader of a pipe has ended.
    """
    interrupt_on_signals()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show must not end the command.
            stream.reconfigure(errors=ERRORS)
    try:
        try:
            status = run()
            _flush()
            return status
        except FirsttouchError as error:
            return _report_error(error, options)
        except BrokenPipeError:
            raise
        except OSError as error:
            return _report_os_error(error, options)
        except KeyboardInterrupt as interrupt:
            number = next(iter(interrupt.args), signal.SIGINT)
            return _report_interrupt(number, options)
    except BrokenPipeError:
        _let_go(sys.stdout, sys.stderr)
        return 128 + signal.SIGPIPE


def _flush() -> None:
    try:
        print(end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        error.filename = _STANDARD_OUTPUT
        # Python would flush it again at exit, and fail again.
        _let_go(sys.stdout)
        raise


def _report_error(error: FirsttouchError, options: argparse.Namespace) -> int:
    """Print an error of this project, or the full disk that caused it."""
    if any(_NO_SPACE in line for line in error.detail):
        return _report(_full_disk(options), error.detail)
    return _report(str(error), error.detail, error.exit_status)


def _report_os_error(error: OSError, options: argparse.Namespace) -> int:
    """Print an error of the operating system, with what to do about it."""
    reason = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        if error.filename == _STANDARD_OUTPUT or (not error.filename and _is_full(sys.stdout)):
            # It cannot be written when the process ends, either.
            _let_go(sys.stdout)
            return _report(f"{_STANDARD_OUTPUT}: {reason}: print to another file.")
        return _report(_full_disk(options, reason))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        root, place = store_root(), Path(error.filename2 or error.filename or "/nowhere")
        # A folder above the store may be what cannot be made.
        if place.is_relative_to(root) or root.is_relative_to(place):
            return _report(
                f"cannot write below {root} ({reason}): "
                "set XDG_CACHE_HOME to a directory that you can write."
            )
        return _report(f"{where}{reason}: change its permissions, then run the same command again.")
    if reason.startswith("No usable temporary directory"):
        return _report(f"{reason}: free some space there, or set TMPDIR to a directory with room.")
    return _report(f"{where}{reason}: check this path, then run the same command again.")


def _full_disk(options: argparse.Namespace, reason: str = _NO_SPACE) -> str:
    """Return a message: which of the places that a command writes to is full, and what to do."""
    out: Path | None = getattr(options, "out", None)
    directory: Path | None = getattr(options, "directory", None)
    printed = Path("/proc/self/fd/1").resolve()
    remedies = {
        **({out: "name another directory by --out"} if out else {}),
        **({directory: "copy it to a disk with room"} if directory else {}),
        store_root(): "set XDG_CACHE_HOME to a directory with room",
        Path(os.environ.get("TMPDIR") or "/tmp"): "set TMPDIR to a directory with room",
        **({printed: "print to another file"} if printed.is_file() else {}),
    }
    full = least_room(remedies)
    free = f"free some space there, or {remedies[full]}"
    if full == store_root():
        free = (
            "`firsttouch store list` shows its contents, `firsttouch store prune --keep SIZE` "
            f"leaves that much of it; or {remedies[full]}"
        )
    return f"{full}: {reason}: {free}."


def _is_full(stream: TextIO) -> bool:
    """Tell whether a stream cannot write what it still holds."""
    try:
        stream.flush()
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return False


def _report_interrupt(number: int, options: argparse.Namespace) -> int:
    """Print that a signal ended the command, and what the command keeps, if anything."""
    rest: str = getattr(options, "at_interrupt", "")
    return _report(f"interrupted{f'; {rest}' if rest else ''}.", status=128 + number)


def _let_go(*streams: TextIO) -> None:
    """Redirect closed outputs to /dev/null, so that the flush at the end of the process works."""
    for stream in streams:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _report(sentence: str, detail: Iterable[str] = (), status: int = 2) -> int:
    print(f"firsttouch: {sentence}", file=sys.stderr)
    for line in detail:
        print(f"    {line}", file=sys.stderr)
    return status
