# SPDX-License-Identifier: GPL-2.0
"""The main job: plan, kernels, guests, results, summary; each step goes on where it was."""

from __future__ import annotations

import concurrent.futures
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.build.store import Entry, locked, write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.errors import GuestError, MachineError
from firsttouch.lab.guard import check_double_fault
from firsttouch.vm.guest import Guest, StoppedError, recipe_key
from firsttouch.build.images import KernelImage
from firsttouch.lab.plan import Parts, Request, Run, make_plan
from firsttouch.build.programs import build_pmu, build_program
from firsttouch.progress import Reporter
from firsttouch.output.html import draw_report
from firsttouch.lab.results import Result, ResultStore
from firsttouch.build.sources import KernelSource, debian_source, find_release, user_source
from firsttouch.analysis.summary import summarize


@dataclass(frozen=True)
class Outcome:
    """What a run of the laboratory came to."""

    summary: dict[str, Any]
    failures: list[tuple[Cell, GuestError]]
    results: Path


def run_lab(request: Request, reporter: Reporter) -> Outcome:
    """Do all that `request` asks for and is not done yet; return everything measured for it.

    Raises UserError for a request that cannot be carried out, MachineError
    for a machine that lacks something, KernelBuildError, and GuestError if
    the guard finds that the effect is hidden. Cells that fail are returned.
    """
    release = find_release(request.release)
    runs = make_plan(request)
    _prepare_out(request.out)
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = user_source(request.source) if request.source else debian_source(release, reporter)
        parts = build_parts(source, runs, request.out / "log", reporter)
        store = ResultStore(request.out)
        if store.broken:
            reporter.say(
                f"{store.file}: {store.broken} unfinished or foreign lines; "
                "their cells are run again."
            )
        cells = parts.cells(runs)
        missing = [cell for cell in cells if store.get(cell.key) is None]
        if missing:
            for machine_cells in _stock_by_machine(missing):
                _guard(parts, machine_cells, request.out / "log", reporter)
        failures = run_cells(missing, store, request.out / "log", reporter)
        results = [result for cell in cells if (result := store.get(cell.key)) is not None]
        experiments = {run.experiment.name: run.experiment for run in runs}
        summary = summarize(results, experiments)
        write_atomically(
            request.out / "summary.json", json.dumps(summary, indent=1, sort_keys=True) + "\n"
        )
        if results:
            drawn = draw_report(request.out, {cell.key for cell in cells})
            reporter.say(f"Report: {drawn.file}")
    return Outcome(summary, failures, store.file)


def build_parts(source: KernelSource, runs: Sequence[Run], logs: Path, reporter: Reporter) -> Parts:
    """Return the kernels, programs and disks that `runs` need, building what is not cached."""
    ftbench, init = build_program("bench", reporter), build_program("guest", reporter)
    images = {}
    for changed in sorted({run.arm.changed for run in runs}):
        image = KernelImage(source, changed)
        log = logs / f"build-{source.version}-{'changed' if changed else 'stock'}.log"
        images[changed] = image.obtain(reporter, log) / "Image"
    wanted = dict.fromkeys(run.disk for run in runs if run.disk)
    disks = {disk: disk.obtain(reporter) for disk in wanted}
    return Parts(source, images, ftbench, init, build_pmu(reporter), disks)


def _prepare_out(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / ".writable", "")
        (out / ".writable").unlink()
    except OSError as error:
        raise MachineError(
            f"cannot write to {out} ({error.strerror}): name another directory by --out."
        ) from None


def _stock_by_machine(cells: Sequence[Cell]) -> list[Cell]:
    """Return one stock cell per machine: where the guard looks."""
    return list({cell.machine.name: cell for cell in cells if not cell.arm.changed}.values())


def _guard(parts: Parts, cell: Cell, logs: Path, reporter: Reporter) -> None:
    """Check once per kernel, machine and QEMU that the effect shows; the cache remembers."""

    def run(command: str) -> list[dict[str, Any]]:
        guest = Guest(
            cell.guest.image, parts.init, cell.machine, (), (command,), {"/ftbench": parts.ftbench}
        )
        entry = Entry("guard", recipe_key(guest.identity()))

        def boot(_: Path, kept: Path) -> None:
            lines = guest.run(logs / f"guard-{cell.machine.name}.log")
            write_atomically(kept / "lines.json", json.dumps(lines))

        lines = json.loads((entry.obtain(boot, reporter.say) / "lines.json").read_text())
        assert isinstance(lines, list)
        return lines

    faults = check_double_fault(run)
    reporter.say(f"Guard: stock on {cell.machine.name} takes {faults:,} faults for 1,024 atomics.")


def run_cells(
    cells: Sequence[Cell], store: ResultStore, logs: Path, reporter: Reporter
) -> list[tuple[Cell, GuestError]]:
    """Run `cells`, as many side by side as there are cores; return those that failed."""
    if not cells:
        return []
    failures: list[tuple[Cell, GuestError]] = []
    stop = threading.Event()
    guests: dict[str, list[Cell]] = {}
    for cell in cells:
        guests.setdefault(recipe_key(cell.guest.identity()), []).append(cell)

    def run(members: list[Cell]) -> list[Result]:
        lines = members[0].guest.run_commands(logs / members[0].log_name, stop=stop)
        return [cell.result(lines[cell.position]) for cell in members]

    with (
        reporter.step("Measuring", "cells", len(cells)) as step,
        concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        running = {pool.submit(run, members): members for members in guests.values()}
        try:
            for done in concurrent.futures.as_completed(running):
                members = running[done]
                try:
                    for result in done.result():
                        store.add(result)
                except GuestError as error:
                    failures += [(cell, error) for cell in members]
                    reporter.say(f"Failed: {members[0].title}: {error}")
                except StoppedError:
                    continue
                for _ in members:
                    step.advance()
        finally:
            # An error or an interrupt ends the guests that still run.
            stop.set()
            for future in running:
                future.cancel()
    return failures
