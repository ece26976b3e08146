# SPDX-License-Identifier: GPL-2.0
"""A run: plan, parts, guard, guests, results. A run that was interrupted can be resumed."""

from __future__ import annotations

import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.claims import claimed
from firsttouch.building.durations import guest_duration, note_durations
from firsttouch.building.host_tools import (
    DTC,
    check_plugins,
    compiler_version,
    find_tool,
    qemu_cpus,
    qemu_version,
)
from firsttouch.building.kernels import keep_vmlinux
from firsttouch.building.sources import (
    KernelSource,
    debian_source,
    source_tree,
    tree_release,
    user_source,
)
from firsttouch.building.store import check_path, store_root
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.releases import Release, load_release
from firsttouch.errors import GuestError
from firsttouch.files import check_writable
from firsttouch.lab.cells import Cell
from firsttouch.lab.execution import Execution, guests_at_once
from firsttouch.lab.gathering import Gathering
from firsttouch.lab.guard import guard
from firsttouch.lab.guests import Job, make_jobs
from firsttouch.lab.hosts import Record, audited
from firsttouch.lab.outcomes import results_of
from firsttouch.lab.parts import build_parts, kernels_of
from firsttouch.lab.plan import SLURM, Plan, Request, make_plan
from firsttouch.lab.results import Result, check_replaceable, write_results
from firsttouch.lab.shared_plan import SharedPlan, shared_plan
from firsttouch.lab.slurm import find_partition
from firsttouch.lab.slurm_jobs import build_kernels, follow_nodes
from firsttouch.progress import Reporter, Step
from firsttouch.quantities import format_number_of, format_size
from firsttouch.vm.guest import MEMORY


@dataclass(frozen=True)
class RunResults:
    """What came of a run: results in the order of the request, and each failed cell's error."""

    results: tuple[Result, ...]
    catalog: Catalog
    failures: tuple[tuple[Cell, GuestError], ...]


# Called when the last guest of an experiment on a machine has ended, with the
# results of all of them and the catalogue.
Finished = Callable[[Sequence[Result], Catalog], None]
# Of a server that crashed, and did not write what it had said it wrote.
_LOST = GuestError("its outcome was written and is no longer in the store: run it again")
# Seconds in which a signal to QEMU and all other processes of a job has reached this one, too.
_GRACE = 1.0
# Results of jobs that the store had, by the identity of a job's first cell.
Stored = Mapping[str, Sequence[Result]]


def run_lab(
    request: Request, contract: Contract, reporter: Reporter, finished: Finished | None = None
) -> RunResults:
    """Measure the cells of `request` that the store does not have; return the results of all.

    `finished` is called for each experiment and machine that had guests to run.
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
    where, _, name = request.on.partition(":")
    partition = find_partition(name) if where == SLURM else None
    record, logs = Record(), request.out / "log"
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with claimed(request.out / ".claim", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        if partition:
            build_kernels(plan, source, partition, logs / "slurm", reporter)
        parts = build_parts(source, plan, logs, reporter)
        if request.vmlinux:
            _keep_vmlinux(plan, source, reporter)
        jobs = make_jobs(plan, parts)
        stored = {job.cells[0].identity: some for job in jobs if (some := results_of(job))}
        missing = [job for job in jobs if job.cells[0].identity not in stored]
        try:
            guard(missing, plan, logs, reporter)
            audits = audited([job.key for job in jobs], request.audit)
            shared = shared_plan((job.key for job in jobs), audits)
            lacking = frozenset(job.key for job in missing)
            wanted = _by_key(jobs, lacking | audits)
            cells = sum(len(job.cells) for job in missing)
            failures = []
            if wanted:
                with reporter.step("Measuring", "cells", cells) as step:
                    ended = _notifier(jobs, stored, plan, step, finished)
                    gathering = Gathering(wanted, lacking, logs, reporter, record, ended)
                    if partition:
                        follow_nodes(gathering, shared, partition, request, reporter)
                    else:
                        _run_here(gathering, shared, at_once, reporter)
                failures = gathering.failures
            if audits:
                reporter.say(record.sentence(len(audits), len(jobs)))
            for cell, _ in failures:
                stored.pop(cell.identity, None)
        finally:
            # An interrupted run leaves the results that it has.
            results = collect(jobs, plan, stored)
            write_results(request.out, results)
            record.write(request.out)
            _note_durations(record, jobs)
    there = {result.cell.identity for result in results}
    failed = {cell.identity: error for cell, error in failures}
    return RunResults(
        tuple(results),
        plan.catalog,
        tuple(
            (cell, failed.get(cell.identity, _LOST))
            for cell in plan.cells
            if cell.identity not in there
        ),
    )


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
    check_path(store_root())


def _by_key(jobs: Sequence[Job], keys: Collection[str]) -> dict[str, list[Job]]:
    """Return the jobs with these keys; cells that differ in name alone have one key."""
    by_key: dict[str, list[Job]] = {}
    for job in jobs:
        if job.key in keys:
            by_key.setdefault(job.key, []).append(job)
    return by_key


def _run_here(gathering: Gathering, plan: SharedPlan, at_once: int, reporter: Reporter) -> None:
    """Run the guests that `gathering` waits for, or wait for those that other processes run."""
    count = min(at_once, len(gathering.left))
    number = format_number_of(count, "guests")
    reporter.say(f"Running {number} at once, {format_size(MEMORY)} each (--jobs).")
    jobs = {key: same[0] for key, same in gathering.jobs.items()}
    Execution(plan, jobs, socket.gethostname(), gathering.logs).run(count, gathering.take)


def join_run(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Run guests for a run of `request` that has begun with the same store; return how many.

    It ends when all of that plan have ended. Raises HostError if no such run
    has begun, if this host would run other guests, or if it fails those that
    others run.
    """
    release = release_of(request, reporter)
    plan = make_plan(request, release.name, contract)
    with tempfile.TemporaryDirectory(prefix="firsttouch-join-") as scratch:
        logs = Path(scratch)
        _check_host(plan)
        source = source_of(request, release, reporter)
        jobs = {job.key: job for job in make_jobs(plan, build_parts(source, plan, logs, reporter))}
        shared = shared_plan(jobs, audited(list(jobs), request.audit))
        shared.check_joinable()
        execution = Execution(shared, jobs, socket.gethostname(), logs, joins=True, grace=_GRACE)
        execution.run(guests_at_once(request.jobs), lambda *_: None)
    return execution.ran


def _keep_vmlinux(plan: Plan, source: KernelSource, reporter: Reporter) -> None:
    """Build vmlinux of the user's kernels, or else of all, and say where it is."""
    kernels = kernels_of(plan, plan.cells)
    for kernel in [kernel for kernel in kernels if kernel.label] or kernels:
        if vmlinux := keep_vmlinux(kernel, source, reporter):
            reporter.say(f"vmlinux {kernel.label or kernel.kind}: {vmlinux}")


def _note_durations(record: Record, jobs: Sequence[Job]) -> None:
    """Note how long guests took on this host, for the forecast of its next run."""
    first = {job.key: job.cells[0] for job in jobs}
    took = {
        guest_duration(first[ran.key].experiment, first[ran.key].params.get("size")): ran.seconds
        for ran in record.ran
        if ran.host == socket.gethostname()
    }
    if took:
        note_durations(took)


def release_of(request: Request, reporter: Reporter) -> Release:
    """Return the release whose hooks the request's kernels get.

    Raises UserError if the request's source is not a kernel.
    """
    if request.source is None:
        return load_release(request.release)
    return tree_release(source_tree(request.source, reporter))[0]


def source_of(request: Request, release: Release, reporter: Reporter) -> KernelSource:
    """Return the kernel source of a request; fetch or unpack it if necessary."""
    if request.source is None:
        return debian_source(release, reporter)
    return user_source(request.source, reporter)


def _notifier(
    jobs: Sequence[Job], stored: Stored, plan: Plan, step: Step, finished: Finished | None
) -> Callable[[Job], None]:
    """Return a function to call as each job ends; it calls `finished`, if any, when due."""

    def owner(job: Job) -> tuple[str, str]:
        return job.cells[0].machine, job.cells[0].experiment

    left = Counter(owner(job) for job in jobs if job.cells[0].identity not in stored)

    def ended(job: Job) -> None:
        for _ in job.cells:
            step.advance()
        left[owner(job)] -= 1
        if finished and not left[owner(job)]:
            owned = [other for other in jobs if owner(other) == owner(job)]
            finished(collect(owned, plan, stored), plan.catalog)

    return ended


def collect(jobs: Sequence[Job], plan: Plan, stored: Stored) -> list[Result]:
    """Return the stored results of the plan's cells, in the plan's order.

    Results that are `stored` are not read again.
    """
    collected = {
        result.cell.identity: replace(result, quick=plan.quick)
        for job in jobs
        for result in stored.get(job.cells[0].identity) or results_of(job) or ()
    }
    return [collected[cell.identity] for cell in plan.cells if cell.identity in collected]
