# SPDX-License-Identifier: GPL-2.0
"""Runs the guests of a plan, as one of several processes perhaps, until all have ended."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import queue
import random
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.building.claims import claimed_if_free
from firsttouch.building.host_tools import available_memory, processors
from firsttouch.building.outcomes import By, guest_claim, keep_outcome, run_by, stored_document
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.files import digest, read_end
from firsttouch.lab.guests import Job
from firsttouch.lab.outcomes import guest_outcome, keep_traces
from firsttouch.lab.shared_plan import Ended, Failure, SharedPlan
from firsttouch.tables import Json, Table
from firsttouch.vm.guest import MEMORY
from firsttouch.vm.supervision import StoppedError

# Failures in a row after which a process checks that its host is not the reason.
_IN_A_ROW = 3
# Seconds between two looks at guests that others run, at first and at most.
_POLL, _SLOW_POLL = 0.2, 5.0
# Seconds between two such checks, and guests among which they look for one of another host.
_CHECK, _SAMPLE = 1.0, 1000
# Bytes of a failed guest's log that a failure keeps: its end.
_LOG = 1 << 20


def guests_at_once(jobs: int | None) -> int:
    """Return how many guests run at once: `jobs`, or as many as CPUs and memory allow.

    Raises UserError if `jobs` is less than 1.
    """
    if jobs is not None:
        if jobs < 1:
            raise UserError(f"--jobs {jobs} is too few: give at least 1.")
        return jobs
    return max(1, min(processors(), available_memory() // MEMORY))


class _NotTakenError(Exception):
    """Another process runs the guest, or is to run it."""


@dataclass
class Execution:
    """The guests of `jobs`, by key, that this process and others of the same plan run.

    `logs` gets the kernels' logs. A guest that ends within `grace` seconds
    before `stop` is set has not failed: a cluster ends QEMU and this process
    together. With `joins`, a random guest comes first: other processes began
    with the first.
    """

    plan: SharedPlan
    jobs: Mapping[str, Job]
    host: str
    logs: Path
    joins: bool = False
    grace: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.ran = 0
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._next_check = 0.0
        self._left = dict.fromkeys(self.jobs)
        self._ended: queue.Queue[tuple[str, Ended]] = queue.Queue()

    def run(self, at_once: int, take: Callable[[str, Ended], None]) -> None:
        """Run `at_once` guests at a time until all have ended; `take` gets how each did.

        Raises HostError if this host fails what another has run, and OSError.
        """
        waiting = len(self.jobs)
        with (
            self.plan.running(self.host),
            concurrent.futures.ThreadPoolExecutor(at_once) as pool,
        ):
            threads: list[concurrent.futures.Future[None]] = []
            try:
                threads += (pool.submit(self._work) for _ in range(at_once))
                while waiting and not self.stop.is_set():
                    for thread in threads:
                        if thread.done():
                            thread.result()
                    with contextlib.suppress(queue.Empty):
                        take(*self._ended.get(timeout=_POLL))
                        waiting -= 1
            finally:
                # After an error or an interrupt some guests may still be running.
                self.stop.set()

    def _work(self) -> None:
        poll = _POLL
        while self._left and not self.stop.is_set():
            before = self.ran
            for key in self._in_turn():
                if self.stop.is_set():
                    return
                self._check_host()
                with contextlib.suppress(_NotTakenError, StoppedError):
                    self._end(key, self._ended_or_run(key))
            poll = min(1.5 * poll, _SLOW_POLL) if self.ran == before else _POLL
            if self._left:
                self.stop.wait(poll)

    def _in_turn(self) -> list[str]:
        with self._lock:
            keys = list(self._left)
        begin = random.randrange(len(keys)) if self.joins and keys else 0
        return [*keys[begin:], *keys[:begin]]

    def _end(self, key: str, ended: Ended) -> None:
        with self._lock:
            if key not in self._left:
                return
            del self._left[key]
        self._ended.put((key, ended))

    def _ended_or_run(self, key: str) -> Ended:
        """Return how a guest ended; run it if need be. Raises _NotTakenError."""
        if ended := self.plan.how_ended(key):
            return ended
        with claimed_if_free(guest_claim(key), self.plan.lease) as mine:
            if not mine:
                raise _NotTakenError
            # Another process may have ended it before this one had the claim.
            if ended := self.plan.how_ended(key):
                return ended
            first = stored_document(key)
            if first and run_by(first).host == self.host and self.plan.hosts() > {self.host}:
                # It is to be audited, and another host can do that.
                raise _NotTakenError
            if self.host in {failure.host for failure in self.plan.failures(key)}:
                raise _NotTakenError
            self._run(key, first)
            if ended := self.plan.how_ended(key):
                return ended
        raise _NotTakenError

    def _run(self, key: str, first: Table | None) -> None:
        """Run a guest and keep what came of it; `first` is its outcome, if it is audited."""
        began = time.monotonic()
        log = self.logs / self.jobs[key].cells[0].log_name
        try:
            outcome = self._outcome(key, log)
            if traced := self.jobs[key].traced:
                # A recording that cannot be used must not be kept.
                keep_traces(traced, Table(log, outcome))
        except GuestError as error:
            # The signal to this process may come after QEMU's.
            if self.grace and self.stop.wait(self.grace):
                raise StoppedError from None
            with self._lock:
                self._in_a_row += 1
            if first:
                self.plan.disagree(key, first, self.host, f"it failed on {self.host}: {error}")
            else:
                failure = Failure(self.host, str(error), tuple(error.detail), read_end(log, _LOG))
                self.plan.add_failure(key, failure)
            return
        with self._lock:
            self._in_a_row = 0
            self.ran += 1
        by = By(self.host, round(time.monotonic() - began, 3))
        # A lease may pass while a host sleeps: then two hosts run the same guest.
        other = None if first else keep_outcome(key, outcome, by)
        if first:
            self.plan.keep_audit(key, digest(outcome), by)
            other = first if first.take("digest", str) != digest(outcome) else None
        if other:
            self.plan.disagree(key, other, self.host, "they gave different bytes")

    def _outcome(self, key: str, log: Path) -> Mapping[str, Json]:
        return guest_outcome(self.jobs[key].guest, log, stop=self.stop)

    def _check_host(self) -> None:
        """After failures in a row, find out whether this host is the reason.

        It runs a guest again that another host has run. Raises HostError if
        that fails, too, or gives other bytes. Until another host has run any,
        the guests may be the reason: it goes on, and looks again.
        """
        with self._lock:
            if self._in_a_row < _IN_A_ROW or time.monotonic() < self._next_check:
                return
            self._next_check = time.monotonic() + _CHECK
        for key in itertools.islice(self.jobs, _SAMPLE):
            document = stored_document(key)
            if document and run_by(document).host != self.host:
                self._compare(key, document)
                return

    def _compare(self, key: str, document: Table) -> None:
        """Run a guest again that another host has run; HostError unless it gives the same."""
        with tempfile.TemporaryDirectory(prefix="firsttouch-check-") as scratch:
            try:
                outcome = self._outcome(key, Path(scratch, "log"))
                why = "it gave other bytes"
            except GuestError as error:
                outcome, why = {}, str(error)
        if digest(outcome) != document.take("digest", str):
            raise HostError(
                f"{self.host} failed {self._in_a_row} guests in a row and one that "
                f"{run_by(document).host} has run ({self.jobs[key].cells[0].title}: {why}): it "
                "takes no more."
            )
        with self._lock:
            self._in_a_row = 0
