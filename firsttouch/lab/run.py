# SPDX-License-Identifier: GPL-2.0
"""A run: plan, parts, guard, guests, results. A run that was interrupted can be resumed.

With ``--on slurm`` guests run as an array first: task i of N runs every N-th missing guest into the
common store. A task that fails, or a guest that fails in it, costs nothing but time: whatever is
missing at the end runs here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
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
from firsttouch.building.source import KernelSource, debian_source, tree_release, user_source
from firsttouch.building.store import check_place, locked, outcome_place
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import Catalog
from firsttouch.catalog.kernels import Release, load_release
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.files import check_writable, write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job, build_parts, make_jobs, parts_of
from firsttouch.lab.outcomes import guard, measure_job, outcome_of, results_of
from firsttouch.lab.plan import SLURM, TASK, Plan, Request, make_plan
from firsttouch.lab.results import Result, write_results
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of
from firsttouch.vm.guest import MEMORY

# Seconds between two looks at guests that another run has locked, and at those of an array.
_POLL, _POLL_ARRAY = 0.2, 1.0
# Bytes for a task of an array: a guest, and QEMU's translated code.
_TASK_MEMORY = MEMORY + (1 << 30)
# Each task takes seconds to begin.
_MOST_TASKS = 64


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow."""
    return jobs or max(1, min(processors(), available_memory() // MEMORY))


def run_guests(
    jobs: Mapping[str, Job], at_once: int, logs: Path, reporter: Reporter
) -> Mapping[str, GuestError]:
    """Run the guests of `jobs`, by key, `at_once` at a time, and keep their outcomes.

    Returns the errors of those that failed. A guest that another run has locked is left for last:
    that run's outcome is used. Raises OSError if the store cannot be written.
    """
    stop = threading.Event()
    failed: dict[str, GuestError] = {}

    def end(key: str) -> bool:
        with locked(outcome_place(key).with_suffix(".lock")) as free:
            if not free or stop.is_set():
                return False
            try:
                if outcome_of(jobs[key]) is None:
                    measure_job(jobs[key], logs, stop)
            except GuestError as error:
                if not failed:
                    # The first failure: the end of the run has them all.
                    title = jobs[key].cells[0].title
                    reporter.say(f"Failed: {title}; the other cells continue.")
                failed[key] = error
            return True

    left = list(jobs)
    with (
        reporter.step("Measuring", "guests", len(jobs)) as step,
        ThreadPoolExecutor(at_once) as pool,
    ):
        try:
            while left:
                tried = {pool.submit(end, key): key for key in left}
                for future in as_completed(tried):
                    if future.result():
                        left.remove(tried[future])
                        step.advance()
                if left:
                    time.sleep(_POLL)
        finally:
            # After an error or an interrupt some guests may still be running.
            stop.set()
            pool.shutdown(cancel_futures=True)
    return failed


@dataclass(frozen=True)
class RunResults:
    """What came of a run: results in the request's order, failed cells, whether a guest `ran`."""

    results: tuple[Result, ...]
    catalog: Catalog
    failures: tuple[tuple[Cell, GuestError], ...]
    ran: bool


def run_lab(request: Request, contract: Contract, reporter: Reporter) -> RunResults:
    """Measure the cells of `request` that the store does not have; return the results of all.

    `request.out` gets the guests' logs, and results.jsonl with only these results. Raises
    UserError, HostError, BuildError, and GuestError if the guard finds no double fault; the errors
    of cells that fail are returned.
    """
    release, plan = _planned(request, contract)
    at_once = guests_at_once(request.jobs)
    check_writable(request.out)
    if request.on == SLURM:
        check_slurm()
    logs = request.out / "log"
    waiting = f"Another run is writing to {request.out}; waiting for it."
    with locked(request.out / ".lock", lambda: reporter.say(waiting)):
        source = source_of(request, release, reporter)
        jobs = make_jobs(plan, source, build_parts(source, plan, reporter))
        stored = [(job, results_of(job)) for job in jobs]
        missing = {job.key: job for job, outcome in stored if outcome is None}
        failed: Mapping[str, GuestError] = {}
        try:
            guard(missing.values(), logs, reporter)
            if missing and request.on == SLURM:
                argv = [*request.argv, *["--release", release.name] * (not request.source)]
                run_on_nodes(sorted(missing), argv, logs / "slurm", reporter)
            if missing:
                failed = run_guests(missing, at_once, logs, reporter)
        finally:
            # An interrupted run leaves the results that it has.
            collected = collect(plan, stored, failed)
            write_results(request.out, collected.results)
    return collected


def collect(
    plan: Plan,
    stored: Sequence[tuple[Job, Sequence[Result] | GuestError | None]],
    failed: Mapping[str, GuestError],
) -> RunResults:
    """Return what came of jobs: of those that the store did not have, what it has now."""
    results: dict[str, Result] = {}
    errors: dict[str, GuestError] = {}
    for job, before in stored:
        outcome = before or failed.get(job.key) or results_of(job)
        if isinstance(outcome, GuestError):
            errors |= {cell.identity: outcome for cell in job.cells}
        else:
            for result in outcome or ():
                results[result.cell.identity] = replace(result, quick=plan.quick)
    return RunResults(
        tuple(results[cell.identity] for cell in plan.cells if cell.identity in results),
        plan.catalog,
        tuple((cell, errors[cell.identity]) for cell in plan.cells if cell.identity in errors),
        any(before is None for _, before in stored),
    )


def _planned(request: Request, contract: Contract) -> tuple[Release, Plan]:
    """Return the release and the plan of a request, if this host can run it."""
    release = release_of(request)
    plan = make_plan(request, release.name, contract)
    for machine in plan.catalog.machines.values():
        machine.check_cpu(qemu_cpus())
    if any(isinstance(part, Kernel) and part.kind != "debian" for part in parts_of(plan)):
        check_place()
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


# -- as an array of Slurm


def check_slurm() -> None:
    if shutil.which("sbatch") is None:
        raise UserError(
            "--on slurm needs Slurm's commands, and sbatch is not on PATH: run this on a front "
            "end of the cluster."
        )


def run_on_nodes(keys: Sequence[str], argv: Sequence[str], logs: Path, reporter: Reporter) -> None:
    """Run the guests with these keys as an array of the command `argv`, and wait for its end.

    `logs` gets what the tasks print. Raises HostError if Slurm refuses the array. An interrupt
    cancels it.
    """
    tasks = min(len(keys), _MOST_TASKS)
    share = logs.absolute() / "guests"
    write_atomically(share, "\n".join(keys))
    task = ["exec", "env", f"{TASK}={share}", sys.executable, "-m", "firsttouch", *argv]
    submit = [
        "sbatch", "--wait", "--parsable", "--job-name=firsttouch", f"--array=0-{tasks - 1}",
        "--ntasks=1", "--cpus-per-task=1", f"--mem={_TASK_MEMORY >> 20}M",
        f"--output={str(share.parent).replace('%', '%%')}/%A-%a.log",
        "--wrap", shlex.join(task),
    ]  # fmt: skip
    with subprocess.Popen(
        submit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout is not None and waiting.stderr is not None
        job = waiting.stdout.readline().strip().partition(";")[0]
        if not job:
            raise HostError(
                "Slurm refuses the array of guests: see below; SBATCH_PARTITION, SBATCH_ACCOUNT, "
                "SBATCH_QOS and SBATCH_TIMELIMIT choose where it runs, and the limits.",
                waiting.stderr.read().splitlines(),
            )
        number = format_number_of(tasks, "tasks")
        reporter.say(f"Slurm job {job}: {number}, logs in {logs}; Ctrl-C cancels it.")
        try:
            with reporter.step("Running on nodes", "guests", len(keys)) as step:
                while waiting.poll() is None:
                    time.sleep(_POLL_ARRAY)
                    step.at(sum(outcome_place(key).exists() for key in keys))
        except BaseException:
            waiting.kill()
            subprocess.run(["scancel", "--quiet", job], check=False)
            raise


def share_of_task(made: Collection[str]) -> Sequence[str]:
    """Return every N-th of the keys in the file of `TASK`: those of this task of the array.

    Raises HostError if this node made guests of other keys.
    """
    number, count = (int(os.environ[f"SLURM_ARRAY_TASK_{name}"]) for name in ("ID", "COUNT"))
    keys = Path(os.environ[TASK]).read_text().split()[number::count]
    if not set(keys) <= set(made):
        raise HostError(
            "this node makes other guests than the front end: install the same QEMU, dtc, "
            "compilers and firsttouch on both; `firsttouch doctor` lists them."
        )
    return keys


def run_task(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Run the guests of this task of Slurm into the store; return how many have an outcome."""
    release, plan = _planned(request, contract)
    source = source_of(request, release, reporter)
    jobs = {job.key: job for job in make_jobs(plan, source, build_parts(source, plan, reporter))}
    share = {key: jobs[key] for key in share_of_task(jobs)}
    with tempfile.TemporaryDirectory(prefix="firsttouch-task-") as logs:
        return len(share) - len(run_guests(share, 1, Path(logs), reporter))
