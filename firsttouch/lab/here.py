# SPDX-License-Identifier: GPL-2.0
"""Runs guests on this host: several at once, each in a thread that waits for its QEMU."""

from __future__ import annotations

import concurrent.futures
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from firsttouch.build.durations import guest_duration, note_durations
from firsttouch.build.host_tools import processors
from firsttouch.build.outcomes import drop_outcome, kept_outcome
from firsttouch.errors import GuestError, UserError
from firsttouch.files import digest
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job
from firsttouch.lab.hosts import Audited, Ran, Record
from firsttouch.lab.outcomes import guest_outcome, measure_guest
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of, format_size
from firsttouch.vm.guest import MEMORY
from firsttouch.vm.supervision import StoppedError

# Runs the guest of a job, with a file for its log, until the event is set.
Measure = Callable[[Job, Path, threading.Event], None]


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow.

    Raises UserError if `jobs` is less than 1.
    """
    if jobs is not None:
        if jobs < 1:
            raise UserError(f"--jobs {jobs} is too few: give at least 1.")
        return jobs
    return max(1, min(processors(), _available_memory() // MEMORY))


def _available_memory() -> int:
    """Return the bytes of memory that new processes can use without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return MEMORY


def ignore(_job: Job) -> None:
    """Do nothing when a job ends."""


def run_jobs(
    jobs: Sequence[Job],
    at_once: int,
    logs: Path,
    reporter: Reporter,
    record: Record,
    ended: Callable[[Job], None] = ignore,
) -> list[tuple[Cell, GuestError]]:
    """Run the guests of `jobs`, up to `at_once` of them at a time; return the cells that failed.

    `ended` is called as each job ends, in the thread of the caller.
    """

    def measure(job: Job, log: Path, stop: threading.Event) -> None:
        measure_guest(job.guest, job.key, log, stop=stop, root=job.root)

    def done(job: Job, seconds: float) -> None:
        titles = tuple(cell.title for cell in job.cells)
        record.ran.append(Ran(job.key, titles, socket.gethostname(), "", round(seconds, 3)))

    return _run_all(jobs, at_once, logs, reporter, "Measuring", measure, done, ended)


def audit_here(
    jobs: Sequence[Job],
    audits: set[str],
    at_once: int,
    logs: Path,
    reporter: Reporter,
    record: Record,
) -> list[tuple[Cell, GuestError]]:
    """Run the guests of the keys `audits` again; return the cells whose outcome was another."""
    again = {job.key: job for job in jobs if job.key in audits and kept_outcome(job.key)}

    def measure(job: Job, log: Path, stop: threading.Event) -> None:
        first = kept_outcome(job.key)
        outcome = guest_outcome(job.guest, log, stop=stop, root=job.root)
        if first and digest(dict(first.rest())) != digest(outcome):
            drop_outcome(job.key)
            raise GuestError(
                f"the same guest ran twice on {socket.gethostname()} and gave different bytes"
            )

    def done(job: Job, _seconds: float) -> None:
        host = socket.gethostname()
        record.audited.append(Audited(job.key, job.cells[0].title, (host, host), ("", "")))

    folder = logs / "audit"
    return _run_all([*again.values()], at_once, folder, reporter, "Auditing", measure, done)


def _run_all(
    jobs: Sequence[Job],
    at_once: int,
    logs: Path,
    reporter: Reporter,
    title: str,
    measure: Measure,
    succeeded: Callable[[Job, float], None],
    ended: Callable[[Job], None] = ignore,
) -> list[tuple[Cell, GuestError]]:
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
        reporter.step(title, "cells", cells) as step,
        concurrent.futures.ThreadPoolExecutor(at_once) as pool,
    ):
        running: dict[concurrent.futures.Future[float], Job] = {}
        try:
            for job in jobs:
                running[pool.submit(_timed, measure, job, logs, stop)] = job
            for done in concurrent.futures.as_completed(running):
                job = running[done]
                try:
                    first = job.cells[0]
                    seconds = done.result()
                    took[guest_duration(first.experiment, first.params.get("size"))] = seconds
                    succeeded(job, seconds)
                except GuestError as error:
                    failures += [(cell, error) for cell in job.cells]
                    # Report an error once, even if it ends several guests; details come last.
                    if str(error) not in said:
                        said.add(str(error))
                        reporter.say(f"Failed: {first.title}; the other cells continue.")
                except StoppedError:
                    continue
                for _ in job.cells:
                    step.advance()
                ended(job)
        finally:
            # After an error or an interrupt some guests may still be running.
            stop.set()
            for future in running:
                future.cancel()
            note_durations(took)
    return failures


def _timed(measure: Measure, job: Job, logs: Path, stop: threading.Event) -> float:
    """Run the guest of `job`; return the seconds that it took."""
    started = time.monotonic()
    measure(job, logs / job.cells[0].log_name, stop)
    return time.monotonic() - started
