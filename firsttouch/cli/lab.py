# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab` and `profile`: build, boot, measure and compare, in sum or by function."""

from __future__ import annotations

import argparse
from dataclasses import replace

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.profile import COUNTS, INSTRUCTIONS, profiles_of
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import parse_contract
from firsttouch.cli.options import (
    add_architecture,
    add_selection,
    by_release,
    check_time,
    option,
    request_of,
    where_of,
)
from firsttouch.cli.running import measure, print_failures, print_list, print_plan, run_times
from firsttouch.errors import UserError
from firsttouch.lab.cells import parse_layouts
from firsttouch.lab.plan import HERE, SLURM, TASK
from firsttouch.lab.run import run_lab, run_task
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of
from firsttouch.tables import dump_json
from firsttouch.views.answers import print_answers
from firsttouch.views.html.page import flame_graphs, write_figures
from firsttouch.views.profile import print_profile
from firsttouch.views.rows import print_dataset, summary
from firsttouch.views.terminal import output_console


def lab_options(lab: argparse.ArgumentParser) -> None:
    add_selection(lab, "out")
    option(
        lab, "--layouts N",
        "run each cell in the first N layouts of kernel and program, or in layouts A-B, and "
        "print the distribution of its figures (default: the experiment's, mostly 1)",
    )  # fmt: skip
    option(
        lab, "--on WHERE", f"where guests run: {HERE} (default), {SLURM} or {SLURM}:PARTITION",
        default=HERE,
    )  # fmt: skip
    add_form(lab)
    option(lab, "--list", "print the experiments, machines, arms and releases")
    lab.set_defaults(run=by_release(_run))


def add_form(parser: argparse.ArgumentParser) -> None:
    option(parser, "--quick", "get a first answer from smaller sizes and fewer cells")
    option(
        parser, "--time",
        "measure times instead of counts: boot stock, stock again and each other arm in "
        "turn as KVM guests of this host",
    )  # fmt: skip
    option(
        parser, "--boots N", "with --time: boots of each arm (default 20, with --quick 8)",
        kind=int,
    )  # fmt: skip
    add_architecture(parser)
    option(parser, "--table", "print every row")
    option(parser, "--json", "print the answer as JSON")
    option(parser, "--dry-run", "print the plan and run nothing")


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    if options.list:
        print_list(output_console())
        return 0
    check_time(options)
    layouts = parse_layouts(options.layouts) if options.layouts is not None else ()
    request = request_of(options, quick=options.quick, layouts=layouts)
    request = replace(request, on=where_of(options.on))
    contract = parse_contract(ftbench_list(reporter))
    if options.time:
        return run_times(options, request, contract, reporter)
    if request.on.startswith(f"{TASK}:"):
        ran = format_number_of(run_task(request, contract, reporter), "guests")
        reporter.say(f"This task has the outcomes of {ran}.")
        return 0
    if options.dry_run:
        return print_plan(request, contract, reporter)
    measured = measure(request, contract, reporter)
    _show(measured.dataset, measured.report, options, reporter)
    return print_failures(measured.outcome, request.out / "log", request.source)


def _show(dataset: Dataset, report: str, options: argparse.Namespace, reporter: Reporter) -> None:
    if options.json:
        print(dump_json(summary(dataset)), end="")
    elif options.table:
        print_dataset(dataset, output_console())
    elif dataset.cases:
        print_answers(dataset, report, output_console())
    if report and (options.json or options.table):
        reporter.say(f"Report: {report}")


def profile_options(profile: argparse.ArgumentParser) -> None:
    profile.description = (
        "Measure cells with counts by function of the kernel. Print the functions by what they "
        "execute per page fault on each arm, and the change from the first arm to the last; draw "
        "the calls as a flame graph."
    )
    add_selection(profile, "out/profile")
    option(
        profile, "--count", f"the count to print by function (default {INSTRUCTIONS})",
        choices=tuple(COUNTS), default=INSTRUCTIONS,
    )  # fmt: skip
    option(profile, "--table", "print every function")
    profile.set_defaults(run=by_release(_profile))


def _profile(options: argparse.Namespace, reporter: Reporter) -> int:
    if not options.experiment:
        raise UserError("--experiment is missing: name the experiments to profile.")
    contract = parse_contract(ftbench_list(reporter))
    outcome = run_lab(request_of(options, profile=True), contract, reporter)
    dataset = make_dataset(outcome.results, outcome.catalog)
    pictures = write_figures(flame_graphs(dataset), options.out)
    console = output_console()
    for case in dataset.cases:
        if not any(profile.total() for profile in profiles_of(case).values()):
            raise UserError(
                f"{case.experiment.name} marks no region to count in: name another experiment."
            )
        print_profile(case, options.count, console, whole=options.table)
        console.print()
    for file in pictures:
        print(f"Flame graph: {file}")
    return print_failures(outcome, options.out / "log", options.source)
