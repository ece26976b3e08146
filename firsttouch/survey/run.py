# SPDX-License-Identifier: GPL-2.0
"""Runs a survey: chooses the CPU, and runs the tasks in rounds within a budget of seconds."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from firsttouch.building.programs import HOST_BENCH
from firsttouch.building.store import Entry
from firsttouch.errors import FirsttouchError, UserError
from firsttouch.files import digest_file, write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import FILE_NAME, SCHEMA, timings_in
from firsttouch.progress import Reporter
from firsttouch.survey.document import write_survey
from firsttouch.survey.tasks import SETTLE, Sample, Survey, Task, all_tasks, touch_name
from firsttouch.tables import Json, parse_json
from firsttouch.vm.host import choose_cpus, read_host

ARCHITECTURES = ("x86_64", "aarch64")
# The tasks that price the faults of a trace, and their seconds.
PRICES = frozenset(
    [touch_name(kind, "base") for kind in ("store", "load-store", "read", "shared")]
    + [name for page in ("64k", "2m") for name in (f"{SETTLE} {page}", touch_name("store", page))]
)
_SHORT_SECONDS = 3
# What is put beside a trace that has no survey.
PRICES_FILE = "prices.jsonl"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Seconds after which a task counts as hung; the longest takes a fraction of one.
_TIMEOUT = 20.0


def survey_host(
    seconds: int, reporter: Reporter, wanted: Callable[[Task, Cell], bool] = lambda *_: True
) -> Survey:
    """Build ftbench, then survey the host for `seconds`: the tasks that are `wanted`.

    An interrupt ends the survey early; the samples are kept if they include a
    first touch. Otherwise it raises KeyboardInterrupt. Raises UserError on
    another architecture, BuildError if ftbench does not build.
    """
    if platform.machine() not in ARCHITECTURES:
        raise UserError(f"this host is {platform.machine()}: run the survey on x86-64 or arm64.")
    ftbench = HOST_BENCH.obtain(reporter)
    cpu = choose_cpus(os.sched_getaffinity(0))[0]
    host = read_host([cpu])
    tasks = tuple(task for task in all_tasks(host) if wanted(task, task.cell(host)))
    if not tasks:
        raise UserError("no cell of the survey is selected: give other --experiment and --set.")
    samples: list[Sample] = []
    interrupted = False
    # Start the bar's thread before _pinned(), so that it runs on another CPU.
    with reporter.step("Surveying", "seconds", seconds) as step, _pinned(cpu):
        try:
            for sample, spent in run_rounds(ftbench, tasks, seconds):
                samples.append(sample)
                step.at(min(int(spent), seconds))
        except KeyboardInterrupt:
            if not any(sample.metrics for sample in samples):
                raise
            interrupted = True
    figures = tuple(task for task in tasks if not task.name.startswith(SETTLE))
    names = {task.name for task in figures}
    kept = tuple(sample for sample in samples if sample.task in names)
    return Survey(host, figures, kept, digest_file(ftbench), interrupted)


def run_rounds(
    ftbench: Path,
    tasks: Sequence[Task],
    seconds: float,
    *,
    timeout: float = _TIMEOUT,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Sample, float]]:
    """Run all tasks in rounds until `seconds` are spent; yield samples and the seconds spent.

    A task that runs at the end of the time is finished. A task without figures in
    round 0, the warm-up, has none in any round.
    """
    started = clock()
    wanted = list(tasks)
    for number in itertools.count():
        idle = set()
        # The order alternates, so that a task does not always follow the same other task.
        for task in wanted[::-1] if number % 2 else wanted:
            if clock() - started >= seconds:
                return
            for sample in _run(ftbench, task, number, timeout):
                yield sample, clock() - started
                if not number and not sample.metrics:
                    idle.add(task)
        wanted = [task for task in wanted if task not in idle]
        if not wanted:
            return


def _run(ftbench: Path, task: Task, number: int, timeout: float) -> list[Sample]:
    try:
        done = subprocess.run(
            [ftbench, *task.arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [Sample(task.name, number, error=f"took longer than {timeout:g} s")]
    if done.returncode:
        error = done.stderr.strip() or f"ended with status {done.returncode}"
        return [Sample(task.name, number, error=error)]
    try:
        return [read_line(task, number, line) for line in done.stdout.splitlines()]
    except UserError as error:
        return [Sample(task.name, number, error=str(error))]


def read_line(task: Task, number: int, line: str) -> Sample:
    """Return the sample in a line of ftbench; UserError if it has another form."""
    printed = parse_json(line, "a line of ftbench")
    if not printed.has("metrics"):
        raise printed.error("metrics", "is missing.")
    metrics = printed.table("metrics").values_of(float)
    size = printed.table("params").take("size", int, 0)
    if metrics and size:
        metrics["size"] = size
    reasons = printed.table("unavailable").values_of(str)
    return Sample(task.name, number, metrics, "" if metrics else next(iter(reasons.values()), ""))


@contextmanager
def _pinned(cpu: int) -> Iterator[None]:
    """Keep this thread, and all that it starts, on one CPU, for the same caches and speed."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def provide_prices(directory: Path, reporter: Reporter, *, asked: bool) -> None:
    """Write what faults cost on this host beside a trace if `asked`, unless a survey is there."""
    (directory / PRICES_FILE).unlink(missing_ok=True)
    if not asked or "host" in timings_in(directory):
        return
    try:
        write_atomically(directory / PRICES_FILE, _short_survey(reporter).read_text())
    except (FirsttouchError, OSError) as error:
        reporter.say(f"No time of faults: {getattr(error, 'strerror', '') or error}")


def _short_survey(reporter: Reporter) -> Path:
    """Return the results of the tasks that price faults, measured once until the next boot."""

    def make(_workplace: Path, product: Path) -> None:
        reporter.say(
            f"Surveying the cost of faults here for {_SHORT_SECONDS} s, once until the next boot "
            "(--no-survey leaves it out)"
        )
        wanted = survey_host(_SHORT_SECONDS, reporter, lambda task, _: task.name in PRICES)
        write_survey(product, wanted)

    boot = _BOOT.read_text().strip()
    parts: dict[str, Json] = {"boot": boot, "schema": SCHEMA, "file": FILE_NAME}
    entry = Entry("surveys", parts, f"prices of faults, boot {boot}", FILE_NAME)
    return entry.obtain(make, reporter.say)
