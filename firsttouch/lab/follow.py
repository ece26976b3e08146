# SPDX-License-Identifier: GPL-2.0
"""Follows a plan in a share to its end: collects outcomes, failures, and who ran what."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.build.outcomes import (
    OUTCOME,
    drop_outcome,
    keep_outcome,
    outcome_place,
    read_sealed,
)
from firsttouch.errors import GuestError
from firsttouch.files import digest
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job
from firsttouch.lab.hosts import Audited, Ran, Record
from firsttouch.lab.orders import Posting, make_posting
from firsttouch.lab.posted import Order, PostedPlan, host_of, in_batches, posted_plan
from firsttouch.lab.share import Share, ran_by
from firsttouch.progress import Reporter
from firsttouch.tables import Table

# Seconds between two looks at the news of workers, and between two at the share itself.
_POLL, _TEND = 0.5, 5.0
# Guests of which a quiet run looks at the files at a time.
_LOOKED_AT = 1000
# Called at the start and every few seconds with the plan and the number of its living
# workers: whoever starts workers does it here.
Tend = Callable[[PostedPlan, int], None]


@dataclass(frozen=True)
class Crew:
    """The workers of a run: their share, and who looks after them.

    Those that are not `remote` are of this process: they have its jobs, and end
    with it. The others have only the share: all that guests need is copied into
    it, a guest that fails is tried on a second host, and they outlive the run.
    """

    share: Share
    tend: Tend
    remote: bool = True


@contextlib.contextmanager
def by_hand(share: Share, reporter: Reporter) -> Iterator[Crew]:
    """Yield workers that the user is asked to start whenever none lives."""
    said = False

    def tend(_plan: PostedPlan, living: int) -> None:
        nonlocal said
        if living == 0 and not said:
            reporter.say(f"Waiting for workers: run `firsttouch worker {share.root}` on each host.")
        said = living == 0

    yield Crew(share, tend)


@dataclass
class Following:
    """A run of `jobs` in a share, by key: those of `missing` results, and those of `audits`."""

    crew: Crew
    plan: PostedPlan
    posting: Posting
    jobs: Mapping[str, Sequence[Job]]
    reporter: Reporter
    logs: Path
    record: Record
    missing: set[str]
    audits: set[str]
    failed: dict[str, GuestError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The same run may have been posted before, and interrupted: join it.
        read = {batch: self.plan.read(batch) for batch in self.plan.batches()}
        self._batches: dict[str, Sequence[Order]] = {
            batch: orders for batch, orders in read.items() if orders is not None
        }
        posted = {order.key for orders in self._batches.values() for order in orders}
        fresh = [order for order in self.posting.orders if order.key not in posted]
        self._batches |= in_batches(fresh)
        self._batch_of = {
            order.key: batch for batch, orders in self._batches.items() for order in orders
        }
        self._read: dict[str, int] = {}
        self._hosts: set[str] = set()
        # What one host has failed.
        self._suspects: frozenset[str] = frozenset()
        self._said: set[str] = set()
        self._looked_at = 0

    def post(self) -> None:
        """Write the plan, or what the share lost of it."""
        for sha256, file in self.posting.parts.items():
            self.plan.share.add_part(sha256, file)
        self.plan.post(self.posting.common, self._batches)

    def follow(self, ended: Callable[[Job], None]) -> None:
        """Wait until every job has ended; call `ended` for each."""
        tended = heard = -_TEND
        while self.missing or self.audits:
            for worker, line in self.plan.news(self._read):
                self._hear(worker, line, ended)
                heard = time.monotonic()
            now = time.monotonic()
            if now - tended >= _TEND:
                self.post()
                living = self.plan.living()
                # News may be lost, and what they told of, too.
                quiet = now - heard >= _TEND
                for key in self._next_to_look_at() if quiet else self._suspects:
                    self._look(key, ended)
                self._give_up({host_of(worker) for worker in living}, ended)
                if self.missing or self.audits:
                    self.crew.tend(self.plan, len(living))
                tended = time.monotonic()
            time.sleep(_POLL)

    def _next_to_look_at(self) -> list[str]:
        left = sorted(self.missing | self.audits)
        begin = self._looked_at if self._looked_at < len(left) else 0
        self._looked_at = begin + _LOOKED_AT
        return left[begin : self._looked_at]

    def _hear(self, worker: str, line: Table, ended: Callable[[Job], None]) -> None:
        host = host_of(worker)
        if self.crew.remote and host not in self._hosts:
            self._hosts.add(host)
            self.reporter.say(f"{host} runs guests.")
        if not line.has("stopped"):
            if (key := line.take("key", str)) in self.jobs:
                self._look(key, ended)
        elif self.crew.remote:
            self.reporter.say(f"A worker on {host} stopped: {line.take('stopped', str)}")

    def _look(self, key: str, ended: Callable[[Job], None]) -> None:
        """Take over what the share has of a job; have workers look again at one that it lost."""
        share, job = self.plan.share, self.jobs[key][0]
        failures = self.plan.failures(key)
        needed = 2 if self.crew.remote else 1
        if len(failures) >= needed or any(not failure.take("host", str) for failure in failures):
            self._fail(key, failures, ended)
            return
        if failures:
            self._suspects = self._suspects | {key}
        first = share.outcome(key) if key in self.missing | self.audits else None
        if first and key in self.missing:
            if self.crew.remote:
                keep_outcome(key, dict(first.table(OUTCOME).rest()))
            titles = tuple(cell.title for cell in job.cells)
            self.record.ran.append(Ran(key, titles, **vars(ran_by(first))))
            self._end(key, ended)
        again = self.plan.audited(key) if first and key in self.audits else None
        if first and again and first.take("digest", str) == again.take("digest", str):
            by = ran_by(first), ran_by(again)
            hosts, workers = tuple(one.host for one in by), tuple(one.worker for one in by)
            self.record.audited.append(Audited(key, job.cells[0].title, hosts, workers))
            self.audits.discard(key)
        if key in self.missing | self.audits:
            self.plan.reopen(self._batch_of[key])
        else:
            self._suspects = self._suspects - {key}

    def _give_up(self, hosts: set[str], ended: Callable[[Job], None]) -> None:
        """End what one host failed, if nothing else is left and no other of the `hosts` lives."""
        if not self._suspects or not self.missing | self.audits <= self._suspects:
            return
        for key in sorted(self.missing | self.audits):
            failures = self.plan.failures(key)
            if failures and hosts <= {failure.take("host", str) for failure in failures}:
                self._fail(key, failures, ended)

    def _fail(self, key: str, failures: Sequence[Table], ended: Callable[[Job], None]) -> None:
        job, last = self.jobs[key][0], failures[-1]
        if key in self.failed:
            return
        if log := last.take("log", str):
            self.logs.mkdir(parents=True, exist_ok=True)
            (self.logs / job.cells[0].log_name).write_text(log)
        if not last.take("host", str):
            # Hosts do not agree: no outcome of this guest can be trusted.
            drop_outcome(key)
            self.record.ran[:] = [ran for ran in self.record.ran if ran.key != key]
        self.failed[key] = error = GuestError(last.take("error", str), last.strings("detail"))
        # Say an error once, even if it ends several guests; details come last.
        if str(error) not in self._said:
            self._said.add(str(error))
            self.reporter.say(f"Failed: {job.cells[0].title}; the other cells continue.")
        self.audits.discard(key)
        self._suspects = self._suspects - {key}
        if key in self.missing:
            self._end(key, ended)

    def _end(self, key: str, ended: Callable[[Job], None]) -> None:
        self.missing.discard(key)
        for job in self.jobs[key]:
            ended(job)


def run_jobs(
    jobs: Sequence[Job],
    missing: Sequence[Job],
    audits: set[str],
    crew: Crew,
    logs: Path,
    reporter: Reporter,
    record: Record,
    ended: Callable[[Job], None],
) -> list[tuple[Cell, GuestError]]:
    """Have a crew run the `missing` of a plan's `jobs`; return the cells that failed.

    `audits` has the keys of those that are to be run twice. `ended` is called as
    each job ends. The same plan joins its run in the share, if that was
    interrupted.
    """
    plan = posted_plan(crew.share, digest([[job.key for job in jobs], sorted(audits)])[:16])
    lacking = {job.key for job in missing}
    wanted: dict[str, list[Job]] = {}
    for job in jobs:
        if job.key in lacking or job.key in audits:
            wanted.setdefault(job.key, []).append(job)
    if not wanted:
        return []
    first = [same[0] for same in wanted.values()]
    plan.forget_failures()
    if crew.remote:
        posting = make_posting(first, audits, reporter)
        for key in audits - lacking:
            _hand_over(key, plan)
    else:
        orders = [Order(job.key, job.cells[0].title, job.key in audits, {}) for job in first]
        posting = Posting(tuple(orders), {}, {})
    following = Following(crew, plan, posting, wanted, reporter, logs, record, lacking, set(audits))
    with reporter.step("Measuring", "cells", sum(len(job.cells) for job in missing)) as step:

        def done(job: Job) -> None:
            for _ in job.cells:
                step.advance()
            ended(job)

        try:
            following.follow(done)
        except KeyboardInterrupt:
            if crew.remote:
                reporter.say(f"The workers go on. To cancel what they have left: rm -r {plan.path}")
            raise
    plan.remove()
    return [
        (cell, error)
        for key, error in following.failed.items()
        for job in wanted[key]
        for cell in job.cells
    ]


def _hand_over(key: str, plan: PostedPlan) -> None:
    """Give the share an outcome of the store, of which this host is to be audited."""
    document = read_sealed(outcome_place(key), OUTCOME)
    if document is None:
        return
    by, outcome = ran_by(document), dict(document.table(OUTCOME).rest())
    if (other := plan.share.keep(outcome_place(key, plan.share.root), outcome, by)) is not None:
        plan.disagree(key, other, by.host, "they gave different bytes")
