# SPDX-License-Identifier: GPL-2.0
"""`lab --time` and `try --time`: cells as guests of this host's KVM, and times in their report."""

from __future__ import annotations

import argparse

from firsttouch.analysis.times import timed_rows
from firsttouch.catalog.contract import Contract
from firsttouch.cli.running import forecast, planned_source
from firsttouch.lab.plan import Request
from firsttouch.lab.results import FILE_NAME, Times
from firsttouch.lab.run import release_of
from firsttouch.lab.timed import QUICK_ROUNDS, ROUNDS, plan_times, time_cells
from firsttouch.progress import Reporter
from firsttouch.quantities import format_duration, format_list, format_number_of
from firsttouch.tables import dump_json
from firsttouch.views.terminal import output_console
from firsttouch.views.times import print_times, times_document


def run_times(
    options: argparse.Namespace, request: Request, contract: Contract, reporter: Reporter
) -> int:
    """Measure times on this host and print them, or what it would measure; return the status."""
    rounds = options.boots
    if rounds is None:
        rounds = QUICK_ROUNDS if request.quick else ROUNDS
    if options.dry_run:
        return _print_plan(request, contract, rounds, reporter)
    times = time_cells(request, contract, rounds, reporter)
    show_times(times, json=options.json, every=options.table)
    reporter.say(
        f"Every sample is in {request.out / FILE_NAME}. To share it, copy it to "
        "docs/hardware/NAME/."
    )
    return 0


def show_times(times: Times, *, json: bool = False, every: bool = False) -> None:
    rows = timed_rows(times)
    if json:
        print(dump_json(times_document(times, rows)), end="")
        return
    print_times(times, rows, output_console(), every=every)


def _print_plan(request: Request, contract: Contract, rounds: int, reporter: Reporter) -> int:
    release = release_of(request, reporter)
    timed = plan_times(request, release.name, contract, rounds)
    built = timed.built()
    source = planned_source(request, release, built, reporter)
    builds = forecast(built, release, source, 1).builds
    console = output_console()
    cells = format_number_of(len(timed.cells), "cells")
    boots = format_number_of(rounds * len(timed.arms) * len(timed.guests), "boots")
    console.print(
        f"{cells} on each of {format_list(timed.arms, 9)}: {rounds} rounds, {boots}.",
        soft_wrap=True,
    )
    for why in timed.left_out:
        console.print(f"Left out: {why}.", soft_wrap=True)
    console.print(
        f"Time: about {format_duration(timed.seconds())}, by arithmetic: 4 s a boot, 2 us a page"
        + (f"; builds {format_number_of(builds, 'kernels')} before." if builds else "."),
        soft_wrap=True,
    )
    console.print("Nothing was built or run.")
    return 0
