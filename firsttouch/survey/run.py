# SPDX-License-Identifier: GPL-2.0
"""Taking the samples of this very machine: interleaved rounds, within a budget of seconds."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import GuestError, UserError
from firsttouch.build.programs import build_program
from firsttouch.progress import Reporter, Step
from firsttouch.survey.host import Facts, patterns, read_facts
from firsttouch.survey.geometry import examine_caches
from firsttouch.survey.tasks import (
    Task,
    color_tasks,
    counter_tasks,
    geometry_tasks,
    touch_tasks,
    zero_pages_task,
)
from firsttouch.survey.samples import Line, Sample, Samples

ARCHITECTURES = ("x86_64", "aarch64")
# Seconds: building ftbench, at first use, has the rest of a minute.
DEFAULT_SECONDS = 45
LEAST_SECONDS = 5
_MOST_SECONDS = 3600
# Rounds beyond these narrow no spread that a person would see.
_GEOMETRY_ROUNDS = 3
_ROUNDS = 9
# How many rounds a budget should hold at least, when the size is chosen.
_WANTED_ROUNDS = 6
_GEOMETRY_SHARE = 0.25
_SIZES = tuple(1 << shift for shift in range(23, 29))
_PROBE_SIZE = 8 << 20
# A kind of touch takes this many times as long as a store, on average.
_COSTLIER = 1.5
# Seconds; the longest task takes a fraction of one on any machine.
_TIMEOUT = 20


@dataclass(frozen=True)
class Taken:
    """A survey's raw material: where it was taken, what was run, what came of it.

    In `virtual_time` the machine's clock counts instructions, 1 ns each.
    """

    where: dict[str, str]
    facts: Facts
    tasks: list[Task]
    samples: list[Sample]
    virtual_time: bool


def check_seconds(seconds: int) -> None:
    """Raise UserError for a budget in which nothing can be measured, or nobody would wait for."""
    if not LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise UserError(
            f"--seconds {seconds} is out of range: give {LEAST_SECONDS} to {_MOST_SECONDS}."
        )


def take_here(seconds: int, reporter: Reporter) -> Taken:
    """Survey this machine for at most `seconds` once ftbench is built.

    Raises UserError on another architecture, BuildError if ftbench
    does not build, GuestError if it cannot even show the machine's files.
    """
    if platform.machine() not in ARCHITECTURES:
        raise UserError(
            f"this machine is {platform.machine()}: run the survey on x86-64 or arm64, "
            "or give --guest stock for one in the laboratory."
        )
    ftbench = build_program("bench", reporter, native=True)
    cpu = _best_cpu(os.sched_getaffinity(0))
    # The bar has a thread of its own, which is to stay on other CPUs.
    with reporter.step("Surveying", "s", seconds) as step, _pinned(cpu):
        taker = _Taker(ftbench, step, seconds)
        facts = read_facts(taker.must("--files", *patterns(cpu)), cpu)
        tasks = geometry_tasks(facts)
        taker.rounds(tasks, _GEOMETRY_ROUNDS, seconds * _GEOMETRY_SHARE)
        caches = examine_caches(facts, Samples(taker.samples), virtual_time=False)
        geometries = [cache.used for cache in caches if cache.used]
        probe = taker.must(
            "populate",
            "--by",
            "store",
            "--page",
            "base",
            "--size",
            str(_PROBE_SIZE),
            "--repeat",
            "3",
        )
        size = _size(facts, probe, taker.left())
        others = [
            *touch_tasks(facts, size),
            *color_tasks(geometries, facts.page_size),
            zero_pages_task(),
            *counter_tasks(geometries),
        ]
        taker.rounds(others, _ROUNDS, seconds)
    return Taken({"kind": "machine"}, facts, tasks + others, taker.samples, virtual_time=False)


def _best_cpu(allowed: set[int]) -> int:
    """Return the largest of the CPUs, of several the last: the first has most interrupts."""

    def capacity(cpu: int) -> int:
        try:
            return int(Path(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity").read_text())
        except (OSError, ValueError):
            return 0

    return max(allowed, key=lambda cpu: (capacity(cpu), cpu))


@contextmanager
def _pinned(cpu: int) -> Iterator[None]:
    """Keep this thread, and all it starts, on one CPU: one set of caches, one speed."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _size(facts: Facts, probe: Line, seconds: float) -> int:
    """Return how much to touch, so that the wanted rounds fit into `seconds`."""
    touches = len(touch_tasks(facts, 0))
    per_byte = float(probe["metrics"]["elapsed_ns"]) / _PROBE_SIZE * _COSTLIER
    fits = seconds * 1e9 / (_WANTED_ROUNDS * touches * per_byte)
    # A quarter of what is free: the survey must not push anything out.
    most = min(fits, facts.memory / 4)
    return max((size for size in _SIZES if size <= most), default=_SIZES[0])


class _Taker:
    """Runs tasks and keeps their samples."""

    def __init__(self, ftbench: Path, step: Step, seconds: float) -> None:
        self.samples: list[Sample] = []
        self._ftbench = ftbench
        self._step = step
        self._seconds = seconds
        self._started = time.monotonic()

    def left(self) -> float:
        """Return how many seconds of the budget are left."""
        return self._seconds - self._spent()

    def _spent(self) -> float:
        return time.monotonic() - self._started

    def rounds(self, tasks: Sequence[Task], rounds: int, until: float) -> None:
        """Run all tasks, round after round, at most `rounds` and a warm-up, or `until` seconds."""
        wanted = list(tasks)
        for number in range(rounds + 1):
            # To and fro: no task always follows the same one. The first
            # tasks matter most, for where time ends in the first round.
            for task in wanted[::-1] if number % 2 else wanted:
                if self._spent() >= until:
                    return
                self.samples += self._run(task, number)
                self._step.at(min(int(self._spent()), self._step.total))
            if number == 0:
                # What is not available now will not be in the next round.
                idle = {s.task for s in self.samples if not s.line or not s.line["metrics"]}
                wanted = [task for task in wanted if task.name not in idle]

    def must(self, *arguments: str) -> Line:
        """Return the last line of a command without which there is no survey."""
        sample = self._run(Task("probe", arguments), 0)[-1]
        if sample.line is None:
            raise GuestError(f"ftbench {arguments[0]} failed: {sample.error}")
        return sample.line

    def _run(self, task: Task, number: int) -> list[Sample]:
        try:
            done = subprocess.run(
                [self._ftbench, *task.arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [Sample(task.name, number, None, f"took longer than {_TIMEOUT} s")]
        if done.returncode:
            error = done.stderr.strip() or f"ended with status {done.returncode}"
            return [Sample(task.name, number, None, error)]
        return [Sample(task.name, number, json.loads(line)) for line in done.stdout.splitlines()]
