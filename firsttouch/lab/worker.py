# SPDX-License-Identifier: GPL-2.0
"""A worker: takes guests from a share and runs them, until the share has none left."""

from __future__ import annotations

import contextlib
import enum
import errno
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from firsttouch.build.claims import claimed, claimed_if_free
from firsttouch.build.outcomes import outcome_place
from firsttouch.errors import GuestError, HostError
from firsttouch.files import digest
from firsttouch.lab.orders import LostPartError, MakeRunner, Runner
from firsttouch.lab.posted import Order, PostedPlan, host_of, open_plans, worker_name
from firsttouch.lab.share import By, Share, ran_by
from firsttouch.tables import Table
from firsttouch.vm.supervision import StoppedError

_T = TypeVar("_T")
# Failures in a row after which a worker checks that its host is not the reason.
_IN_A_ROW = 3
# Seconds between two looks at a share that has nothing to take now, at first and at
# most; between two attempts to write to a full one; and for which the list of living
# workers is good.
_POLL, _SLOW_POLL, _FULL, _LIVING = 0.2, 5.0, 5.0, 5.0
# Bytes of a failed guest's log that a failure keeps: its end.
_LOG = 1 << 20
# Orders among which a worker looks for one that another host has run.
_SAMPLE = 1000


class _State(enum.Enum):
    """What a worker found out about an order, or did with it."""

    DONE = enum.auto()  # it has all outcomes that it needs
    RAN = enum.auto()  # this worker ran it just now
    OTHERS = enum.auto()  # other workers run it, or are to run it
    FAILED = enum.auto()  # this host is not to try it again


class _Gone(Exception):  # noqa: N818
    """The run of a plan has ended."""


@dataclass
class Worker:
    """One worker, which runs one guest at a time; `say` gets what happens to it.

    A guest that ends within `grace` seconds before `stop` is set has not failed.
    A run's `own` worker takes the guests in their order, and a full disk ends it.
    """

    share: Share
    make_runner: MakeRunner
    host: str
    say: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    grace: float = 0.0
    own: bool = False

    def __post_init__(self) -> None:
        self.name = worker_name(self.host)
        self.ran = 0
        self._in_a_row = 0
        self._runners: dict[Path, Runner] = {}
        # The orders of batches that were not done when this worker last looked.
        self._left: dict[tuple[Path, str], list[Order]] = {}
        self._living: tuple[float, list[str]] = (-_LIVING, [])

    def work(self, idle: float) -> None:
        """Run what the share has, until it has had nothing for `idle` seconds, or `stop` is set.

        Raises HostError if this host cannot run the guests of a plan, or fails
        those that others run; OSError if a file cannot be written.
        """
        last, poll = time.monotonic(), _POLL
        with contextlib.ExitStack() as entered:
            while not self.stop.is_set():
                before = self.ran
                for plan in open_plans(self.share):
                    if self._serve(plan, entered):
                        last = time.monotonic()
                if time.monotonic() - last > idle:
                    return
                poll = min(1.5 * poll, _SLOW_POLL) if self.ran == before else _POLL
                self.stop.wait(poll)

    def _serve(self, plan: PostedPlan, entered: contextlib.ExitStack) -> bool:
        """Run what can be run of a plan; tell whether something may be left for this worker."""
        try:
            if not plan.has_entered(self.name):
                claim = plan.enter(self.name)
                self._write(lambda: entered.enter_context(claimed(claim, lease=self.share.lease)))
                self._runners.pop(plan.path, None)
            if plan.path not in self._runners and (runner := self.make_runner(plan)):
                self._runners[plan.path] = runner
            return plan.path not in self._runners or self._pass(plan, self._runners[plan.path])
        except (_Gone, StoppedError):
            return False
        except LostPartError:
            return True
        except (HostError, OSError) as error:
            if not plan.is_open():
                return False
            with contextlib.suppress(OSError):
                plan.tell(self.name, {"stopped": str(error)})
            raise

    def _pass(self, plan: PostedPlan, run: Runner) -> bool:
        left = False
        batches = plan.open_batches()
        self._left = {place: some for place, some in self._left.items() if place[1] in batches}
        for batch in self._in_turn(batches):
            if self._in_a_row >= _IN_A_ROW and not self._is_fit(plan, run):
                return True
            # Other workers close batches while this one walks through the list.
            if plan.is_closed(batch):
                continue
            states = self._batch(plan, batch, run)
            left = left or not states.isdisjoint({_State.RAN, _State.OTHERS})
        return left

    def _batch(self, plan: PostedPlan, batch: str, run: Runner) -> set[_State]:
        """Run what can be run of a batch; return the states of its orders that are not done."""
        orders = self._left.pop((plan.path, batch), None) or plan.read(batch)
        if orders is None:
            return {_State.OTHERS}
        states = {}
        for order in self._in_turn(orders):
            if self.stop.is_set():
                raise StoppedError
            if self._in_a_row >= _IN_A_ROW:
                return {_State.OTHERS}
            state = self._order(plan, order, run)
            if state is not _State.DONE:
                states[order.key] = state
        left = [order for order in orders if order.key in states]
        # Read again: the share may have lost what was written.
        if set(states.values()) <= {_State.RAN} and all(self._has_all(plan, one) for one in left):
            self._write(lambda: plan.close(batch))
        else:
            self._left[plan.path, batch] = left
        return set(states.values())

    def _has_all(self, plan: PostedPlan, order: Order) -> bool:
        audited = not order.audit or plan.audited(order.key)
        return bool(audited and self.share.outcome(order.key))

    def _order(self, plan: PostedPlan, order: Order, run: Runner) -> _State:
        key = order.key
        first = self.share.outcome(key)
        if first and (not order.audit or plan.audited(key)):
            return _State.DONE
        if first and not self._may_audit(plan, first):
            return _State.OTHERS
        if not first and self._is_given_up(plan, key):
            return _State.FAILED
        with self._claim(f"{key}.audit" if first else key) as mine:
            if not mine:
                return _State.OTHERS
            if not plan.is_open():
                raise _Gone
            # Another worker may have ended it before this one had the claim.
            if plan.audited(key) if first else self.share.outcome(key):
                return _State.RAN
            if not first and self._is_given_up(plan, key):
                return _State.FAILED
            try:
                self._run(plan, order, run, first)
            except LostPartError:
                return _State.OTHERS
        return _State.RAN

    @contextlib.contextmanager
    def _claim(self, name: str) -> Iterator[bool]:
        claim = self.share.claim(name)
        with contextlib.ExitStack() as held:
            yield self._write(lambda: held.enter_context(claimed_if_free(claim, self.share.lease)))

    def _run(self, plan: PostedPlan, order: Order, run: Runner, first: Table | None) -> None:
        """Run the guest of an order and keep what came of it; `first` is its outcome, if any."""
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="firsttouch-worker-") as scratch:
            log = Path(scratch, "log")
            try:
                outcome = run(order, log, self.stop)
            except GuestError as error:
                # A cluster ends QEMU and this process together, and QEMU may be faster.
                if self.stop.wait(self.grace):
                    raise StoppedError from None
                self._in_a_row += 1
                self.say(f"Failed: {order.title}: {error}")
                failed = {
                    "host": self.host, "error": str(error), "detail": list(error.detail),
                    "log": _end(log),
                }  # fmt: skip
                if first:
                    self._differ(plan, order, first, str(error))
                else:
                    self._write(lambda: plan.add_failure(order.key, failed))
                    self._write(lambda: plan.tell(self.name, {"key": order.key}))
                return
        self._in_a_row = 0
        self.ran += 1
        by = By(self.host, self.name, round(time.monotonic() - started, 3))
        place = plan.audit(order.key) if first else outcome_place(order.key, self.share.root)
        other = self._write(lambda: self.share.keep(place, outcome, by))
        if first and first.take("digest", str) != digest(outcome):
            other = first
        if other:
            self._differ(plan, order, other, "")
        self._write(lambda: plan.tell(self.name, {"key": order.key}))

    def _differ(self, plan: PostedPlan, order: Order, first: Table, error: str) -> None:
        why = f"it failed on {self.host}: {error}" if error else "they gave different bytes"
        said = self._write(lambda: plan.disagree(order.key, first, self.host, why))
        self.say(f"{order.title}: {said}.")
        self._write(lambda: plan.tell(self.name, {"key": order.key}))

    def _is_given_up(self, plan: PostedPlan, key: str) -> bool:
        """Tell whether this host is not to try a guest that failed: two hosts try, each once."""
        hosts = [failure.take("host", str) for failure in plan.failures(key)]
        return len(hosts) > 1 or not {"", self.host}.isdisjoint(hosts)

    def _may_audit(self, plan: PostedPlan, first: Table) -> bool:
        """Tell whether this worker may run again what gave the outcome `first`.

        Another host is to do it; without one, another worker; without one, the same.
        """
        by = ran_by(first)
        if by.host != self.host:
            return True
        living = self._others(plan)
        if any(host_of(one) != self.host for one in living):
            return False
        return by.worker != self.name or not living

    def _others(self, plan: PostedPlan) -> list[str]:
        """Return the other living workers, as of a few seconds ago."""
        when, living = self._living
        if time.monotonic() - when >= _LIVING:
            living = [one for one in plan.living() if one != self.name]
            self._living = time.monotonic(), living
        return living

    def _is_fit(self, plan: PostedPlan, run: Runner) -> bool:
        """Find out whether this host is why guests failed; False if nothing tells yet.

        It runs a guest again that another host has run. Raises HostError if
        that fails, too, or gives other bytes. Without another host it goes on.
        """
        if all(host_of(one) == self.host for one in self._others(plan)):
            self._in_a_row = 0
            return True
        for batch in (*_rotated(plan.closed_batches()), *_rotated(plan.open_batches())):
            for order in (plan.read(batch) or [])[:_SAMPLE]:
                known = self.share.outcome(order.key)
                if known and ran_by(known).host != self.host:
                    self._check(order, known, run)
                    return True
        return False

    def _check(self, order: Order, known: Table, run: Runner) -> None:
        with tempfile.TemporaryDirectory(prefix="firsttouch-worker-") as scratch:
            try:
                outcome = run(order, Path(scratch, "log"), self.stop)
                why = "it gave other bytes"
            except GuestError as error:
                outcome, why = {}, str(error)
        if digest(outcome) != known.take("digest", str):
            raise HostError(
                f"{self.host} failed {self._in_a_row} guests in a row and one that "
                f"{ran_by(known).host} has run ({order.title}: {why}): this worker takes no more."
            )
        self._in_a_row = 0

    def _in_turn(self, items: Sequence[_T]) -> list[_T]:
        """Return the items in the order in which this worker takes them."""
        return [*items] if self.own else _rotated(items)

    def _write(self, action: Callable[[], _T]) -> _T:
        """Do what writes to the share; while that is full, wait: nothing finished is lost."""
        said = False
        while True:
            try:
                return action()
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                if not full or self.own or self.stop.is_set():
                    raise
            if not said:
                self.say(f"{self.share.root} is full: free some space there; this worker waits.")
                said = True
            self.stop.wait(_FULL)


def _end(log: Path) -> str:
    return log.read_bytes()[-_LOG:].decode(errors="replace") if log.exists() else ""


def _rotated(items: Sequence[_T]) -> list[_T]:
    """Return the items from a random one on, so that workers begin at different ones."""
    begin = random.randrange(len(items)) if items else 0
    return [*items[begin:], *items[:begin]]
