# SPDX-License-Identifier: GPL-2.0
"""The workers of `--on here`: threads of the run itself, and the store is their share."""

from __future__ import annotations

import concurrent.futures
import math
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from firsttouch.build.host_tools import processors
from firsttouch.build.store import store_root
from firsttouch.errors import UserError
from firsttouch.lab.follow import Crew
from firsttouch.lab.guests import Job
from firsttouch.lab.outcomes import guest_outcome
from firsttouch.lab.posted import Order, PostedPlan
from firsttouch.lab.share import Share
from firsttouch.lab.worker import Worker
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of, format_size
from firsttouch.tables import Json
from firsttouch.vm.guest import MEMORY


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


@contextmanager
def own_workers(
    jobs: Sequence[Job], guests: int, at_once: int, out: Path, logs: Path, reporter: Reporter
) -> Iterator[Crew]:
    """Yield the workers that run so many `guests`, of those of `jobs`; they end with the context.

    The store has the outcomes and the claims, so that two runs never run the
    same guest at once. The plan is in `out`, which belongs to this run.
    """
    board = out / ".plan"
    # Of a run that was killed; its outcomes are in the store.
    shutil.rmtree(board, ignore_errors=True)
    share = Share(store_root(), board=board)
    by_key = {job.key: job for job in jobs}
    stop = threading.Event()

    def run(order: Order, _log: Path, stop: threading.Event) -> Mapping[str, Json]:
        job = by_key[order.key]
        log = logs / job.cells[0].log_name
        return guest_outcome(job.guest, log, stop=stop, root=job.root)

    count = min(at_once, guests)
    if count:
        number = format_number_of(count, "guests")
        reporter.say(f"Running {number} at once, {format_size(MEMORY)} each (--jobs).")
    with ExitStack() as left, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        left.callback(shutil.rmtree, board, ignore_errors=True)
        working: list[concurrent.futures.Future[None]] = []

        def tend(_plan: PostedPlan, _living: int) -> None:
            while len(working) < count:
                worker = Worker(
                    share, lambda _: run, socket.gethostname(), lambda _: None, stop, own=True
                )
                working.append(pool.submit(worker.work, math.inf))
            for one in working:
                if one.done():
                    one.result()

        try:
            yield Crew(share, tend, remote=False)
        finally:
            # After an error or an interrupt some guests may still be running.
            stop.set()
