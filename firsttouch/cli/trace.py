# SPDX-License-Identifier: GPL-2.0
"""`firsttouch trace`: the page faults of any program, on the kernel that is there."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from pathlib import Path

from firsttouch.cli.options import option
from firsttouch.errors import UserError
from firsttouch.files import check_writable
from firsttouch.progress import Reporter
from firsttouch.trace.advice import predicted_and_measured, remedy_to_try, with_remedy
from firsttouch.trace.prices import provide_prices
from firsttouch.trace.reading import Reading, read_recording, write_results
from firsttouch.trace.recording import DATA_FILE, Target, record, root_of
from firsttouch.views.terminal import output_console

# Some 30 years, which fit into the recorder's nanoseconds.
_MOST_SECONDS = 1e9
# The folder of what --try traces.
_TRIED = "tried"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "firsttouch trace [options] -- COMMAND...\n"
        "       firsttouch trace [options] --pid PID [--seconds N]"
    )
    parser.set_defaults(run=_run)
    option(
        parser, "--out DIR",
        "where trace.json, trace.html and trace.data go (default out/)",
        default=Path("out"), kind=Path,
    )  # fmt: skip
    option(
        parser, "--json",
        "print trace.json on standard output; what the command prints goes to standard error",
    )  # fmt: skip
    option(
        parser, "--no-call-chains",
        "record less of each fault: no flame graph, and fewer faults lost",
    )  # fmt: skip
    option(
        parser, "--no-survey",
        "do not measure for three seconds what a fault costs here, where no survey is",
    )  # fmt: skip
    option(parser, "--pid PID", "trace a process that runs, with all its threads", kind=int)
    option(
        parser, "--seconds N", "with --pid: how long (default: until it ends, or Ctrl-C)",
        kind=float,
    )  # fmt: skip
    option(
        parser, "--try N",
        "run the command again with remedy N, if it is a variable, and print what was "
        "predicted and measured",
        kind=int, dest="tried",
    )  # fmt: skip
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command and its words")


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    """Trace, print the answer on standard error, write the files; return the command's status."""
    target = _target(options)
    read = _trace(target, options.out, options, reporter)
    if options.tried is not None:
        advice = remedy_to_try(read.trace, options.tried)
        target = replace(target, environment=with_remedy(advice.environment, os.environ))
        again = _trace(target, options.out / _TRIED, options, reporter)
        reporter.say(predicted_and_measured(read.trace, advice, again.trace))
    # A recorder that was killed takes its command with it.
    status = read.trace.status if read.trace.complete else signal.SIGKILL
    return 0 if status is None else _exit_status(status)


def _trace(
    target: Target, directory: Path, options: argparse.Namespace, reporter: Reporter
) -> Reading:
    check_writable(directory)
    file = directory / DATA_FILE
    file.unlink(missing_ok=True)
    root = Path("/") if target.pid is None else root_of(target.pid)
    record(target, file, reporter, aside=options.json)
    provide_prices(directory, reporter, asked=not options.no_survey)
    read = read_recording(file, root)
    # Before the files, for which the disk may have no room.
    if not options.json:
        read.print(output_console(aside=True), directory)
    text = write_results(read, directory)
    if options.json and directory == options.out:
        print(text, end="")
    return read


def _exit_status(status: int) -> int:
    """Return the exit status for one of waitpid(2): 128 + N if signal N ended the command."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _target(options: argparse.Namespace) -> Target:
    if bool(options.command) == (options.pid is not None):
        raise UserError(
            "give a command after --, such as `firsttouch trace -- perl -e 1`, or a process by "
            "--pid PID."
        )
    if options.pid is not None and options.pid <= 0:
        raise UserError("--pid is the number of a process, as `ps` prints it.")
    if options.seconds is not None and (
        options.pid is None or not 0 < options.seconds <= _MOST_SECONDS
    ):
        raise UserError(
            "--seconds is for --pid, more than 0 and at most 1e9: leave it out for a command."
        )
    if options.tried is not None and (options.tried < 1 or options.pid is not None):
        raise UserError("--try N is for a command, which runs again with a remedy: --try 1.")
    return Target(tuple(options.command), options.pid, options.seconds, not options.no_call_chains)
