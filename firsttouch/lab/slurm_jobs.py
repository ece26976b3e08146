# SPDX-License-Identifier: GPL-2.0
"""Guests, and builds of kernels, as jobs of Slurm: submitted, watched, and submitted again.

An array is known by its name, which Slurm keeps: a front end that was killed at
any moment finds its jobs again, and submits none twice. Account, time and other
limits are those of the partition, or of Slurm's own variables (SBATCH_ACCOUNT,
SBATCH_TIMELIMIT).
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.building.images import KernelImage
from firsttouch.building.kernels import kernel_of
from firsttouch.building.sources import KernelSource
from firsttouch.errors import HostError
from firsttouch.files import digest, read_end
from firsttouch.lab.gathering import Gathering, follow
from firsttouch.lab.plan import Plan, Request
from firsttouch.lab.shared_plan import SharedPlan
from firsttouch.lab.slurm import Partition, describe, firsttouch_command, live_tasks
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of

# Seconds. Asking more often burdens the controller of a busy cluster.
_EVERY = 5.0
_POLL = 0.5
_TRIES = 12
# Bytes of the end of what a task printed.
_LOG_END = 1 << 16
# Arrays in a row that may end with nothing done: killed, preempted, at their time limit.
_FRUITLESS = 3
# What Slurm's commands say if the controller is down, or slow.
_UNANSWERED = r"Unable to contact|[Tt]imed out"
# Reasons for which Slurm does not start a task again: it died with its controller, or too often.
_HELD = ("launch failed requeued held", "job requeued in held state", "JobHoldMaxRequeue")


@dataclass
class Array:
    """An array of `count` tasks of Slurm that run `script`; there is one of a `name` at a time.

    `what` is what the tasks are, in messages; `logs` gets what they print.
    """

    name: str
    script: str
    options: tuple[str, ...]
    count: int
    what: str
    logs: Path
    reporter: Reporter
    job: str = ""
    _said: str = ""
    _shown: set[tuple[str, str]] = field(default_factory=set)
    _next: float = 0.0
    _gone: bool = False
    _done_before: int | None = None
    _fruitless: int = 0

    def attend(self, done: int) -> None:
        """See to it that tasks live, as long as this is called; `done` is how much is done so far.

        Raises HostError if Slurm refuses the array, or if arrays end and nothing is done.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        self._tell_of_stopped()
        tasks = live_tasks(self.name)
        if tasks is None:
            self._say("Slurm's controller does not answer; what runs goes on.", "down")
        elif tasks:
            self._gone = False
            self.job = tasks[0].job
            if all(task.reason in _HELD for task in tasks):
                self.cancel()
            kinds = {(task.state == "PENDING", task.reason) for task in tasks}
            self._say(f"Slurm job {tasks[0].job}: {self.what}: {describe(tasks)}.", repr(kinds))
        elif self.job and not self._gone:
            # What the last task did may not be seen yet.
            self._gone = True
        else:
            self._submit(done)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """If a signal ends the context, say how to follow or end the jobs, which stay."""
        try:
            yield
        except KeyboardInterrupt:
            if self.job:
                self.reporter.say(
                    f"Slurm job {self.job} goes on: the same command follows it, "
                    f"`scancel {self.job}` ends it."
                )
            raise

    def cancel(self) -> None:
        """End the tasks that are left: those that wait, or are held, would stay in Slurm.

        A controller that does not answer is asked for a minute.
        """
        for _ in range(_TRIES if self.job else 0):
            with suppress(HostError):
                output(["scancel", "--quiet", self.job])
                return
            time.sleep(_EVERY)

    def _say(self, message: str, kind: str) -> None:
        if kind != self._said:
            self._said = kind
            self.reporter.say(message)

    def _submit(self, done: int) -> None:
        if self._done_before is not None:
            self._check_progress(done > self._done_before)
            self.reporter.say(f"All tasks of Slurm job {self.job} have ended, and work is left.")
        self.logs.mkdir(parents=True, exist_ok=True)
        log = str(self.logs.absolute()).replace("%", "%%")
        try:
            printed = output([
                "sbatch", "--parsable", f"--job-name={self.name}", f"--array=0-{self.count - 1}",
                "--requeue", "--open-mode=append", "--export=ALL", *self.options,
                f"--output={log}/{self.name}-%A-%a-%N.log", "--wrap", self.script,
            ])  # fmt: skip
        except HostError as error:
            # A controller that does not answer may have got the job all the same: ask again.
            if re.search(_UNANSWERED, "\n".join(error.detail)):
                return
            raise HostError(
                f"Slurm refuses the {self.what}: see below; SBATCH_ACCOUNT, SBATCH_QOS and "
                "SBATCH_TIMELIMIT say what the partition may ask for.",
                error.detail,
            ) from None
        self._done_before, self._gone = done, False
        self.job = printed.splitlines()[-1].split(";")[0]
        tasks = format_number_of(self.count, "tasks")
        self.reporter.say(f"Slurm job {self.job}: {self.what}: {tasks}, logs in {self.logs}.")

    def _check_progress(self, made: bool) -> None:
        """Raise HostError if arrays end and none has made progress."""
        if made:
            self._fruitless = 0
            return
        self._fruitless += 1
        said = self._last_words()
        # A command that was not killed says why it ended, and would do so again.
        if self._fruitless >= _FRUITLESS or any(map(_is_final, said)):
            raise HostError(
                f"all tasks of Slurm job {self.job} ended and did nothing: see below and "
                f"{self.logs}; SBATCH_TIMELIMIT gives them more time than the partition's default.",
                said,
            )

    def _tell_of_stopped(self) -> None:
        """Say why a task ended that cannot go on, with its node; the others go on."""
        for log, said in self._said_by_tasks().items():
            for line in filter(_is_final, said):
                if (log, line) not in self._shown:
                    self._shown.add((log, line))
                    node = log.rpartition("-")[2]
                    self.reporter.say(f"A job on {node} ended: {line.partition(': ')[2]}")

    def _said_by_tasks(self) -> dict[str, list[str]]:
        """Return the last lines that each task of the newest array printed, by its log's name."""
        logs = sorted(self.logs.glob(f"{self.name}-{self.job}-*.log")) if self.job else []
        return {log.stem: read_end(log, _LOG_END).splitlines()[-30:] for log in logs}

    def _last_words(self) -> list[str]:
        """Return the last lines that a task of the newest array printed, one that failed if any."""
        said = self._said_by_tasks().values()
        return min(said, key=lambda lines: not any(map(_is_final, lines)), default=[])


def _is_final(line: str) -> bool:
    """Tell whether a command says why it cannot go on, and so was not killed."""
    return bool(re.match(r"firsttouch: (?!interrupted)", line))


def build_kernels(
    plan: Plan, source: KernelSource, partition: Partition, logs: Path, reporter: Reporter
) -> None:
    """Have nodes build the kernels of `plan` that the store, which they share, lacks.

    Raises HostError if Slurm refuses the jobs, or if they end without the kernels.
    """
    arms = {plan.arm(cell).kernel: cell.arm for cell in plan.cells}
    kernels = {arm: kernel_of(kernel, source) for kernel, arm in arms.items()}
    images = {arm: image for arm, image in kernels.items() if isinstance(image, KernelImage)}
    if all(image.stored() for image in images.values()):
        return
    places = [image.entry().path for image in images.values()]
    given = ("--release", source.release.name)
    if source.given:
        given = ("--source", str(source.given.absolute()))
    build = firsttouch_command("kernel", "build", *given)
    array = Array(
        # The same however many of them are built already.
        f"firsttouch-build-{digest([place.name for place in places])[:12]}",
        f'set -- {shlex.join(images)}; shift "$SLURM_ARRAY_TASK_ID"; exec {build} --arm "$1"',
        partition.build_options(), len(images), "builds of kernels", logs, reporter,
    )  # fmt: skip
    step_of = reporter.step("Building on nodes", "kernels", len(images))
    with array.followed(), step_of as step:
        while (done := sum(place.exists() for place in places)) < len(places):
            step.at(done)
            array.attend(done)
            time.sleep(_POLL)
        step.at(done)
    array.cancel()


def follow_nodes(
    gathering: Gathering,
    plan: SharedPlan,
    partition: Partition,
    request: Request,
    reporter: Reporter,
) -> None:
    """Have an array of jobs run the guests that `gathering` waits for, and follow them.

    There are `request.workers` jobs, or as many as CPUs are in service, and no more than guests.
    """
    wanted = request.workers
    count = max(1, min(wanted or partition.cpus, len(gathering.left), partition.largest))
    if wanted and wanted > count:
        reporter.say(f"{format_number_of(count, 'jobs')} are enough, or all an array may have.")
    command = firsttouch_command("lab", *request.words(), "--join", "--jobs", "1")
    array = Array(
        f"firsttouch-{plan.name}", f"exec {command}", partition.guest_options(), count,
        "guests", gathering.logs / "slurm", reporter,
    )  # fmt: skip
    with array.followed():
        follow(gathering, plan, array.attend)
    array.cancel()
