# SPDX-License-Identifier: GPL-2.0
"""`firsttouch profile`: where the kernel's instructions go, by function and by call."""

from __future__ import annotations

import argparse
from pathlib import Path

from firsttouch.analysis.dataset import make_dataset
from firsttouch.analysis.profile import COUNTS, INSTRUCTIONS, profiles_of
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.contract import parse_contract
from firsttouch.cli.options import add_selection, request_of
from firsttouch.cli.running import print_failures
from firsttouch.errors import UserError
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from firsttouch.views.html.page import flame_graphs, write_figures
from firsttouch.views.profile import print_profile
from firsttouch.views.terminal import output_console


def add_options(profile: argparse.ArgumentParser) -> None:
    profile.description = (
        "Measure cells with counts by function of the kernel. Print the functions by what they "
        "execute per page fault on each arm, and the change from the first arm to the last; draw "
        "the calls as a flame graph."
    )
    add_selection(profile, Path("out/profile"))
    profile.add_argument(
        "--count",
        choices=tuple(COUNTS),
        default=INSTRUCTIONS,
        help=f"the count to print by function (default {INSTRUCTIONS})",
    )
    profile.add_argument("--table", action="store_true", help="print every function")
    profile.set_defaults(
        run=_run, at_interrupt="finished cells are kept; run the same command to resume"
    )


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
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
