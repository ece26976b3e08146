# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey`: first touches and set conflicts on this host and its own kernel."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.errors import FirsttouchError, HostError, UserError
from firsttouch.files import check_writable
from firsttouch.progress import Reporter
from firsttouch.survey.document import write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.printing import print_survey
from firsttouch.survey.run import DEFAULT_SECONDS, check_seconds, survey_host
from firsttouch.survey.samples import Survey
from firsttouch.survey.sentences import conclude
from firsttouch.views.terminal import output_console


class SurveyInterruptedError(FirsttouchError):
    """The user ended a survey before there was anything to keep."""

    exit_status = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch survey`."""
    parser.set_defaults(run=_run)
    parser.add_argument(
        "--seconds",
        type=int,
        default=DEFAULT_SECONDS,
        metavar="N",
        help=f"how long to measure; a longer time gives more exact times "
        f"(default {DEFAULT_SECONDS})",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="DIR",
        help="where survey.json goes (default out/)",
    )


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    """Survey this host; return the exit status: 1 if something failed."""
    check_seconds(options.seconds)
    with _locked(options.out):
        try:
            survey = survey_host(options.seconds, reporter)
        except KeyboardInterrupt:
            raise SurveyInterruptedError(
                "interrupted before there were figures: nothing was kept; "
                "run the same command again."
            ) from None
        return _finish(survey, options.out / "survey.json", reporter)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other surveys out of `directory`; make it if it is missing."""
    check_writable(directory)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(
            f"another survey is running and writes to {directory}: wait until it ends, "
            "or name another directory by --out."
        ) from None
    finally:
        os.close(descriptor)


def _finish(survey: Survey, file: Path, reporter: Reporter) -> int:
    """Print the survey and write it to `file`, even if printing fails; return the exit status."""
    findings = examine(survey)
    try:
        print_survey(findings, conclude(findings), output_console())
        sys.stdout.flush()
    finally:
        try:
            write_survey(file, survey)
        except OSError as error:
            raise HostError(
                f"cannot write {file} ({error.strerror}), so the samples are lost: "
                "free some space, or name another directory by --out, and survey again."
            ) from None
    print(f"\nAll {len(survey.samples):,} samples are in {file}.")
    if survey.interrupted:
        reporter.say("firsttouch: interrupted; what was measured so far is printed and kept.")
        return 130
    return 1 if findings.failures else 0
