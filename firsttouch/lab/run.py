# SPDX-License-Identifier: GPL-2.0
"""A run: plan, parts, guard, guests, results; each step goes on where it was."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.build.claims import claimed
from firsttouch.build.durations import guest_duration, note_durations
from firsttouch.build.host_tools import DTC, find_tool, processors, qemu_cpus
from firsttouch.build.images import check_path
from firsttouch.build.outcomes import kept_outcome
from firsttouch.build.sources import (
    KernelSource,
    debian_source,
    source_tree,
    tree_release,
    user_source,
)
from firsttouch.build.store import store_root
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.releases import Release, load_release
from firsttouch.errors import GuestError, UserError
from firsttouch.files import check_writable
from firsttouch.lab.cells import Cell
from firsttouch.lab.guard import check_double_fault
from firsttouch.lab.guests import Job, build_parts, make_jobs
from firsttouch.lab.outcomes import measure_guest, results_of
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.results import FILE_NAME, Result, read_results, write_results
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of, format_size
from firsttouch.tables import Table
from firsttouch.vm.guest import MEMORY
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import StoppedError


@dataclass(frozen=True)
class Outcome:
    """What a run came to: results in the order of the request, the cells that failed and why."""

    results: tuple[Result, ...]
    catalog: Catalog
    failures: tuple[tuple[Cell, GuestError], ...]


# Gets the results of an experiment on a machine as its last guest ends, and
# the catalogue they are read by.
Finished = Callable[[Sequence[Result], Catalog], None]
# Results of jobs that the store had, by the identity of a job's first cell.
Known = Mapping[str, Sequence[Result]]


def run_lab(
    request: Request, contract: Contract, reporter: Reporter, finished: Finished | None = None
) -> Outcome:
    """Measure what `request` asks for and the store does not have; return all of it.

    `finished` is called for each experiment that had guests to run.
    `request.out` gets results.jsonl, with the results of the request and no
    others, and the guests' logs. Raises UserError for a request that cannot
    be carried out, HostError for a host that lacks something, BuildError, and
    GuestError if the guard finds that the effect is hidden. Cells that fail
    are returned.
    """
    release = release_of(request, reporter)
    plan = make_plan(request, release.name, contract)
    at_once = guests_at_once(request.jobs)
    # QEMU and dtc are wanted even if all results are stored: these are known by the digests
    # of what they make and are. A missing one is missed now, not after a kernel's build.
    for machine in plan.catalog.machines.values():
        machine.check_cpu(qemu_cpus())
    find_tool(DTC)
    check_path(store_root())
    check_writable(request.out)
    if (request.out / FILE_NAME).exists():
        # Results of another schema are not written over.
        read_results(request.out)
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with claimed(request.out / ".claim", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        logs = request.out / "log"
        jobs = make_jobs(plan, build_parts(source, plan, logs, reporter))
        known = {job.cells[0].identity: found for job in jobs if (found := results_of(job))}
        missing = [job for job in jobs if job.cells[0].identity not in known]
        try:
            for job in _stock_by_machine(missing, plan):
                _guard(job, logs, reporter)
            tell = _teller(jobs, known, plan, finished) if finished else None
            failures = run_jobs(missing, at_once, logs, reporter, tell)
        finally:
            # What an interrupted run has finished is there to be looked at.
            results = collect(jobs, plan, known)
            write_results(request.out, results)
    asked = {cell.identity for cell in plan.cells}
    failed = [(cell, error) for cell, error in failures if cell.identity in asked]
    return Outcome(tuple(results), plan.catalog, tuple(failed))


def release_of(request: Request, reporter: Reporter) -> Release:
    """Return the release whose hooks a request's kernels get; UserError if it has no kernel."""
    if request.source is None:
        return load_release(request.release)
    return tree_release(source_tree(request.source, reporter))[0]


def source_of(request: Request, release: Release, reporter: Reporter) -> KernelSource:
    """Return the kernel source of a request, fetching or unpacking it if need be."""
    if request.source is None:
        return debian_source(release, reporter)
    return user_source(request.source, reporter)


def _teller(
    jobs: Sequence[Job], known: Known, plan: Plan, finished: Finished
) -> Callable[[Job], None]:
    """Return what to call as each job that was missing ends, so that `finished` is called."""

    def owner(job: Job) -> tuple[str, str]:
        return job.cells[0].machine, job.cells[0].experiment

    left = Counter(owner(job) for job in jobs if job.cells[0].identity not in known)

    def ended(job: Job) -> None:
        left[owner(job)] -= 1
        if not left[owner(job)]:
            own = [other for other in jobs if owner(other) == owner(job)]
            finished(collect(own, plan, known), plan.catalog)

    return ended


def collect(jobs: Sequence[Job], plan: Plan, known: Known) -> list[Result]:
    """Return the results of the plan's cells that the store has, in the plan's order.

    Those that are `known` are not read again.
    """
    found = {
        result.cell.identity: replace(result, quick=plan.quick)
        for job in jobs
        for result in known.get(job.cells[0].identity) or results_of(job) or ()
    }
    return [found[cell.identity] for cell in plan.cells if cell.identity in found]


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow.

    Raises UserError for fewer than one.
    """
    if jobs is not None:
        if jobs < 1:
            raise UserError(f"--jobs {jobs} is too few: give at least 1.")
        return jobs
    return max(1, min(processors(), _available_memory() // MEMORY))


def _available_memory() -> int:
    """Return the bytes that processes may still use without pushing others out."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return MEMORY


def _stock_by_machine(jobs: Sequence[Job], plan: Plan) -> list[Job]:
    """Return a job on the stock kernel for each machine: where the guard looks."""
    return list(
        {
            job.cells[0].machine: job
            for job in jobs
            if not plan.catalog.arms[job.cells[0].arm].changed
        }.values()
    )


def _guard(job: Job, logs: Path, reporter: Reporter) -> None:
    """Check once per kernel, machine and QEMU that the effect shows; the store remembers."""
    machine = job.cells[0].machine

    def run(command: str) -> Table:
        guest = replace(job.guest, commands=(command,), boot=(), disk=None, pmu=None)
        key = guest_key(guest)
        log = logs / f"guard-{machine}.log"
        outcome = kept_outcome(key) or measure_guest(guest, key, log)
        (done,) = outcome.tables("commands")
        return done.tables("lines")[-1]

    faults = check_double_fault(run)
    reporter.say(f"Guard: stock on {machine} takes {faults:,} faults for 1,024 atomics.")


def run_jobs(
    jobs: Sequence[Job],
    at_once: int,
    logs: Path,
    reporter: Reporter,
    ended: Callable[[Job], None] | None = None,
) -> list[tuple[Cell, GuestError]]:
    """Run the guests of `jobs`, `at_once` side by side; return the cells that failed.

    `ended` is called as each job ends, in the thread of the caller.
    """
    if not jobs:
        return []
    failures: list[tuple[Cell, GuestError]] = []
    stop = threading.Event()
    cells = sum(len(job.cells) for job in jobs)
    said: set[str] = set()
    took: dict[str, float] = {}
    at_once = min(at_once, len(jobs))
    guests = format_number_of(at_once, "guests")
    reporter.say(f"Running {guests} at once, {format_size(MEMORY)} each (--jobs).")
    with (
        reporter.step("Measuring", "cells", cells) as step,
        concurrent.futures.ThreadPoolExecutor(at_once) as pool,
    ):
        running: dict[concurrent.futures.Future[float], Job] = {}
        try:
            for job in jobs:
                running[pool.submit(_timed, job, logs / job.cells[0].log_name, stop)] = job
            for done in concurrent.futures.as_completed(running):
                job = running[done]
                try:
                    first = job.cells[0]
                    took[guest_duration(first.experiment, first.params.get("size"))] = done.result()
                except GuestError as error:
                    failures += [(cell, error) for cell in job.cells]
                    # Guests that fail alike fail once for who watches; why is told at the end.
                    if str(error) not in said:
                        said.add(str(error))
                        reporter.say(f"Failed: {first.title}; the others go on.")
                except StoppedError:
                    continue
                for _ in job.cells:
                    step.advance()
                if ended:
                    ended(job)
        finally:
            # An error or an interrupt ends the guests that still run.
            stop.set()
            for future in running:
                future.cancel()
            note_durations(took)
    return failures


def _timed(job: Job, log: Path, stop: threading.Event) -> float:
    """Run the guest of `job`; return the seconds that it took."""
    started = time.monotonic()
    measure_guest(job.guest, job.key, log, stop=stop)
    return time.monotonic() - started
