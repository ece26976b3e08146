# SPDX-License-Identifier: GPL-2.0
"""The command line. Exit status: 0 all ran; 1 something measured failed; 2 a bad request."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from firsttouch.cli import doctor, guest, kernel, lab, results, store, survey
from firsttouch.errors import FirsttouchError, UserError
from firsttouch.progress import Reporter

_EXAMPLES = """examples:
  firsttouch lab                                   the default plan: stock against changed
  firsttouch lab --dry-run                         what that builds and runs, how long it takes
  firsttouch lab --quick                           a first answer, minutes earlier
  firsttouch lab --list                            experiments, machines, arms, releases
  firsttouch lab --experiment populate --size 64M  one experiment, smaller
  firsttouch lab --experiment populate --set by=ldadd --set page=4k --arm stock --arm intent
  firsttouch lab --release 7.3 --machine cortex-a72
  firsttouch lab --source ~/linux                  your own kernel tree
  firsttouch lab --experiment boot --arm on --show-qemu
  firsttouch guest --arm on                        a shell in the guest
  firsttouch survey                                this host and its own kernel
  firsttouch survey --guest stock                  the same in a guest
  firsttouch report out                            draw out/report.html again
  firsttouch compare out ~/colleague/out           two result sets side by side
  firsttouch export --format md out                the tables as Markdown
  firsttouch kernel series --release 7.3 --out series/
  firsttouch store prune --keep 20G                remove what was used longest ago
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are errors of this project: one sentence, exit status 2."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}: see `{self.prog} --help`.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="firsttouch",
        description="What the first touch of a page costs on arm64 Linux, made cheaper.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (doctor, lab, guest, survey, results, kernel, store):
        command.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status. Never raises for what can be fixed."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        options = _parser().parse_args(arguments)
        status: int = options.run(options, Reporter())
        sys.stdout.flush()
    except FirsttouchError as error:
        print(f"firsttouch: {error}", file=sys.stderr)
        for line in error.detail:
            print(f"    {line}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader has what it wanted; nothing more can reach it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = (
            "free some space there, or name another directory by --out"
            if full
            else "make it readable or writable, and run the same command again"
        )
        print(f"firsttouch: {where}{reason}: {remedy}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("firsttouch: interrupted; what was finished is kept, run again to go on.",
              file=sys.stderr)  # fmt: skip
        return 130
    return status


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
