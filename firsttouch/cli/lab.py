# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab`: build, boot, measure and compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from firsttouch.analysis.dataset import make_dataset
from firsttouch.build.programs import ftbench_list
from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.contract import parse_contract
from firsttouch.catalog.machines import DEFAULT_MACHINE
from firsttouch.cli.options import Commands, add_source, release_of, settings_of, size_of
from firsttouch.files import write_atomically
from firsttouch.lab.plan import Request
from firsttouch.lab.run import run_lab
from firsttouch.output.export import summary
from firsttouch.output.html.page import write_report
from firsttouch.output.terminal import output_console, print_dataset
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json


def add_command(commands: Commands) -> None:
    """Add `firsttouch lab`."""
    lab = commands.add_parser("lab", help="build, boot, measure and compare")
    add_source(lab)
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
        help=f"one of {', '.join(arm_names())} (default: those the experiment names)",
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
        "--jobs",
        type=int,
        metavar="N",
        help="guests at once (default: as many as CPUs and memory allow)",
    )
    lab.add_argument(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="DIR",
        help="where results go (default out/)",
    )
    lab.add_argument("--json", action="store_true", help="print summary.json instead of the table")
    lab.set_defaults(run=_run)


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    request = Request(
        release=release_of(options),
        source=options.source,
        machines=tuple(options.machine),
        experiments=tuple(options.experiment),
        arms=tuple(options.arm),
        size=size_of("--size", options.size),
        settings=settings_of(options.settings),
        jobs=options.jobs,
        out=options.out,
    )
    outcome = run_lab(request, parse_contract(ftbench_list(reporter)), reporter)
    dataset = make_dataset(outcome.results, outcome.catalog)
    summarized = dump_json(summary(dataset))
    write_atomically(request.out / "summary.json", summarized)
    if dataset.cases:
        reporter.say(f"Report: {write_report(dataset, request.out)}")
    if options.json:
        print(summarized, end="")
    else:
        print_dataset(dataset, output_console())
    for cell, error in outcome.failures:
        print(f"firsttouch: {cell.title} failed: {error}.", file=sys.stderr)
        print("\n".join(f"    {line}" for line in error.detail), file=sys.stderr)
    return 1 if outcome.failures else 0
