# SPDX-License-Identifier: GPL-2.0
"""A run: plan, parts, guard, guests, results. A run that was interrupted can be resumed."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.host_tools import (
    DTC,
    available_memory,
    check_plugins,
    cross_compile,
    find_tool,
    processors,
    qemu_cpus,
    version,
)
from firsttouch.building.source import (
    KernelSource,
    debian_source,
    tree_release,
    user_source,
)
from firsttouch.building.store import locked, outcome_place
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.releases import Release, load_release
from firsttouch.errors import GuestError
from firsttouch.files import check_writable
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job, build_parts, make_jobs
from firsttouch.lab.outcomes import guard, measure_job, results_of
from firsttouch.lab.plan import SLURM, Plan, Request, make_plan
from firsttouch.lab.results import Result, write_results
from firsttouch.lab.slurm import check_slurm, run_on_nodes, share_of_task
from firsttouch.progress import Reporter
from firsttouch.vm.guest import MEMORY

# Seconds between two looks at guests that another run has locked.
_POLL = 0.2


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow."""
    if jobs is not None:
        return jobs
    return max(1, min(processors(), available_memory() // MEMORY))


def run_guests(
    jobs: Mapping[str, Job],
    at_once: int,
    logs: Path,
    failed: MutableMapping[str, GuestError],
    ended: Callable[[str], object] = lambda _: None,
) -> None:
    """Run the guests of `jobs`, by key, `at_once` at a time, and keep their outcomes.

    `failed` gets the errors, even if an exception follows. `ended` is called with the key of each
    guest that has ended, in this thread. A guest that another run has locked is left for last:
    that run's outcome is used. Raises OSError if the store cannot be written.
    """
    stop = threading.Event()

    def end(key: str) -> bool:
        with locked(outcome_place(key).with_suffix(".lock")) as free:
            if not free or stop.is_set():
                return False
            try:
                if results_of(jobs[key]) is None:
                    measure_job(jobs[key], logs, stop)
            except GuestError as error:
                failed[key] = error
            return True

    left = list(jobs)
    with ThreadPoolExecutor(at_once) as pool:
        try:
            while left:
                tried = {pool.submit(end, key): key for key in left}
                for future in as_completed(tried):
                    if future.result():
                        left.remove(tried[future])
                        ended(tried[future])
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

    `request.out` gets the guests' logs, and results.jsonl with only these results. Raises
    UserError, HostError, BuildError, and GuestError if the guard finds no double fault; the errors
    of cells that fail are returned.
    """
    release, plan = _planned(request, contract)
    at_once = guests_at_once(request.jobs)
    check_writable(request.out)
    where, _, partition = request.on.partition(":")
    if where == SLURM:
        check_slurm()
    logs = request.out / "log"
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        jobs = make_jobs(plan, build_parts(source, plan, reporter))
        stored = [(job, stored_results(job)) for job in jobs]
        missing = {job.key: job for job, outcome in stored if outcome is None}
        failed: dict[str, GuestError] = {}
        try:
            guard(missing.values(), logs, reporter)
            if missing and where == SLURM:
                argv = [*request.argv, *["--release", release.name] * (not request.source)]
                run_on_nodes(sorted(missing), partition, argv, logs / "slurm", reporter)
            if missing:
                _run_missing(missing, at_once, logs, failed, reporter)
        finally:
            # An interrupted run leaves the results that it has.
            collected = collect(plan, stored, failed)
            write_results(request.out, collected.results)
    return collected


def stored_results(job: Job) -> Sequence[Result] | GuestError | None:
    try:
        return results_of(job)
    except GuestError as error:
        # A recording that this version cannot use fails its cells, and no other.
        return error


def collect(
    plan: Plan,
    stored: Iterable[tuple[Job, Sequence[Result] | GuestError | None]],
    failed: Mapping[str, GuestError],
) -> RunResults:
    """Return what came of jobs: of those that the store did not have, what it has now."""
    results: dict[str, Result] = {}
    errors: dict[str, GuestError] = {}
    for job, before in stored:
        outcome = before or failed.get(job.key) or stored_results(job)
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
    jobs: Mapping[str, Job],
    at_once: int,
    logs: Path,
    failed: MutableMapping[str, GuestError],
    reporter: Reporter,
) -> None:
    def ended(key: str) -> None:
        step.advance()
        # The first failure: the end of the run has them all.
        if next(iter(failed), "") == key:
            reporter.say(f"Failed: {jobs[key].cells[0].title}; the other cells continue.")

    with reporter.step("Measuring", "guests", len(jobs)) as step:
        run_guests(jobs, at_once, logs, failed, ended)


def run_task(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Run the guests of this task of Slurm into the store; return how many have an outcome."""
    release, plan = _planned(request, contract)
    source = source_of(request, release, reporter)
    failed: dict[str, GuestError] = {}
    with tempfile.TemporaryDirectory(prefix="firsttouch-task-") as scratch:
        logs = Path(scratch)
        jobs = {job.key: job for job in make_jobs(plan, build_parts(source, plan, reporter))}
        share = share_of_task(Path(request.on.partition(":")[2]), jobs)
        run_guests(share, guests_at_once(request.jobs), logs, failed)
    return len(share) - len(failed)


def _planned(request: Request, contract: Contract) -> tuple[Release, Plan]:
    """Return the release and the plan of a request, if this host can run it.

    Keys of guests have the digests of QEMU and dtc, and results name QEMU and the compiler: a
    host without them is an error before a kernel is built, even if all results are stored.
    """
    release = release_of(request)
    plan = make_plan(request, release.name, contract)
    for machine in plan.catalog.machines.values():
        machine.check_cpu(qemu_cpus())
    check_plugins()
    find_tool(DTC)
    version()
    version(f"{cross_compile()}gcc")
    return release, plan


def release_of(request: Request) -> Release:
    if request.source is None:
        return load_release(request.release)
    return tree_release(request.source.resolve())[0]


def source_of(request: Request, release: Release, reporter: Reporter) -> KernelSource:
    """Return the kernel source of a request; fetch it if necessary."""
    if request.source is None:
        return debian_source(release, reporter)
    return user_source(request.source, reporter)
