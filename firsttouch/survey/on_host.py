# SPDX-License-Identifier: GPL-2.0
"""A survey of the host: chooses the CPU, and divides the time among the tasks."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.building.programs import build_ftbench
from firsttouch.catalog.experiments import Experiment
from firsttouch.errors import UserError
from firsttouch.progress import Reporter
from firsttouch.survey.geometry import examine_caches
from firsttouch.survey.host import host_files, read_host
from firsttouch.survey.rounds import TaskRunner
from firsttouch.survey.samples import Samples, Survey, read_line
from firsttouch.survey.tasks import (
    FLOOR,
    PROBE_SIZE,
    color_tasks,
    counter_tasks,
    geometry_tasks,
    operation_tasks,
    probe_task,
    touch_name,
    touch_size,
    touch_tasks,
    zero_pages_task,
)

ARCHITECTURES = ("x86_64", "aarch64")
# Seconds. The first survey also builds ftbench, and takes about a minute in all.
DEFAULT_SECONDS = 45
LEAST_SECONDS = 5
_MOST_SECONDS = 3600
# A curve has the smallest sample of each point; more rounds would not change it.
_GEOMETRY_ROUNDS = 3
# What `survey_touches` measures.
_PRICED = {
    *(touch_name(kind, "base") for kind in ("store", "load-store", "read", FLOOR)),
    *(touch_name("store", page) for page in ("64k", "2m")),
}
# The largest share of the time for the geometry of the caches.
_GEOMETRY_SHARE = 0.25


def check_seconds(seconds: int) -> None:
    """Raise UserError for a time that is too short or too long."""
    if not LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise UserError(
            f"--seconds {seconds} is out of range: give {LEAST_SECONDS} to {_MOST_SECONDS}."
        )


def survey_host(seconds: int, reporter: Reporter, experiments: Iterable[Experiment] = ()) -> Survey:
    """Build ftbench, then survey the host for `seconds`, with the operations of `experiments`.

    An interrupt ends the survey early; the samples are kept if they include a
    first touch. Otherwise it raises KeyboardInterrupt. Raises UserError on
    another architecture, BuildError if ftbench does not build, GuestError if
    ftbench cannot print the host's files or run the probe.
    """
    if platform.machine() not in ARCHITECTURES:
        raise UserError(
            f"this host is {platform.machine()}: run the survey on x86-64 or arm64, "
            "or survey a guest by --guest stock."
        )
    ftbench = build_ftbench(reporter, native=True)
    cpu = _best_cpu(os.sched_getaffinity(0))
    # Start the bar's thread before _pinned(), so that it runs on another CPU.
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
            *operation_tasks(experiments),
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


def survey_touches(seconds: int, reporter: Reporter) -> Survey:
    """Survey for `seconds` only what prices the faults of a trace; raises as `survey_host`."""
    ftbench = build_ftbench(reporter, native=True)
    cpu = _best_cpu(os.sched_getaffinity(0))
    with reporter.step("Surveying", "s", seconds) as step, _pinned(cpu):
        runner = TaskRunner(ftbench, seconds, lambda spent: step.at(min(int(spent), step.total)))
        host = read_host(runner.must("--files", *host_files(cpu)), cpu)
        tasks = [
            task
            for task in touch_tasks(host, PROBE_SIZE)
            if task.name in _PRICED or task.name.startswith("settle")
        ]
        runner.rounds(tasks, seconds)
    return Survey(host, tuple(tasks), tuple(runner.samples), None, seconds)


def _best_cpu(allowed: set[int]) -> int:
    """Return the CPU of the largest capacity; the last one, since CPU 0 has most interrupts."""

    def capacity(cpu: int) -> int:
        try:
            return int(Path(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity").read_text())
        except (OSError, ValueError):
            return 0

    return max(allowed, key=lambda cpu: (capacity(cpu), cpu))


@contextmanager
def _pinned(cpu: int) -> Iterator[None]:
    """Keep this thread, and all that it starts, on one CPU, for the same caches and speed."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
