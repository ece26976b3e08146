# SPDX-License-Identifier: GPL-2.0
"""The command line.

Exit status: 0 if all ran, 1 if something measured failed, 2 if the request cannot be carried out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import NoReturn

from firsttouch import __version__
from firsttouch.cli import failures
from firsttouch.errors import UserError
from firsttouch.progress import Reporter

_EXAMPLES = """examples:
  firsttouch lab                                   the default plan: stock against changed
  firsttouch lab --dry-run                         the plan, and an estimate of the time
  firsttouch lab --quick                           a first answer, with fewer and smaller cells
  firsttouch lab --list                            experiments, machines, arms, releases
  firsttouch lab --experiment populate --size 64M  one experiment, smaller
  firsttouch lab --experiment populate --set by=ldadd --set page=4k --arm stock --arm rmw
  firsttouch lab --release 7.3 --machine cortex-a72
  firsttouch lab --source ~/linux                  your own kernel tree
  firsttouch lab --experiment boot --arm on --show-qemu
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
    return failures.exit_status(lambda: _run(arguments, options), options)


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    """Parse the command line into `options` and run its command; return the exit status."""
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
