# SPDX-License-Identifier: GPL-2.0
"""A survey of the host: which CPU it runs on, and how its time is divided."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.build.programs import build_ftbench
from firsttouch.errors import UserError
from firsttouch.progress import Reporter
from firsttouch.survey.geometry import examine_caches
from firsttouch.survey.host import host_files, read_host
from firsttouch.survey.rounds import TaskRunner
from firsttouch.survey.samples import Samples, Survey, read_line
from firsttouch.survey.tasks import (
    color_tasks,
    counter_tasks,
    geometry_tasks,
    probe_task,
    touch_size,
    touch_tasks,
    zero_pages_task,
)

ARCHITECTURES = ("x86_64", "aarch64")
# Seconds; with the build of ftbench, at first use, a survey takes a minute.
DEFAULT_SECONDS = 45
LEAST_SECONDS = 5
_MOST_SECONDS = 3600
# A curve is the least of its samples: more rounds than these do not change it.
_GEOMETRY_ROUNDS = 3
# The part of the time that may go into the caches' geometry.
_GEOMETRY_SHARE = 0.25


def check_seconds(seconds: int) -> None:
    """Raise UserError for a time too short to measure in or too long to wait for."""
    if not LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise UserError(
            f"--seconds {seconds} is out of range: give {LEAST_SECONDS} to {_MOST_SECONDS}."
        )


def survey_host(seconds: int, reporter: Reporter) -> Survey:
    """Survey the host for `seconds` once ftbench is built.

    An interrupt ends it early and keeps what was measured, if a first touch
    was; before that it is a KeyboardInterrupt. Raises UserError on another
    architecture, BuildError if ftbench does not build, GuestError if it cannot
    even print the host's files.
    """
    if platform.machine() not in ARCHITECTURES:
        raise UserError(
            f"this host is {platform.machine()}: run the survey on x86-64 or arm64, "
            "or give --guest stock for one in the laboratory."
        )
    ftbench = build_ftbench(reporter, native=True)
    cpu = _best_cpu(os.sched_getaffinity(0))
    # The bar starts first: its thread is to stay off the CPU that is measured.
    with reporter.step("Surveying", "s", seconds) as step, _pinned(cpu):
        runner = TaskRunner(ftbench, seconds, lambda spent: step.at(min(int(spent), step.total)))
        host = read_host(runner.must("--files", *host_files(cpu)), cpu)
        first = geometry_tasks(host)
        runner.rounds(first, seconds * _GEOMETRY_SHARE, _GEOMETRY_ROUNDS)
        caches = examine_caches(host, Samples(runner.samples), virtual_time=False)
        geometries = [cache.used for cache in caches if cache.used]
        probe = read_line(runner.must(*probe_task().arguments))
        size = touch_size(host, probe.metrics["elapsed_ns"], runner.left())
        others = [
            *touch_tasks(host, size),
            *color_tasks(geometries, host.page_size),
            zero_pages_task(),
            *counter_tasks(geometries),
        ]
        interrupted = False
        try:
            runner.rounds(others, seconds)
        except KeyboardInterrupt:
            touched = {task.name for task in touch_tasks(host, size)}
            if not any(sample.task in touched and sample.line for sample in runner.samples):
                raise
            interrupted = True
    tasks = (*first, *others)
    return Survey(host, tasks, tuple(runner.samples), None, seconds, interrupted)


def _best_cpu(allowed: set[int]) -> int:
    """Return the largest of the CPUs; of several the last, as the first has most interrupts."""

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
