# SPDX-License-Identifier: GPL-2.0
"""Runs tasks on the host in interleaved rounds, within a budget of seconds."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from firsttouch.errors import GuestError, UserError
from firsttouch.survey.samples import Sample, read_line
from firsttouch.survey.tasks import Task
from firsttouch.tables import Json, json_object

# Seconds after which a task counts as hung; the longest takes a fraction of one.
_TIMEOUT = 20.0


class TaskRunner:
    """Runs tasks within `seconds` and keeps their samples.

    After each task `report` is called with the seconds spent so far. `clock`
    returns seconds.
    """

    def __init__(
        self,
        ftbench: Path,
        seconds: float,
        report: Callable[[float], None],
        *,
        timeout: float = _TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.samples: list[Sample] = []
        self._ftbench = ftbench
        self._seconds = seconds
        self._report = report
        self._timeout = timeout
        self._clock = clock
        self._started = clock()

    def left(self) -> float:
        """Return the seconds of the budget that are left."""
        return self._seconds - self._spent()

    def rounds(self, tasks: Sequence[Task], until: float, rounds: int | None = None) -> None:
        """Run all tasks in rounds until `until` seconds are spent, or `rounds` are done.

        `rounds` does not count the first round, which warms up. A task that
        runs at the end of the time is finished.
        """
        wanted = list(tasks)
        for number in itertools.count() if rounds is None else range(rounds + 1):
            if not wanted:
                return
            # The order alternates, so that a task does not always follow the
            # same other task. The first tasks matter most: they run even if
            # time ends in the first round.
            for task in wanted[::-1] if number % 2 else wanted:
                if self._spent() >= until:
                    return
                self.samples += self._run(task, number)
                self._report(self._spent())
            if number == 0:
                # A task without figures in round 0 has none in any round.
                idle = {s.task for s in self.samples if not s.line or not s.line.metrics}
                wanted = [task for task in wanted if task.name not in idle]

    def must(self, *arguments: str) -> Mapping[str, Json]:
        """Run a command that the survey cannot do without, and return its last line.

        Raises GuestError if the command fails.
        """
        try:
            lines = self._execute(arguments)
        except GuestError as error:
            raise GuestError(f"ftbench {arguments[0]} failed: {error}") from None
        printed = json_object(lines[-1]) if lines else None
        if printed is None:
            raise GuestError(f"ftbench {arguments[0]} failed: its last line is not JSON", lines)
        return printed

    def _spent(self) -> float:
        return self._clock() - self._started

    def _run(self, task: Task, number: int) -> list[Sample]:
        try:
            return [_sample(task, number, line) for line in self._execute(task.arguments)]
        except GuestError as error:
            return [Sample(task.name, number, None, str(error))]

    def _execute(self, arguments: Sequence[str]) -> list[str]:
        try:
            done = subprocess.run(
                [self._ftbench, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GuestError(f"took longer than {self._timeout:g} s") from None
        if done.returncode:
            raise GuestError(done.stderr.strip() or f"ended with status {done.returncode}")
        return done.stdout.splitlines()


def _sample(task: Task, number: int, text: str) -> Sample:
    printed = json_object(text)
    if printed is None:
        return Sample(task.name, number, None, f"printed {text!r}, which is not a JSON object")
    try:
        return Sample(task.name, number, read_line(printed))
    except UserError as error:
        return Sample(task.name, number, None, str(error))
