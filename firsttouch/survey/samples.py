# SPDX-License-Identifier: GPL-2.0
"""Samples of a survey, and their medians and spreads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firsttouch.survey.tasks import Task
from firsttouch.vm.host import Host


@dataclass(frozen=True)
class Sample:
    """One run of a task: what ftbench measured, why it is `unavailable` here, or its `error`.

    A task that repeats itself has several samples in one round. `round` counts
    from 0. Round 0 is a warm-up, because it takes memory from the allocator for
    the first time. Medians leave it out. `metrics` has the parameter ``size``, too.
    """

    task: str
    round: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    unavailable: str = ""
    error: str = ""

    @property
    def busy_ns(self) -> float:
        """The processor time in ns, user and kernel together.

        The scheduler accounts this sum exactly, without the time of other
        tasks. Most kernels divide it into user and system time by ticks.
        """
        return self.metrics["user_ns"] + self.metrics["sys_ns"]


@dataclass(frozen=True)
class Survey:
    """The tasks of a survey and their samples.

    `ftbench` is the digest of the program that ran. `interrupted` is true if the user
    ended the survey before its time.
    """

    host: Host
    tasks: tuple[Task, ...]
    samples: tuple[Sample, ...]
    ftbench: str = ""
    interrupted: bool = False

    def measured(self, task: str) -> list[Sample]:
        """Return the samples of a task with figures; the warm-up if time ran out in round 0."""
        samples = [sample for sample in self.samples if sample.task == task and sample.metrics]
        return [sample for sample in samples if sample.round] or samples

    def reason(self, task: str) -> str:
        """Return why a task has no figures."""
        for sample in self.samples:
            if sample.task == task:
                return sample.error or sample.unavailable or "nothing was measured"
        if self.interrupted:
            return "the survey was interrupted before it"
        return "there was no time for it: give a larger --seconds"
