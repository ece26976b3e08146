# SPDX-License-Identifier: GPL-2.0
"""Gathers what came of the guests of a plan, from processes here and on other hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.errors import GuestError
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Job
from firsttouch.lab.hosts import Audited, Ran, Record
from firsttouch.lab.shared_plan import Ended, Failure, SharedPlan
from firsttouch.progress import Reporter

# Seconds between two looks at what other processes did, and guests at a time.
_LOOK, _LOOKED_AT = 1.0, 1000
# Seconds between two looks at which hosts run guests: it touches a file for each process.
_ASK = 5.0


@dataclass
class Gathering:
    """What came of guests: of `jobs`, by key, those of the `missing` have no results yet.

    `logs` gets the kernels' logs of those that failed elsewhere. `ended` is
    called for each job that got its results, or failed.
    """

    jobs: Mapping[str, Sequence[Job]]
    missing: frozenset[str]
    logs: Path
    reporter: Reporter
    record: Record
    ended: Callable[[Job], None]
    left: dict[str, None] = field(init=False)
    failures: list[tuple[Cell, GuestError]] = field(default_factory=list)
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = dict.fromkeys(self.jobs)

    def take(self, key: str, ended: Ended) -> None:
        """Take over how a guest ended."""
        del self.left[key]
        job = self.jobs[key][0]
        if ended.failure:
            self._fail(key, ended.failure)
        elif ended.by:
            if key in self.missing:
                titles = tuple(cell.title for cell in job.cells)
                self.record.ran.append(Ran(key, titles, **vars(ended.by)))
            if ended.again:
                hosts = ended.by.host, ended.again.host
                self.record.audited.append(Audited(key, job.cells[0].title, hosts))
        if key in self.missing:
            for same in self.jobs[key]:
                self.ended(same)

    def _fail(self, key: str, failure: Failure) -> None:
        cell = self.jobs[key][0].cells[0]
        log = self.logs / cell.log_name
        if failure.log and not log.exists():
            self.logs.mkdir(parents=True, exist_ok=True)
            log.write_text(failure.log)
        error = GuestError(failure.error, failure.detail)
        # An error may end several guests; details come last.
        if failure.error not in self._said:
            self._said.add(failure.error)
            self.reporter.say(f"Failed: {cell.title}; the other cells continue.")
        self.failures += [(cell, error) for job in self.jobs[key] for cell in job.cells]


def follow(gathering: Gathering, plan: SharedPlan, attend: Callable[[int], None]) -> None:
    """Wait until other processes of the plan have ended the guests that are left.

    `attend` gets the number of those that have ended, every second.
    """
    hosts: set[str] = set()
    begin, asked = 0, -_ASK
    with plan.following():
        while gathering.left:
            keys = list(gathering.left)
            begin = begin if begin < len(keys) else 0
            for key in keys[begin : begin + _LOOKED_AT]:
                if ended := plan.how_ended(key, others_may_come=True):
                    gathering.take(key, ended)
            begin += _LOOKED_AT
            if time.monotonic() >= asked + _ASK:
                asked = time.monotonic()
                _take_hopeless(gathering, plan)
                living = plan.hosts()
                for host in sorted(living - hosts):
                    gathering.reporter.say(f"{host} runs guests.")
                hosts |= living
            if gathering.left:
                attend(len(gathering.jobs) - len(gathering.left))
                time.sleep(_LOOK)


def _take_hopeless(gathering: Gathering, plan: SharedPlan) -> None:
    """End what one host failed, if nothing else is left and no other host is there."""
    if all(plan.failures(key) for key in gathering.left):
        for key in list(gathering.left):
            if ended := plan.how_ended(key):
                gathering.take(key, ended)
