# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab`: build, boot, measure and compare."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import parse_contract
from firsttouch.cli.options import (
    add_architecture,
    add_selection,
    check_time,
    request_of,
    where_of,
)
from firsttouch.cli.running import measure, print_list, print_plan, print_problems
from firsttouch.lab.cells import parse_layouts
from firsttouch.lab.plan import HERE, SLURM, TASK
from firsttouch.lab.run import run_task
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of
from firsttouch.tables import dump_json
from firsttouch.views.answers import print_answers
from firsttouch.views.rows import print_dataset, summary
from firsttouch.views.terminal import output_console


def add_options(lab: argparse.ArgumentParser) -> None:
    add_selection(lab, Path("out"))
    lab.add_argument(
        "--layouts",
        metavar="N",
        help="run each cell in the first N layouts of kernel and program, or in layouts A-B, and "
        "print the distribution of its figures (default: the experiment's, mostly 1)",
    )
    lab.add_argument(
        "--on",
        default=HERE,
        metavar="WHERE",
        help=f"where guests run: {HERE} (default), {SLURM} or {SLURM}:PARTITION",
    )
    only = add_form(lab)
    only.add_argument(
        "--list", action="store_true", help="print the experiments, machines, arms and releases"
    )
    lab.set_defaults(
        run=_run, at_interrupt="finished cells are kept; run the same command to resume"
    )


def add_form(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options that say what is printed; return those of which one can be given."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="get a first answer from smaller sizes and fewer cells",
    )
    parser.add_argument(
        "--time",
        action="store_true",
        help="measure times instead of counts: boot stock, stock again and each other arm in "
        "turn as KVM guests of this host",
    )
    parser.add_argument(
        "--boots",
        type=int,
        metavar="N",
        help="with --time: boots of each arm (default 20, with --quick 8)",
    )
    add_architecture(parser)
    parser.add_argument("--table", action="store_true", help="print every row")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--dry-run",
        action="store_true",
        help="print the plan and run nothing",
    )
    return only


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    if options.list:
        return 0 if print_list(output_console()) else 2
    check_time(options)
    layouts = parse_layouts(options.layouts) if options.layouts is not None else ()
    request = request_of(options, quick=options.quick, layouts=layouts)
    request = replace(request, on=where_of(options.on))
    contract = parse_contract(ftbench_list(reporter))
    if options.time:
        from firsttouch.cli.timed import run_times

        return run_times(options, request, contract, reporter)
    if request.on.startswith(f"{TASK}:"):
        ran = format_number_of(run_task(request, contract, reporter), "guests")
        reporter.say(f"This task has the outcomes of {ran}.")
        return 0
    if options.dry_run:
        return print_plan(request, contract, reporter)
    measured = measure(request, contract, reporter)
    _show(measured.dataset, measured.report, options, reporter)
    return print_problems(measured, request, reporter)


def _show(dataset: Dataset, report: str, options: argparse.Namespace, reporter: Reporter) -> None:
    if options.json:
        print(dump_json(summary(dataset)), end="")
    elif options.table:
        print_dataset(dataset, output_console())
    elif dataset.cases:
        print_answers(dataset, report, output_console())
    if report and (options.json or options.table):
        reporter.say(f"Report: {report}")
