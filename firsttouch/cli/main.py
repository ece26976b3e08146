# SPDX-License-Identifier: GPL-2.0
"""The command line, and how a command ends: its exit status, and why it cannot continue.

Exit status: 0 if all ran, 1 if something measured failed, 2 if the request cannot be carried out.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pkgutil import resolve_name
from typing import NoReturn, TextIO

from firsttouch import __version__
from firsttouch.building.store import store_root
from firsttouch.cli import add_command
from firsttouch.errors import FirsttouchError, UserError
from firsttouch.progress import Reporter
from firsttouch.terminal import interrupt_on_signals

_EXAMPLES = """examples:
  firsttouch lab --dry-run           the default plan and its time
  firsttouch lab --experiment populate --set by=ldadd --arm stock --arm rmw
  firsttouch try ~/my.patch          the cost of a patch, per fault
  firsttouch count -- perl -e 1      any program, user and kernel, exactly
  firsttouch trace -- perl -e 1      the page faults of a program, on this host
  firsttouch export --format svg --out svg out     the figures, a file each
"""

# Each command: the module that has its options, and its line of --help. Only the module of the
# command that runs is imported: all of them together take several times as long to import as a
# short command takes to run.
_COMMANDS = {
    "doctor": ("kernel", "check for missing dependencies"),
    "lab": ("lab", "build kernels, boot them, measure and compare"),
    "try": ("tried", "measure what a patch, a configuration or a boot parameter costs"),
    "profile": ("lab", "count kernel instructions by function, as a flame graph"),
    "count": ("count", "count all that an arm64 program executes, user and kernel"),
    "guest": ("kernel", "run a shell or a command in a guest"),
    "survey": ("results", "measure first touches on this host and its kernel"),
    "trace": ("results", "trace a program's page faults and suggest remedies"),
    "report": ("results", "draw the report of stored results or a trace again"),
    "compare": ("results", "compare two result sets, surveys or traces"),
    "export": ("results", "export Markdown, CSV, SVG figures or folded stacks"),
    "kernel": ("kernel", "fetch, build or package a kernel, write the patch series"),
    "store": ("kernel", "list or prune the cache of builds and results"),
}

_UNKNOWN = re.compile(r"(?:unrecognized arguments: |invalid choice: ')(-*[\w-]+)(.*)")


class _Parser(argparse.ArgumentParser):
    """A parser that raises UserError: one sentence, exit status 2."""

    def error(self, message: str) -> NoReturn:
        if name := _UNKNOWN.search(message):
            # The choices follow, or the options are in --help.
            choices = re.findall(r"\w[\w-]*", name[2].partition("from")[2])
            known = choices or re.findall(r"--[\w-]+", self.format_help())
            if near := difflib.get_close_matches(name[1], known, 1, 0.6 if choices else 0.75):
                raise UserError(f"{name[1]} is unknown: did you mean {near[0]}?")
        raise UserError(f"{message}: see `{self.prog} --help`.")


def full_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; if `only` names a command, all others are without their options."""
    parser = _Parser(
        prog="firsttouch",
        description="Measure page faults: of programs, of kernel patches, of arm64 Linux.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"firsttouch {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, line) in _COMMANDS.items():
        command = add_command(commands, name, line)
        if only in (None, name):
            add_options: Callable[[argparse.ArgumentParser], None]
            add_options = resolve_name(f"firsttouch.cli.{module}:{name}_options")
            add_options(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status. Errors that a user can fix raise nothing."""
    options = argparse.Namespace()
    return exit_status(lambda: _run(arguments, options), options)


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(full_parser(f"{os.environ.get('COMP_LINE', '')} ".split(" ")[1]))
    if not arguments or arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    # A command is the first word: --help and --version, which can stand before it, end here.
    parser = full_parser(next(iter(arguments), ""))
    options.argv = arguments
    command: list[str] = []
    if list(arguments[:1]) == ["try"] and "--" in arguments:
        # What follows is a command, and no patch.
        place = arguments.index("--")
        arguments, command = arguments[:place], list(arguments[place + 1 :])
    try:
        _, unknown = parser.parse_known_args(arguments, options)
        if unknown:
            # The parser of the command has its options.
            options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        options.command = command or getattr(options, "command", [])
        return int(options.run(options, Reporter()))
    except SystemExit as done:
        # argparse exits after --help and --version.
        return int(done.code or 0)


# The text by which a compiler or another tool reports a full disk.
_NO_SPACE = os.strerror(errno.ENOSPC)


def exit_status(run: Callable[[], int], options: argparse.Namespace) -> int:
    """Run a command and return its exit status; print why it ended if it could not continue.

    After a signal, also that of a pipe without a reader, that is 128 + its number.
    """
    interrupt_on_signals()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # It was closed before.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            # A character that the terminal cannot show must not end the command.
            stream.reconfigure(errors="replace")
    try:
        try:
            status = run()
            sys.stdout.flush()
            return status
        except FirsttouchError as error:
            if any(_NO_SPACE in line for line in error.detail):
                return _report(_full_disk(), error.detail)
            return _report(str(error), error.detail, error.exit_status)
        except BrokenPipeError:
            raise
        except OSError as error:
            return _report_os_error(error)
        except KeyboardInterrupt as interrupt:
            number = next(iter(interrupt.args), signal.SIGINT)
            kept: str = getattr(options, "at_interrupt", "")
            return _report(f"interrupted{f'; {kept}' if kept else ''}.", status=128 + number)
    except BrokenPipeError:
        _let_go(sys.stdout, sys.stderr)
        return 128 + signal.SIGPIPE


def _report_os_error(error: OSError) -> int:
    reason = error.strerror or str(error)
    # Without the name that a file has until it is whole.
    path = re.sub(r"/\.([^/]+)\.[0-9a-f]{32}$", r"/\1", str(error.filename or ""))
    where = f"{path}: " if path else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        # If it is standard output, Python would flush it again at exit, and fail again.
        _let_go(sys.stdout)
        return _report(_full_disk(where))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "copy its folder to one of yours"
        if path and (store_root().is_relative_to(path) or path.startswith(str(store_root()))):
            remedy = "set XDG_CACHE_HOME to another place for the store"
        return _report(f"{where}{reason}: change its permissions, or {remedy}.")
    return _report(f"{where}{reason}: check this path, then run the same command again.")


def _full_disk(where: str = "") -> str:
    return (
        f"{where}{_NO_SPACE}: free some space, such as by `firsttouch store prune --keep SIZE` of "
        f"{store_root()}; XDG_CACHE_HOME, TMPDIR and --out name other disks."
    )


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
