# SPDX-License-Identifier: GPL-2.0
"""Runs the guests that the store lacks, several at once; two runs at once share them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeAlias

from firsttouch.building.host_tools import available_memory, processors
from firsttouch.building.store import locked, outcome_place
from firsttouch.errors import GuestError, UserError
from firsttouch.lab.guests import Job
from firsttouch.lab.outcomes import measure_job, results_of
from firsttouch.lab.results import Result
from firsttouch.vm.guest import MEMORY

# Seconds between two looks at guests that another run has locked.
_POLL = 0.2

# The results of a guest's cells, or why it has none.
Ended: TypeAlias = Sequence[Result] | GuestError


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow.

    Raises UserError if `jobs` is less than 1.
    """
    if jobs is not None:
        if jobs < 1:
            raise UserError(f"--jobs {jobs} is too few: give at least 1.")
        return jobs
    return max(1, min(processors(), available_memory() // MEMORY))


def run_guests(
    jobs: Mapping[str, Job],
    at_once: int,
    logs: Path,
    done: MutableMapping[str, Ended],
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
