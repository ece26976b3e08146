# SPDX-License-Identifier: GPL-2.0
"""A run: plan, parts, guard, guests, results. A run that was interrupted can be resumed."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from firsttouch.building.host_tools import (
    DTC,
    available_memory,
    check_plugins,
    compiler_version,
    find_tool,
    processors,
    qemu_cpus,
    qemu_version,
)
from firsttouch.building.source import (
    KernelSource,
    debian_source,
    source_tree,
    tree_release,
    user_source,
)
from firsttouch.building.store import locked, outcome_place
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.releases import Release, load_release
from firsttouch.errors import GuestError, UserError
from firsttouch.files import check_writable
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job, build_parts, make_jobs
from firsttouch.lab.outcomes import guard, measure_job, results_of
from firsttouch.lab.plan import SLURM, Plan, Request, make_plan
from firsttouch.lab.results import Result, check_replaceable, write_results
from firsttouch.lab.slurm import check_slurm, run_on_nodes, share_of_task
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of, format_size
from firsttouch.vm.guest import MEMORY

# Seconds between two looks at guests that another run has locked.
_POLL = 0.2

# The results of a guest's cells, or why it has none.
GuestOutcome: TypeAlias = Sequence[Result] | GuestError


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow."""
    if jobs is not None:
        if jobs < 1:
            raise UserError(f"--jobs {jobs} is too few: give at least 1.")
        return jobs
    return max(1, min(processors(), available_memory() // MEMORY))


def run_guests(
    jobs: Mapping[str, Job],
    at_once: int,
    logs: Path,
    done: MutableMapping[str, GuestOutcome],
    ended: Callable[[str], None],
) -> None:
    """Run the guests of `jobs`, by key, `at_once` at a time, and keep their outcomes.

    `done` gets what came of each as soon as it is there, even if an exception
    follows; then `ended` is called with its key, in this thread. A guest that
    another run has locked is left for last: that run's outcome is used. `logs`
    gets the kernels' logs. Raises OSError if the store cannot be written.
    """
    stop = threading.Event()

    def end(key: str) -> None:
        with locked(outcome_place(key).with_suffix(".lock")) as free:
            if free and not stop.is_set():
                try:
                    done[key] = results_of(jobs[key]) or measure_job(jobs[key], logs, stop)
                except GuestError as error:
                    done[key] = error

    left = list(jobs)
    with ThreadPoolExecutor(at_once) as pool:
        try:
            while left:
                tried = {pool.submit(end, key): key for key in left}
                for future in as_completed(tried):
                    future.result()
                    if tried[future] in done:
                        ended(tried[future])
                left = [key for key in left if key not in done]
                if left:
                    time.sleep(_POLL)
        finally:
            # After an error or an interrupt some guests may still be running.
            stop.set()
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class RunResults:
    """What came of a run: results in the order of the request, and each failed cell's error."""

    results: tuple[Result, ...]
    catalog: Catalog
    failures: tuple[tuple[Cell, GuestError], ...]


def run_lab(request: Request, contract: Contract, reporter: Reporter) -> RunResults:
    """Measure the cells of `request` that the store does not have; return the results of all.

    `request.out` gets the guests' logs, and results.jsonl with only the results
    of the request. Raises UserError if the request cannot be carried out,
    HostError if the host lacks something, BuildError, and GuestError if the
    guard finds no double fault. A cell that fails raises nothing; its error is
    in the outcome.
    """
    release = release_of(request, reporter)
    plan = make_plan(request, release.name, contract)
    at_once = guests_at_once(request.jobs)
    _check_host(plan)
    check_writable(request.out)
    check_replaceable(request.out)
    where, _, partition = request.on.partition(":")
    if where == SLURM:
        check_slurm()
    logs = request.out / "log"
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        jobs = make_jobs(plan, build_parts(source, plan, logs, reporter))
        stored = [stored_results(job) for job in jobs]
        missing = [job for job, ended in zip(jobs, stored, strict=True) if ended is None]
        done: dict[str, GuestOutcome] = {}
        try:
            guard(missing, plan, logs, reporter)
            if missing and where == SLURM:
                keys = {job.key for job in missing}
                run_on_nodes(sorted(keys), partition, request, logs / "slurm", reporter)
            if missing:
                _run_missing(missing, at_once, logs, done, reporter)
        finally:
            # An interrupted run leaves the results that it has.
            collected = collect(plan, jobs, [
                ended or _ended(job, done) for job, ended in zip(jobs, stored, strict=True)
            ])  # fmt: skip
            write_results(request.out, collected.results)
    return collected


def stored_results(job: Job) -> GuestOutcome | None:
    try:
        return results_of(job)
    except GuestError as error:
        # A recording that this version cannot use fails its cells, and no other.
        return error


def _ended(job: Job, done: Mapping[str, GuestOutcome]) -> GuestOutcome | None:
    """Return what came of a job; others with its key, for cells of other names, may have run."""
    ended = done.get(job.key)
    return ended if isinstance(ended, GuestError) else stored_results(job)


def collect(plan: Plan, jobs: Sequence[Job], ended: Sequence[GuestOutcome | None]) -> RunResults:
    results: dict[str, Result] = {}
    errors: dict[str, GuestError] = {}
    for job, outcome in zip(jobs, ended, strict=True):
        if isinstance(outcome, GuestError):
            errors |= {cell.identity: outcome for cell in job.cells}
        else:
            for result in outcome or ():
                results[result.cell.identity] = replace(result, quick=plan.quick)
    return RunResults(
        tuple(results[cell.identity] for cell in plan.cells if cell.identity in results),
        plan.catalog,
        tuple((cell, errors[cell.identity]) for cell in plan.cells if cell.identity in errors),
    )


def _run_missing(
    missing: Sequence[Job],
    at_once: int,
    logs: Path,
    done: MutableMapping[str, GuestOutcome],
    reporter: Reporter,
) -> None:
    jobs = {job.key: job for job in missing}
    said: set[str] = set()

    def ended(key: str) -> None:
        step.advance()
        error = done[key]
        if isinstance(error, GuestError) and str(error) not in said:
            # An error may end several guests; details come last.
            said.add(str(error))
            reporter.say(f"Failed: {jobs[key].cells[0].title}; the other cells continue.")

    number = format_number_of(min(at_once, len(jobs)), "guests")
    reporter.say(f"Running {number} at once, {format_size(MEMORY)} each (--jobs).")
    with reporter.step("Measuring", "guests", len(jobs)) as step:
        run_guests(jobs, at_once, logs, done, ended)


def run_task(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Run the guests of this task of Slurm into the store; return how many have an outcome."""
    release = release_of(request, reporter)
    plan = make_plan(request, release.name, contract)
    _check_host(plan)
    source = source_of(request, release, reporter)
    done: dict[str, GuestOutcome] = {}
    with tempfile.TemporaryDirectory(prefix="firsttouch-task-") as scratch:
        logs = Path(scratch)
        jobs = {job.key: job for job in make_jobs(plan, build_parts(source, plan, logs, reporter))}
        share = share_of_task(Path(request.on.partition(":")[2]), jobs)
        run_guests(share, guests_at_once(request.jobs), logs, done, lambda _: None)
    return sum(not isinstance(ended, GuestError) for ended in done.values())


def _check_host(plan: Plan) -> None:
    """Check for QEMU and dtc before a kernel is built, because keys of guests have their digests.

    They are needed even if all results are stored. Results also name the versions
    of QEMU and of the compiler, which must not be missing when all guests have run.
    """
    for machine in plan.catalog.machines.values():
        machine.check_cpu(qemu_cpus())
    check_plugins()
    find_tool(DTC)
    qemu_version()
    compiler_version()


def release_of(request: Request, reporter: Reporter) -> Release:
    if request.source is None:
        return load_release(request.release)
    return tree_release(source_tree(request.source, reporter))[0]


def source_of(request: Request, release: Release, reporter: Reporter) -> KernelSource:
    """Return the kernel source of a request; fetch or unpack it if necessary."""
    if request.source is None:
        return debian_source(release, reporter)
    return user_source(request.source, reporter)
