# SPDX-License-Identifier: GPL-2.0
"""What `lab` and `try` do with a request: forecast it, show a guest, run it, say what failed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.building.host_tools import processors
from firsttouch.building.source import KernelSource, has_debian_source
from firsttouch.building.store import stored_outcome
from firsttouch.catalog.arms import Kernel, all_settings, arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import Release, load_release, release_names
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
from firsttouch.lab.run import RunResults, guests_at_once, run_lab, source_of
from firsttouch.lab.run import release_of as release_of_request
from firsttouch.progress import Reporter
from firsttouch.quantities import format_duration, format_number_of
from firsttouch.tables import dump_json
from firsttouch.views.html.page import write_report
from firsttouch.views.rows import summary
from firsttouch.views.terminal import heading, output_console, plain


def print_list(console: Console) -> bool:
    """Print all experiments, machines, arms and releases; return whether all files are valid."""
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
    for problem in catalog.broken.values():
        console.print(plain(f"Left out: {problem}"), soft_wrap=True)
    return not catalog.broken


def _print(title: str, entries: Iterable[tuple[str, str]], console: Console) -> None:
    entries = list(entries)
    width = max((len(name) for name, _ in entries), default=0)
    console.print(heading(title))
    for name, words in entries:
        console.print(plain(f"  {name:{width}}  {words}"), soft_wrap=True)


def print_plan(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Print what a run of `request` would do; return the exit status."""
    release = release_of_request(request, reporter)
    plan = make_plan(request, release.name, contract)
    source = planned_source(request, release, plan, reporter)
    would = forecast(plan, release, source, guests_at_once(request.jobs))
    work = [f"builds {format_number_of(would.builds, 'kernels')}"] * bool(would.builds)
    if would.missing:
        work.append(f"runs {format_number_of(would.missing, 'guests')}")
        work.append(f"about {format_duration(would.seconds)}")
    if would.stored:
        work.append(f"{would.stored:,} in the store")
    total = format_number_of(len(plan.groups), "guests")
    cells = format_number_of(len(plan.cells), "cells")
    console = output_console()
    console.print(plain(f"{cells} in {total}: {', '.join(work)}."), soft_wrap=True)
    console.print("Nothing was built or run.")
    return 0


def planned_source(
    request: Request, release: Release, plan: Plan, reporter: Reporter
) -> KernelSource | None:
    """Return the source of a plan if it is there without a download; None if it is not."""
    if not request.source and not has_debian_source(release):
        return None
    source = source_of(request, release, reporter)
    check_changes(parts_of(plan, plan.cells), source)
    return source


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


def print_problems(measured: LabReport, request: Request, reporter: Reporter) -> int:
    for problem in measured.outcome.catalog.broken.values():
        reporter.say(f"firsttouch: {problem}")
    return print_failures(measured.outcome, request.out / "log", request.source)


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


# Seconds that a CPU takes for an object of a kernel, and that a guest takes. Rounded from an
# x86-64 host at 2.5 GHz.
_OBJECT, _GUEST = 1.0, 10.0


@dataclass(frozen=True)
class Forecast:
    """What a run would do: how many kernels it builds, guests it runs, and finds in the store.

    The outcome of a guest with a part that is not built cannot be there. `seconds` is a rough
    estimate of the whole run.
    """

    builds: int
    missing: int
    stored: int
    seconds: float


def forecast(plan: Plan, release: Release, source: KernelSource | None, at_once: int) -> Forecast:
    """Return what a run of `plan` would do; `source` is None if it is not fetched yet."""
    places = {part: stored_part(part, source) for part in parts_of(plan, plan.cells)}
    made = None
    if source:
        made = Parts(source, {part: place for part, place in places.items() if place})
    # What Debian built is fetched in seconds.
    builds = sum(
        isinstance(part, Kernel) and part.kind != "debian" and not place
        for part, place in places.items()
    )
    stored = sum(_is_stored(plan, group, made) for group in plan.groups)
    missing = len(plan.groups) - stored
    seconds = builds * release.objects * _OBJECT / processors() + missing * _GUEST / at_once
    return Forecast(builds, missing, stored, seconds)


def _is_stored(plan: Plan, group: tuple[Cell, ...], parts: Parts | None) -> bool:
    if parts is None or not parts.places.keys() >= set(parts_of(plan, group)):
        return False
    return stored_outcome(make_job(plan, group, parts).key) is not None
