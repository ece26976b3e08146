#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a long plan and many workers cost a share: guests that are not run.

python -m tests.lab.bench_share DIR [GUESTS [WORKERS [LEFT [SECONDS]]]]: posts a
plan of 100,000 guests in a new share in DIR and has 64 workers, each a process,
end it. All but the last LEFT (10,000) have their outcomes already, so that a
worker must find what is left. A guest takes up to SECONDS (2), in which another
host would run it: processes that did nothing else would measure how many of
them share these CPUs. Prints seconds, and counts of entries.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from firsttouch.build.outcomes import OUTCOME, outcome_place, sealed
from firsttouch.lab.posted import Order, PostedPlan, in_batches, posted_plan
from firsttouch.lab.share import Share, open_share
from firsttouch.lab.worker import Worker
from firsttouch.tables import Json
from tests.support.idle_worker import given, idle_runner, make_orders


class Timed(Worker):
    """A worker that notes the seconds of each claim, and from a guest's end to its release."""

    claims: list[float]
    results: list[float]
    ended: float

    @contextlib.contextmanager
    def _claim(self, name: str) -> Iterator[bool]:
        began = time.perf_counter()
        with super()._claim(name) as mine:
            if mine:
                self.claims.append(time.perf_counter() - began)
            self.ended = 0.0
            yield mine
        if self.ended:
            self.results.append(time.perf_counter() - self.ended)


def work(root: Path, number: int, seconds: float, told: multiprocessing.Queue[object]) -> None:
    """Run one worker; tell what it noted."""
    random.seed(number)
    run = idle_runner(seconds)
    worker = Timed(Share(root), lambda _: timed, f"host{number}", lambda _: None)
    worker.claims, worker.results = [], []

    def timed(order: Order, log: Path, stop: threading.Event) -> Mapping[str, Json]:
        outcome = run(order, log, stop)
        worker.ended = time.perf_counter()
        return outcome

    worker.work(idle=10)
    told.put((worker.claims, worker.results))


def post(share: Share, orders: Sequence[Order]) -> tuple[PostedPlan, float]:
    """Post a plan; return it and the seconds that it took."""
    plan = posted_plan(share, "bench")
    began = time.perf_counter()
    plan.post({}, in_batches(orders))
    return plan, time.perf_counter() - began


def print_times(what: str, seconds: Sequence[float]) -> None:
    """Print the median and the 95th percentile in milliseconds."""
    median, late = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
    print(f"{what}: {1000 * median:.1f} ms (95th percentile {1000 * late:.1f} ms)")


def main() -> int:
    """Run the benchmark and print its figures."""
    folder = Path(sys.argv[1])
    defaults = ("100000", "64", "10000", "2")
    guests, workers, left, seconds = map(float, [*sys.argv[2:6], *defaults[len(sys.argv) - 2 :]])
    share = open_share(folder / "share", make=True)
    orders = make_orders(int(guests))
    plan, took = post(share, orders)
    print(f"planning {len(orders):,} guests: {took:.1f} s")
    for order in orders[: max(0, len(orders) - int(left))]:
        place = outcome_place(order.key, share.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        by: dict[str, Json] = {"host": "before", "worker": "", "seconds": 0.0}
        place.write_text(sealed(OUTCOME, given(order), by=by))
    told: multiprocessing.Queue[object] = multiprocessing.Queue()
    processes = [
        multiprocessing.Process(target=work, args=(share.root, number, seconds, told))
        for number in range(int(workers))
    ]
    began = time.perf_counter()
    for process in processes:
        process.start()
    noted = [told.get() for _ in processes]
    for process in processes:
        process.join()
    claims = [one for pair in noted for one in pair[0]]  # type: ignore[index]
    results = [one for pair in noted for one in pair[1]]  # type: ignore[index]
    print(f"{len(processes)} workers ran {len(results):,} in {time.perf_counter() - began:.0f} s")
    print_times("a claim", claims)
    print_times("a result", results)
    entries = max((len([*folders, *files]), name) for name, folders, files in os.walk(share.root))
    print(f"largest directory: {entries[0]:,} entries, {Path(entries[1]).relative_to(share.root)}")
    missing = sum(share.outcome(order.key) is None for order in orders)
    print(f"missing: {missing:,}; batches left: {len(plan.open_batches())}")
    shutil.rmtree(share.root)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
