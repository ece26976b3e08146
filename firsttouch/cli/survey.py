# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey`: the experiments on this host, or in a guest to compare it with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from firsttouch.building.sources import debian_source
from firsttouch.catalog.arms import arm_names, load_arm
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.catalog.experiments import Experiment
from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.errors import UserError
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.output.terminal import output_console
from firsttouch.progress import Reporter
from firsttouch.survey.findings import examine
from firsttouch.survey.in_guest import survey_guest
from firsttouch.survey.keeping import SurveyInterruptedError, claimed, keep_survey
from firsttouch.survey.on_host import DEFAULT_SECONDS, check_seconds, survey_host
from firsttouch.survey.printing import print_survey
from firsttouch.survey.samples import Survey
from firsttouch.survey.sentences import conclude


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch survey`."""
    parser.set_defaults(run=_run)
    parser.add_argument(
        "--seconds",
        type=int,
        metavar="N",
        help=f"how long to measure; a longer time gives more exact times "
        f"(default {DEFAULT_SECONDS})",
    )
    parser.add_argument(
        "--guest",
        metavar="ARM",
        help=f"survey a guest of the laboratory instead; one of {', '.join(arm_names())}",
    )
    parser.add_argument(
        "--release", metavar="R", help=f"the guest's kernel release (default {DEFAULT_RELEASE})"
    )
    parser.add_argument(
        "--machine", metavar="M", help=f"the guest's machine (default {DEFAULT_MACHINE})"
    )
    parser.add_argument(
        "--operations",
        action="store_true",
        help="also measure what operations of mm take, such as munmap, mprotect and fork; give "
        "more --seconds",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="DIR",
        help="where survey.json goes, or survey-ARM.json for a guest (default out/)",
    )


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    """Survey this host, or a guest; return the exit status: 1 if something failed.

    Raises UserError for options that exclude each other or have an unknown value.
    """
    _check_together(options)
    survey = _guest_survey(options, reporter) if options.guest else _host_survey(options, reporter)
    name = f"survey-{options.guest}.json" if options.guest else "survey.json"
    with claimed(options.out):
        try:
            surveyed = survey()
        except KeyboardInterrupt:
            raise SurveyInterruptedError(
                "interrupted before there were figures: nothing was kept; "
                "run the same command again."
            ) from None
        return _finish(surveyed, options.out / name, reporter)


def _guest_survey(options: argparse.Namespace, reporter: Reporter) -> Callable[[], Survey]:
    """Return a function that surveys the guest in the options; UserError for an unknown one."""
    arm = load_arm(options.guest)
    machine = load_machine(options.machine or DEFAULT_MACHINE)
    release = load_release(options.release or DEFAULT_RELEASE)

    def survey() -> Survey:
        source = debian_source(release, reporter)
        return survey_guest(
            source, arm, machine, options.out / "log", reporter, _experiments(options)
        )

    return survey


def _host_survey(options: argparse.Namespace, reporter: Reporter) -> Callable[[], Survey]:
    """Return a function that surveys this host; UserError for a time out of range."""
    seconds = DEFAULT_SECONDS if options.seconds is None else options.seconds
    check_seconds(seconds)
    return lambda: survey_host(seconds, reporter, _experiments(options))


def _experiments(options: argparse.Namespace) -> list[Experiment]:
    """Return the experiments whose operations are to be measured."""
    return list(map(load_experiment, experiment_names())) if options.operations else []


def _finish(surveyed: Survey, file: Path, reporter: Reporter) -> int:
    """Print the survey and write it to `file`, even if printing fails; return the exit status."""
    findings = examine(surveyed)
    sentences = conclude(findings)
    try:
        print_survey(surveyed, findings, sentences, output_console())
        sys.stdout.flush()
    finally:
        keep_survey(file, surveyed, findings, sentences)
    print(f"\nAll {len(surveyed.samples):,} samples are in {file}.")
    if surveyed.interrupted:
        reporter.say("firsttouch: interrupted; what was measured so far is printed and kept.")
        return 130
    return 1 if findings.failures else 0


def _check_together(options: argparse.Namespace) -> None:
    if options.guest and options.seconds is not None:
        raise UserError("--seconds and --guest exclude each other: leave out --seconds.")
    for name in ("release", "machine"):
        if getattr(options, name) and not options.guest:
            raise UserError(f"--{name} needs --guest: this host runs its own kernel.")
