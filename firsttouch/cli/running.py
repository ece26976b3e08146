# SPDX-License-Identifier: GPL-2.0
"""What `lab` and `try` do with a request: forecast it, show a guest, run it, say what failed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.figures import timed_rows
from firsttouch.building.host_tools import processors
from firsttouch.building.source import KernelSource, has_debian_source
from firsttouch.building.store import stored_outcome
from firsttouch.catalog.arms import Kernel, all_settings, arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import load_release, release_names
from firsttouch.errors import GuestError
from firsttouch.files import write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import (
    Parts,
    check_changes,
    make_job,
    parts_of,
    stored_part,
)
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.results import FILE_NAME, Times
from firsttouch.lab.run import RunResults, guests_at_once, run_lab, source_of
from firsttouch.lab.run import release_of as release_of_request
from firsttouch.lab.timed import QUICK_ROUNDS, ROUNDS, plan_times, time_cells
from firsttouch.progress import Reporter
from firsttouch.quantities import format_duration, format_list, format_number_of
from firsttouch.tables import dump_json
from firsttouch.views.html.page import write_report
from firsttouch.views.rows import summary
from firsttouch.views.terminal import heading, output_console, plain
from firsttouch.views.times import print_times, times_document


def print_list(console: Console) -> None:
    catalog = load_catalog(experiment_names(), machine_names(), arm_names())
    experiments = []
    for experiment in catalog.experiments.values():
        marks = ["default"] if experiment.default else []
        marks += ["quick"] if experiment.quick is not None else []
        about = f" ({', '.join(marks)})" if marks else ""
        experiments.append((experiment.name, experiment.title + about))
    _print("Experiments (--experiment)", experiments, console)
    machines = [(machine.name, machine.title) for machine in catalog.machines.values()]
    _print("Machines (--machine)", machines, console)
    arms = sorted(catalog.arms.values(), key=lambda arm: arm.order)
    _print("Arms (--arm)", [(arm.name, arm.meaning) for arm in arms], console)
    settings = all_settings()
    _print("Settings (try --setting)", [(each.name, each.title) for each in settings], console)
    releases = [(name, f"Debian's {load_release(name).package}") for name in release_names()]
    _print("Releases (--release)", releases, console)


def _print(title: str, entries: Iterable[tuple[str, str]], console: Console) -> None:
    entries = list(entries)
    width = max((len(name) for name, _ in entries), default=0)
    console.print(heading(title))
    for name, words in entries:
        console.print(plain(f"  {name:{width}}  {words}"), soft_wrap=True)


# Seconds that a CPU takes for an object of a kernel, and that a guest takes. Rounded from an
# x86-64 host at 2.5 GHz.
_OBJECT, _GUEST = 1.0, 10.0


def print_plan(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Print what a run of `request` would do; return the exit status."""
    release = release_of_request(request)
    plan = make_plan(request, release.name, contract)
    source = None
    if request.source or has_debian_source(release):
        source = source_of(request, release, reporter)
        check_changes(parts_of(plan, plan.cells), source)
    builds, missing = forecast(plan, source)
    work = [f"builds {format_number_of(builds, 'kernels')}"] * bool(builds)
    if missing:
        seconds = builds * release.objects * _OBJECT / processors()
        seconds += missing * _GUEST / guests_at_once(request.jobs)
        work.append(f"runs {format_number_of(missing, 'guests')}")
        work.append(f"about {format_duration(seconds)}")
    if stored := len(plan.groups) - missing:
        work.append(f"{stored:,} in the store")
    total = format_number_of(len(plan.groups), "guests")
    cells = format_number_of(len(plan.cells), "cells")
    console = output_console()
    said = f"{release.name}: {cells} in {total}: {', '.join(work)}."
    console.print(plain(said), soft_wrap=True)
    console.print("Nothing was built or run.")
    return 0


def forecast(plan: Plan, source: KernelSource | None) -> tuple[int, int]:
    """Return how many kernels a run builds, and guests it runs; without a source, all."""
    places = {part: stored_part(part, source) for part in parts_of(plan, plan.cells)}
    builds = sum(
        # What Debian built is fetched in seconds.
        isinstance(part, Kernel) and part.kind != "debian" and not place
        for part, place in places.items()
    )
    missing = len(plan.groups)
    if source:
        made = Parts(source, {part: place for part, place in places.items() if place})
        for group in plan.groups:
            if made.places.keys() >= set(parts_of(plan, group)):
                missing -= stored_outcome(make_job(plan, group, made).key) is not None
    return builds, missing


@dataclass(frozen=True)
class LabReport:
    """What a run measured: `report` is the path of its page, empty if nothing was measured."""

    outcome: RunResults
    dataset: Dataset
    report: str


def measure(request: Request, contract: Contract, reporter: Reporter) -> LabReport:
    """Run `request`, and write summary.json and the report."""
    outcome = run_lab(request, contract, reporter)
    dataset = make_dataset(outcome.results, outcome.catalog)
    write_atomically(request.out / "summary.json", dump_json(summary(dataset)))
    report = ""
    if dataset.cases:
        report = str(write_report(dataset, request.out, base=request.baseline))
    return LabReport(outcome, dataset, report)


def print_failures(outcome: RunResults, logs: Path, source: Path | None) -> int:
    """Print what failed on the kernel of `source`, None for Debian's; return the exit status."""
    for line in _failures(outcome, logs, source):
        print(line, file=sys.stderr)
    return 1 if outcome.failures else 0


def _failures(outcome: RunResults, logs: Path, source: Path | None) -> Iterator[str]:
    """Return lines about what failed: each reason once, its first cell, and the end of one log."""
    reasons: dict[str, list[tuple[Cell, GuestError]]] = {}
    for cell, error in outcome.failures:
        reasons.setdefault(str(error), []).append((cell, error))
    for reason, failed in reasons.items():
        first, error = failed[0]
        cells = f" ({len(failed):,} cells failed for this reason)" if len(failed) > 1 else ""
        yield f"firsttouch: {first.title} failed: {reason.rstrip('.')}{cells}."
        # ftbench's message says more than the kernel's log.
        if "ftbench: " not in reason:
            yield from (f"    {line}" for line in error.detail)
        if (log := logs / first.log_name).exists():
            yield f"    The kernel's log: {log}"
        if first.profile or outcome.catalog.experiments[first.experiment].program:
            continue
        arm = outcome.catalog.arms[first.arm]
        words = first.command(
            source.resolve() if source else None,
            arm if arm.tried else None,
            several=outcome.catalog.experiments[first.experiment].layouts > 1,
        )
        yield f"    It alone: {words}"


def run_times(
    options: argparse.Namespace, request: Request, contract: Contract, reporter: Reporter
) -> int:
    """Measure times on this host and print them, or what it would measure; return the status."""
    rounds = options.boots
    if rounds is None:
        rounds = QUICK_ROUNDS if request.quick else ROUNDS
    if options.dry_run:
        timed = plan_times(request, release_of_request(request).name, contract, rounds)
        cells = format_number_of(len(timed.plan.cells) // len(timed.arms), "cells")
        boots = format_number_of(rounds * len(timed.plan.groups), "boots")
        print(f"{cells} on each of {format_list(timed.arms, 9)}: {rounds} rounds, {boots}.")
        print(timed.note)
        return 0
    times = time_cells(request, contract, rounds, reporter)
    show_times(times, json=options.json, every=options.table)
    reporter.say(f"Every sample is in {request.out / FILE_NAME}.")
    return 0


def show_times(times: Times, *, json: bool = False, every: bool = False) -> None:
    rows = timed_rows(times)
    if json:
        print(dump_json(times_document(times, rows)), end="")
    else:
        print_times(times, rows, output_console(), every=every)
