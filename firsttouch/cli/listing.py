# SPDX-License-Identifier: GPL-2.0
"""What `firsttouch lab --list` and `--dry-run` print."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.experiment_files import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import load_release, release_names
from firsttouch.catalog.settings import all_settings
from firsttouch.lab.forecast import Forecast
from firsttouch.lab.plan import Plan
from firsttouch.quantities import format_duration, format_number_of
from firsttouch.views.terminal import heading, plain


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


def print_forecast(plan: Plan, forecast: Forecast, console: Console) -> None:
    """Print what a run would build and run, and about how long it takes."""
    for title, stored in forecast.parts:
        state = "in the store" if stored else "to be built"
        console.print(plain(f"{title}: {state}"), soft_wrap=True)
    work = []
    if forecast.builds:
        work.append(f"builds {format_number_of(forecast.builds, 'kernels')}")
    if forecast.missing:
        work.append(f"runs {format_number_of(forecast.missing, 'guests')}")
        work.append(f"about {format_duration(forecast.seconds)}")
    if forecast.stored:
        work.append(f"{forecast.stored:,} in the store")
    total = format_number_of(len(plan.groups), "guests")
    cells = format_number_of(len(plan.cells), "cells")
    console.print(plain(f"{cells} in {total}: {', '.join(work)}."), soft_wrap=True)
    console.print("Nothing was built or run.")
