# SPDX-License-Identifier: GPL-2.0
"""The command line. Exit status: 0 all ran; 1 something measured failed; 2 a bad request."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from firsttouch.cli import doctor
from firsttouch.catalog.arms import ARMS
from firsttouch.lab.cells import check_size
from firsttouch.analysis.comparison import compare
from firsttouch.output.comparison import print_comparison
from firsttouch.errors import FirsttouchError, MachineError, UserError
from firsttouch.catalog.experiments import load_experiment
from firsttouch.build.images import KernelImage
from firsttouch.lab.run import run_lab
from firsttouch.lab.plan import DEFAULT_MACHINE, DEFAULT_RELEASE, Request
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import parse_size
from firsttouch.output.html import draw_report
from firsttouch.build.series import write_series
from firsttouch.build.sources import KernelSource, debian_source, find_release, user_source
from firsttouch.survey import command as survey_command
from firsttouch.output.terminal import output_console, print_summary

_EXAMPLES = """examples:
  firsttouch lab                                   the default plan: stock against changed
  firsttouch lab --experiment populate --size 64M  one experiment, smaller
  firsttouch lab --experiment populate --set by=ldadd --set page=4k --arm stock --arm intent
  firsttouch lab --release 7.3 --machine cortex-a72
  firsttouch lab --source ~/linux                  your own kernel tree
  firsttouch survey                                this very machine and its own kernel
  firsttouch survey --guest stock                  the same in a guest
  firsttouch report out                            draw out/report.html again
  firsttouch compare out ~/colleague/out           two result sets side by side
  firsttouch kernel series --release 7.3 --out series/
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
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("doctor", help="what this machine lacks, and the command that installs it")

    lab = commands.add_parser("lab", help="build, boot, measure and compare")
    _add_source(lab)
    lab.add_argument(
        "--machine",
        action="append",
        default=[],
        metavar="M",
        help=f"a machine of machines/ (default {DEFAULT_MACHINE}); may be repeated",
    )
    lab.add_argument(
        "--experiment",
        action="append",
        default=[],
        metavar="E",
        help="an experiment of experiments/ (default: all of the default plan)",
    )
    lab.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="A",
        help=f"one of {', '.join(ARMS)} (default: those the experiment names)",
    )
    lab.add_argument("--size", metavar="BYTES", help="bytes to map; K, M and G are understood")
    lab.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PARAM=VALUE",
        dest="settings",
        help="only the cells whose parameter has this value",
    )
    lab.add_argument(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="DIR",
        help="where results go (default out/)",
    )
    lab.add_argument("--json", action="store_true", help="print summary.json instead of the table")

    survey = commands.add_parser(
        "survey", help="the experiments on this very machine and its own kernel, without root"
    )
    survey_command.add_options(survey)

    report = commands.add_parser("report", help="draw DIR/report.html again from its results")
    report.add_argument("directory", type=Path, metavar="DIR", help="what `lab --out` has filled")

    sets = commands.add_parser("compare", help="two result sets side by side")
    for name in ("A", "B"):
        sets.add_argument(name.lower(), type=Path, metavar=name, help="a directory of results")
    sets.add_argument("--json", action="store_true", help="print the comparison as JSON")

    kernel = commands.add_parser("kernel", help="fetch or build a kernel, write the series")
    actions = kernel.add_subparsers(dest="action", required=True, metavar="ACTION")
    fetch = actions.add_parser("fetch", help="fetch the newest source of a release")
    fetch.add_argument("--release", default=DEFAULT_RELEASE, metavar="R")
    build = actions.add_parser("build", help="build one image and print its path")
    _add_source(build)
    build.add_argument("--stock", action="store_true", help="without linux/")
    series = actions.add_parser("series", help="write the patches, for git am")
    _add_source(series)
    series.add_argument(
        "--out",
        type=Path,
        default=Path("series"),
        metavar="DIR",
        help="where the patches go (default series/)",
    )
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--release",
        default=None,
        metavar="R",
        help=f"a kernel release that has hooks (default {DEFAULT_RELEASE})",
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="a kernel tree of your own, with the hooks of the nearest release",
    )


def _release(options: argparse.Namespace) -> str:
    if options.release and options.source:
        raise UserError("--release and --source exclude each other: a tree has its own release.")
    return options.release or DEFAULT_RELEASE


def _source(options: argparse.Namespace, reporter: Reporter) -> KernelSource:
    release = find_release(_release(options))
    return user_source(options.source) if options.source else debian_source(release, reporter)


def _lab(options: argparse.Namespace, reporter: Reporter) -> int:
    request = Request(
        release=_release(options),
        source=options.source,
        machines=tuple(options.machine),
        experiments=tuple(options.experiment),
        arms=tuple(options.arm),
        size=_size(options.size),
        settings=_settings(options.settings),
        out=options.out,
    )
    outcome = run_lab(request, reporter)
    if options.json:
        print(json.dumps(outcome.summary, indent=1, sort_keys=True))
    else:
        names = {row["experiment"] for row in outcome.summary["rows"]}
        experiments = {name: load_experiment(name) for name in names}
        print_summary(outcome.summary, experiments, output_console())
    for cell, error in outcome.failures:
        print(f"firsttouch: {cell.title} failed: {error}.", file=sys.stderr)
        print("\n".join(f"    {line}" for line in error.detail), file=sys.stderr)
    return 1 if outcome.failures else 0


def _report(options: argparse.Namespace, reporter: Reporter) -> int:
    drawn = draw_report(options.directory)
    print(drawn.file)
    for note in drawn.notes:
        reporter.say(f"firsttouch: {note}")
    return 1 if drawn.notes else 0


def _compare(options: argparse.Namespace, _reporter: Reporter) -> int:
    comparison = compare(options.a, options.b)
    if options.json:
        print(json.dumps(comparison.to_json(), indent=1, sort_keys=True))
    else:
        print_comparison(comparison, options.a, options.b, output_console())
    return 1 if comparison.contradictions else 0


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        size = parse_size(text)
    except ValueError as error:
        raise UserError(f"--size: {error}; 64M, for example, is one.") from None
    check_size(size)
    return size


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set {pair}: write PARAM=VALUE, such as by=ldadd.")
        settings[name] = value
    return settings


def _kernel(options: argparse.Namespace, reporter: Reporter) -> int:
    if options.action == "fetch":
        source = debian_source(find_release(options.release), reporter, newest=True)
        print(source.version)
    elif options.action == "build":
        image = KernelImage(_source(options, reporter), not options.stock)
        print(image.obtain(reporter) / "Image")
    else:
        source = _source(options, reporter)
        for file in write_series(source, options.out, _author()):
            print(file)
    return 0


def _author() -> str:
    """Return who the patches are from: git's user, or the project where git knows none."""
    try:
        return output(["git", "var", "GIT_AUTHOR_IDENT"]).rsplit(" ", 2)[0]
    except MachineError:
        return "firsttouch <firsttouch@localhost>"


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    reporter = Reporter()
    if options.command == "doctor":
        doctor.examine(print)
        return 0
    run = {
        "lab": _lab,
        "report": _report,
        "compare": _compare,
        "survey": survey_command.survey,
        "kernel": _kernel,
    }
    return run[options.command](options, reporter)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status. Never raises for what can be mended."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(arguments)
    except FirsttouchError as error:
        print(f"firsttouch: {error}", file=sys.stderr)
        for line in error.detail:
            print(f"    {line}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT):
            raise
        where = error.filename or "the disk"
        print(
            f"firsttouch: cannot write to {where} ({os.strerror(error.errno)}): free some space "
            "or name another directory by --out.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("firsttouch: interrupted; what was finished is kept, run again to go on.",
              file=sys.stderr)  # fmt: skip
        return 130


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
