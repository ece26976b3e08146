# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey`: first touches and set conflicts on this host and its own kernel."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from firsttouch.building.store import locked
from firsttouch.cli.options import add_out, option, settings_of
from firsttouch.files import check_writable
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import FILE_NAME
from firsttouch.progress import Reporter
from firsttouch.survey.document import write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.printing import print_survey
from firsttouch.survey.run import DEFAULT_SECONDS, check_seconds, survey_host
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import Survey, Task
from firsttouch.views.terminal import output_console


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_run, at_interrupt="nothing was kept; run the same command again")
    option(
        parser, "--seconds N",
        f"duration; a longer one is more precise (default {DEFAULT_SECONDS})",
        default=DEFAULT_SECONDS, kind=int,
    )  # fmt: skip
    add_out(parser, "out")
    option(
        parser, "--experiment E...",
        "populate, read-fault or set-conflict (default: all); may be repeated",
    )  # fmt: skip
    option(
        parser, "--set PARAM=VALUE...",
        "only the cells whose parameter has this value, such as by=store or page=2m; may be "
        "repeated",
        dest="settings",
    )  # fmt: skip


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    check_seconds(options.seconds)
    check_writable(options.out)
    wanted = selected(options.experiment, options.settings)
    waiting = f"Another run is writing to {options.out}; waiting for it."
    with locked(options.out / ".lock", lambda: reporter.say(waiting)):
        survey = survey_host(options.seconds, reporter, wanted)
        return _finish(survey, options.out, reporter)


def selected(experiments: Sequence[str], pairs: Sequence[str]) -> Callable[[Task, Cell], bool]:
    settings = settings_of(pairs)

    def wanted(_task: Task, cell: Cell) -> bool:
        return (not experiments or cell.experiment in experiments) and all(
            str(cell.params.get(name)) in values for name, values in settings.items()
        )

    return wanted


def _finish(survey: Survey, directory: Path, reporter: Reporter) -> int:
    """Write the survey and print it; return the exit status."""
    write_survey(directory, survey)
    findings = examine(survey)
    print_survey(findings, conclude(findings), output_console())
    print(f"\nAll {len(survey.samples):,} samples are in {directory / FILE_NAME}.")
    if survey.interrupted:
        reporter.say("firsttouch: interrupted; the samples so far are printed and kept.")
        return 130
    return 1 if findings.failures else 0
