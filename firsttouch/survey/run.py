# SPDX-License-Identifier: GPL-2.0
"""Runs a survey: chooses the CPU, and runs the tasks in rounds within a budget of seconds.

By a survey of its kernel the faults of a trace have a price, and so what a remedy saves.
"""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.figures import Middle
from firsttouch.building.programs import HOST_BENCH
from firsttouch.building.store import Entry
from firsttouch.errors import FirsttouchError, UserError
from firsttouch.files import digest_file, write_atomically
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import FILE_NAME, SCHEMA, timings_in
from firsttouch.progress import Reporter
from firsttouch.survey.document import read_survey, write_survey
from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.tasks import SETTLE, Sample, Survey, Task, all_tasks, touch_name
from firsttouch.tables import Json, parse_json
from firsttouch.trace.kinds import NAMES, Kind
from firsttouch.trace.remedies import HEAP, KEEP, MTHP_64, SHARED, THP
from firsttouch.trace.sites import Remedy, Trace
from firsttouch.vm.host import ARCHITECTURES as MACHINES
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
# What the survey calls the pages of a remedy.
_HUGE = {THP: "2m", HEAP: "2m", MTHP_64: "64k"}
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


def price(trace: Trace, directory: Path) -> Trace:
    """Return a trace with the prices of a survey of its kernel in `directory`, if one is there."""
    for file in (directory / FILE_NAME, directory / PRICES_FILE):
        if "host" in timings_in(file):
            survey = read_survey(file)
            host = survey.host.architecture, survey.host.kernel
            if host == (MACHINES[trace.machine], trace.kernel):
                return _surveyed(trace, examine(survey), str(file))
    return trace


def _surveyed(trace: Trace, findings: Findings, source: str) -> Trace:
    store, both = _busy(findings, "store"), _busy(findings, "load-store")
    read = _busy(findings, "read")
    each = {Kind.FIRST_WRITE: store, Kind.AGAIN: store, Kind.STACK: store, Kind.ZERO_PAGE: read}
    # Of memory that is there already: the first process also pays for clearing it.
    each[Kind.SHARED_MEMORY] = _busy(findings, "shared")
    each[Kind.SECOND] = both.minus(read) if both and read else None
    known = [
        (trace.fault_kinds.get(NAMES[kind], 0), figure.median)
        for kind, figure in each.items()
        if figure and figure.median > 0
    ]
    remedies = tuple(
        replace(remedy, ns=_saved(remedy, findings, trace.page_size)) for remedy in trace.remedies
    )
    return replace(
        trace,
        priced=sum(faults for faults, _ in known),
        ns=sum(faults * ns for faults, ns in known),
        basis=source,
        remedies=remedies,
    )


def _busy(findings: Findings, kind: str) -> Middle | None:
    """Return the processor time of a first touch, in ns a page."""
    touch = findings.touch(kind)
    return touch.busy.middle if touch and touch.busy else None


def _saved(remedy: Remedy, findings: Findings, page_size: int) -> float | None:
    """Return the ns that a remedy saves; None if the survey has no basis for it.

    A huge page is cleared as a whole.
    """
    each = _busy(findings, "shared" if remedy.name == SHARED else "store")
    if each is None or remedy.name in (SHARED, KEEP):
        return remedy.saved * each.median if each else None
    huge = findings.touch("store", _HUGE.get(remedy.name, ""))
    if huge is None or huge.busy is None:
        return None
    brought = remedy.saved + remedy.memory / page_size
    return remedy.saved * each.median - brought * huge.busy.median * page_size / huge.page_size
