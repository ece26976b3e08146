# SPDX-License-Identifier: GPL-2.0
"""The command line, and how a command ends: its exit status, and why it cannot continue.

Exit status: 0 if all ran, 1 if something measured failed, 2 if the request cannot be carried out.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import NoReturn, TextIO

from firsttouch import __version__
from firsttouch.building.store import store_root
from firsttouch.errors import FirsttouchError, UserError
from firsttouch.files import least_room
from firsttouch.progress import Reporter
from firsttouch.terminal import ERRORS, interrupt_on_signals

_EXAMPLES = """examples:
  firsttouch lab                                   the default plan: stock against changed
  firsttouch lab --dry-run                         the plan, and an estimate of the time
  firsttouch lab --quick                           a first answer, with fewer and smaller cells
  firsttouch lab --list                            experiments, machines, arms, releases
  firsttouch lab --experiment populate --size 64M  one experiment, smaller
  firsttouch lab --experiment populate --set by=ldadd --set page=4k --arm stock --arm rmw
  firsttouch lab --release 7.3 --machine cortex-a72
  firsttouch lab --source ~/linux                  your own kernel tree
  firsttouch lab --on slurm                        the same, on the nodes of a cluster
  firsttouch try ~/my.patch                        the cost of a patch, per fault
  firsttouch try --boot init_on_alloc=0            the same for a boot parameter
  firsttouch profile --experiment populate --set by=store --set page=4k --arm stock --arm on
  firsttouch count -- perl -e 1                    any program, user and kernel, exactly
  firsttouch guest --arm on                        a shell in the guest
  firsttouch survey                                this host and its current kernel
  firsttouch trace -- perl -e 1                    the page faults of a program, on this host
  firsttouch report out                            draw out/report.html again
  firsttouch compare out ~/colleague/out           two result sets side by side
  firsttouch export --format md out                the tables as Markdown
  firsttouch export --format svg --out svg out     the figures, a file each
  firsttouch export --format folded out/profile    the stacks, for other tools
  firsttouch kernel series --release 7.3 --out series/
  firsttouch store prune --keep 20G                remove the least recently used

You can add machines, experiments and arms in machines/, experiments/ and arms/ below
~/.config/firsttouch ($XDG_CONFIG_HOME/firsttouch).
"""


# Each command: the function that adds its options, and its line of --help. Only the module of
# the command that runs is imported: all of them together take several times as long to import
# as a short command takes to run.
_COMMANDS = {
    "doctor": ("doctor:add_options", "check for missing dependencies"),
    "lab": ("lab:add_options", "build kernels, boot them, measure and compare"),
    "try": (
        "tried:add_options",
        "measure the cost of a kernel patch, a configuration or a boot parameter",
    ),
    "profile": (
        "profile:add_options",
        "count kernel instructions by function, with a flame graph",
    ),
    "count": (
        "count:add_options",
        "count any program of arm64 exactly, user and kernel, in guests of one kernel or several",
    ),
    "guest": ("guest:add_options", "run a shell in a guest"),
    "survey": (
        "survey:add_options",
        "measure first touches on this host and its current kernel (no root needed)",
    ),
    "trace": (
        "trace:add_options",
        "trace a program's page faults and suggest remedies (no root needed)",
    ),
    "report": ("results:report_options", "draw the report of stored results or a trace again"),
    "compare": ("results:compare_options", "compare two result sets, surveys or traces"),
    "export": (
        "results:export_options",
        "export results as Markdown, CSV, SVG figures or folded stacks",
    ),
    "kernel": ("kernel:add_options", "fetch, build or package a kernel, write the patch series"),
    "store": ("store:add_options", "list or prune the cache of builds and results"),
    "completion": (
        "completion:add_options",
        "print a completion script for your shell",
    ),
}


class _Parser(argparse.ArgumentParser):
    """A parser that raises UserError: one sentence, exit status 2."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}: see `{self.prog} --help`.")


def full_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    If the name of a command is `only`, all other commands are without their options.
    """
    parser = _Parser(
        prog="firsttouch",
        description="Measure page faults: of programs, of kernel patches, of arm64 Linux.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"firsttouch {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (add, line) in _COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if only in (None, name):
            add_options: Callable[[argparse.ArgumentParser], None]
            add_options = resolve_name(f"firsttouch.cli.{add}")
            add_options(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status. Errors that a user can fix raise nothing."""
    options = argparse.Namespace()
    return exit_status(lambda: _run(arguments, options), options)


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if "_ARGCOMPLETE" in os.environ:
        from firsttouch.cli.completion import complete

        _, *words = os.environ.get("COMP_LINE", "").split() or [""]
        complete(full_parser(next(iter(words), "")))
    # A command is the first word: --help and --version, which can stand before it, end here.
    parser = full_parser(next(iter(arguments), ""))
    command: list[str] = []
    if list(arguments[:1]) == ["try"] and "--" in arguments:
        # What follows is a command, and no patch.
        place = arguments.index("--")
        arguments, command = arguments[:place], list(arguments[place + 1 :])
    try:
        parser.parse_args(arguments, options)
        options.command = command or getattr(options, "command", [])
        return int(options.run(options, Reporter()))
    except SystemExit as done:
        # argparse exits after --help and --version.
        return int(done.code or 0)


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
