# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab` and `profile`, and what `try` shares: the plan, the run, what failed, times."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from firsttouch.analysis.changes import Changes, changes, repeats
from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.figures import Times, change_percent, timed_rows
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import COUNTS, INSTRUCTIONS, profiles_of
from firsttouch.building.host_tools import processors
from firsttouch.building.programs import ftbench_list
from firsttouch.building.source import DebianTree, KernelSource
from firsttouch.building.store import check_place, stored_outcome
from firsttouch.catalog.arms import BASE, Kernel
from firsttouch.catalog.contract import Contract, parse_contract
from firsttouch.cli.options import ARM, FORM, SELECTION, by_release, check_time, declare, request_of
from firsttouch.errors import GuestError, UserError
from firsttouch.files import FOLDERS, write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import check_changes, make_job, parts_of, stored_part
from firsttouch.lab.plan import HERE, SLURM, TASK, Plan, Request, make_plan
from firsttouch.lab.results import FILE_NAME, read_results
from firsttouch.lab.run import RunResults, guests_at_once, release_of, run_lab, run_task, source_of
from firsttouch.lab.timed import QUICK_ROUNDS, ROUNDS, plan_times, time_cells
from firsttouch.progress import Reporter
from firsttouch.quantities import format_change, format_duration, format_list, format_number_of
from firsttouch.tables import dump_json, names_in, read_named
from firsttouch.views.answers import print_answers
from firsttouch.views.changes import compared_arms
from firsttouch.views.comparison import print_comparison
from firsttouch.views.html.page import flame_graphs, write_figures, write_report
from firsttouch.views.profile import function_tables, print_profile
from firsttouch.views.rows import print_dataset, summary
from firsttouch.views.tables import Table, print_table, print_tables
from firsttouch.views.terminal import output_console
from firsttouch.views.times import print_times, times_document

RESUMED = "finished cells are saved; run the same command to resume"
# Seconds that a CPU takes for an object of a kernel, and that a guest takes. Rounded from an
# x86-64 host at 2.5 GHz.
_OBJECT, _GUEST = 0.6, 9.0
# Where `try` has counts by function, a folder for each arm and side.
FUNCTIONS = "functions"

_LAB = f"""{ARM}
--layouts LAYOUTS  run each cell in the first N layouts of kernel and program, or in layouts A-B,
                   and print the distribution of its figures (default: 1)
--on {{{HERE},{SLURM}}}  where guests run (default: {HERE})
--list             print the experiments, machines, arms and settings
--out DIR          output directory (default out)
"""
_PROFILE = f"""{ARM}
--count {{{",".join(COUNTS)}}}  the count to print by function: {", ".join(COUNTS)}
           (default {INSTRUCTIONS})
--table    print every function
--out DIR  output directory (default out/profile)
"""


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    if options.list:
        return _print_list()
    check_time(options)
    request = request_of(options)
    contract = parse_contract(ftbench_list(reporter))
    if options.time:
        return run_times(options, request, contract, reporter)
    if TASK in os.environ:
        ran = format_number_of(run_task(request, contract, reporter), "guests")
        reporter.say(f"This task has the outcomes of {ran}.")
        return 0
    if options.dry_run:
        return print_plan(request, contract, reporter)
    outcome, dataset, report = measure(request, contract, reporter)
    if options.json:
        print(dump_json(summary(dataset)), end="")
    elif options.table:
        print_dataset(dataset, output_console())
    elif report:
        print_answers(dataset, output_console())
        print(f"Report: {report}")
    return print_failures(outcome, request) | say_notes(dataset.notes, reporter)


def _profile(options: argparse.Namespace, reporter: Reporter) -> int:
    if not options.experiment:
        raise UserError("--experiment is missing: name the experiments to profile.")
    request = request_of(options, profile=True)
    outcome = run_lab(request, parse_contract(ftbench_list(reporter)), reporter)
    dataset = make_dataset(outcome.results, outcome.catalog)
    pictures = write_figures(flame_graphs(dataset), options.out)
    console = output_console()
    for case in dataset.cases:
        if not any(profile.total() for profile in profiles_of(case).values()):
            name = case.experiment.name
            raise UserError(f"{name} marks no region to count in: name another experiment.")
        print_profile(case, options.count, console, whole=options.table)
        console.print()
    for file in pictures:
        print(f"Flame graph: {file}")
    return print_failures(outcome, request) | say_notes(dataset.notes, reporter)


lab_options = functools.partial(
    declare, text=SELECTION + _LAB + FORM, run=by_release(_run), at_interrupt=RESUMED
)
profile_options = functools.partial(
    declare, text=SELECTION + _PROFILE, run=by_release(_profile), at_interrupt=RESUMED
)


def _print_list() -> int:
    for option, folder in FOLDERS.items():
        key = "meaning" if option == "arm" else "title"
        rows = [(n, read_named(option, n, folder).take(key, str)) for n in names_in(folder)]
        print_table(Table("", (f"--{option}", ""), rows, names=2, wraps={1: 20}), output_console())
    return 0


def print_plan(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Print what a run of `request` would do; return the exit status."""
    release = release_of(request)
    plan = make_plan(request, release.name, contract)
    source = None
    if request.source or DebianTree(release).stored():
        source = source_of(request, release, reporter)
        check_changes(parts_of(plan), source)
    builds, missing = forecast(plan, source)
    work = [f"builds {format_number_of(builds, 'kernels')}"] * bool(builds)
    if builds:
        check_place()
    if missing:
        seconds = builds * release.objects * _OBJECT / processors()
        seconds += missing * _GUEST / guests_at_once(request.jobs)
        work.append(f"runs {format_number_of(missing, 'guests')}")
        work.append(f"about {format_duration(seconds)}")
    if stored := len(plan.groups) - missing:
        work.append(f"{stored:,} in the store")
    total = format_number_of(len(plan.groups), "guests")
    cells = format_number_of(len(plan.cells), "cells")
    print(f"{release.name}: {cells} in {total}: {', '.join(work)}.")
    print("Nothing was built or run.")
    return 0


def forecast(plan: Plan, source: KernelSource | None) -> tuple[int, int]:
    """Return how many kernels a run builds, and guests it runs; without a source, all."""
    places = {part: stored_part(part, source) for part in parts_of(plan)}
    builds = sum(
        # What Debian built is fetched in seconds.
        isinstance(part, Kernel) and part.kind != "debian" and not place
        for part, place in places.items()
    )
    missing = len(plan.groups)
    if source:
        made = {part: place for part, place in places.items() if place}
        for group in plan.groups:
            with contextlib.suppress(KeyError):
                missing -= stored_outcome(make_job(plan, group, source, made).key) is not None
    return builds, missing


def measure(
    request: Request, contract: Contract, reporter: Reporter
) -> tuple[RunResults, Dataset, Path | None]:
    """Run `request`, and write summary.json and, if anything was measured, the report."""
    outcome = run_lab(request, contract, reporter)
    dataset = make_dataset(outcome.results, outcome.catalog)
    write_atomically(request.out / "summary.json", dump_json(summary(dataset)))
    # A report of stock alone must not replace one of what was tried.
    shown = changes(dataset) if request.tried else dataset.cases
    return outcome, dataset, write_report(dataset, request.out) if shown else None


def functions_of(dataset: Dataset, tried: Sequence[Changes], out: Path) -> dict[str, list[Case]]:
    """Return by arm the cells of `tried` that are in `out` by function, none of earlier runs."""
    cases: dict[str, list[Case]] = {changed.arm: [] for changed in tried}
    for changed in tried:
        for side, cell in changed.examples().items():
            place = out / FUNCTIONS / changed.arm / side
            every = read_results(place) if (place / FILE_NAME).is_file() else ()
            of = [cell.case.arms[arm].result for arm in (BASE, changed.arm)]
            ran = [each for each in every if any(repeats(each, made) for made in of)]
            if len(ran) == len(of):
                cases[changed.arm] += make_dataset(ran, dataset.catalog).cases
    return cases


def print_tried(tried: Sequence[Changes], cases: Mapping[str, Sequence[Case]]) -> None:
    console = output_console()
    for changed in tried:
        print_comparison(compared_arms(changed, len(tried)), console)
        print_tables(function_tables(cases[changed.arm], changed.arm), console)


def print_failures(outcome: RunResults, request: Request) -> int:
    """Print each reason once, with its first cell and the end of a log; return the exit status."""
    reasons: dict[str, list[tuple[Cell, GuestError]]] = {}
    for cell, error in outcome.failures:
        reasons.setdefault(str(error), []).append((cell, error))
    for reason, failed in reasons.items():
        first, error = failed[0]
        cells = f" ({len(failed):,} cells failed for this reason)" if len(failed) > 1 else ""
        # ftbench's message says more than the kernel's log.
        lines = [] if "ftbench: " in reason else list(error.detail)
        if (log := request.out / "log" / first.log_name).exists():
            lines.append(f"The kernel's log: {log}")
        experiment, arm = (
            outcome.catalog.experiments[first.experiment],
            outcome.catalog.arms[first.arm],
        )
        if not (first.profile or experiment.program):
            source, tried = request.source and request.source.resolve(), arm if arm.tried else None
            lines.append(f"To run it alone: {first.command(source, tried)}")
        print(f"firsttouch: {first.title} failed: {reason.rstrip('.')}{cells}.", file=sys.stderr)
        for line in lines:
            print(f"    {line}", file=sys.stderr)
    return 1 if reasons else 0


def say_notes(notes: Iterable[str], reporter: Reporter) -> int:
    """Print what of the results cannot be shown; return the exit status."""
    said = list(dict.fromkeys(notes))
    for note in said:
        reporter.say(f"firsttouch: {note}")
    return 1 if said else 0


def print_exceeded(
    limits: Sequence[tuple[str, float]],
    sides: Iterable[tuple[str, Mapping[str, float], Mapping[str, float]]],
) -> int:
    """Print what of `sides`, counts before and after, grows too much; return the exit status."""
    status = 0
    for of, before, after in sides:
        for name, most in limits:
            change = change_percent(before.get(name), after.get(name))
            if change is not None and change > most:
                words = f"{name} {format_change(change)}, more than +{most:g} % ({of})."
                print(f"firsttouch: {words}", file=sys.stderr)
                status = 1
    return status


def run_times(
    options: argparse.Namespace, request: Request, contract: Contract, reporter: Reporter
) -> int:
    """Measure times on this host and print them, or what it would measure; return the status."""
    rounds = options.boots or (QUICK_ROUNDS if request.quick else ROUNDS)
    if options.dry_run:
        timed = plan_times(request, release_of(request).name, contract)
        cells = format_number_of(len(timed.plan.cells) // len(timed.arms), "cells")
        boots = format_number_of(rounds * len(timed.plan.groups), "boots")
        print(f"{cells} on each of {format_list(timed.arms, 9)}: {rounds} rounds, {boots}.")
        print(timed.note)
        return 0
    times = time_cells(request, contract, rounds, reporter)
    show_times(times, json=options.json, every=options.table)
    return 0


def show_times(times: Times, *, json: bool = False, every: bool = False) -> None:
    rows = timed_rows(times)
    if json:
        print(dump_json(times_document(times, rows)), end="")
    else:
        print_times(times, rows, output_console(), every=every)
