# SPDX-License-Identifier: GPL-2.0
"""Progress of a long step: a bar on a terminal, a line every 20 seconds elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from firsttouch.quantities import format_duration, format_number_of

# Seconds between two lines of progress in a log.
_LINE_EVERY = 20.0


class PipeConsole(Console):
    """A console on which a broken pipe is an exception, not the end of the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, as writing without rich does."""
        raise BrokenPipeError


class Step:
    """One long step: `done` of about `total` units; both may change while it runs."""

    def __init__(self, console: Console, title: str, unit: str, total: int) -> None:
        self.title = title
        self.unit = unit
        self.total = total
        self.done = 0
        self._before = 0
        self._console = console
        self._started = time.monotonic()
        self._said = self._started
        self._lock = threading.Lock()
        self._bar: tuple[Progress, TaskID] | None = None

    def attach(self, bar: Progress) -> None:
        """Show the step in a live display."""
        self._bar = (bar, bar.add_task(self.title, total=self.total, unit=self.unit, left=""))

    def left(self) -> str:
        """Return the ETA at the rate so far, in words; empty while the rate is unknown."""
        spent = time.monotonic() - self._started
        # The first seconds of a step are set-up and give no rate.
        fresh = self.done - self._before
        if fresh <= 0 or spent < 3:
            return ""
        rest = max(self.total - self.done, 0)
        return f"about {format_duration(spent / fresh * rest)} left"

    def go_on_from(self, done: int) -> None:
        """Report `done` units that were done before a resume; they are excluded from the ETA."""
        self._before = done
        self.at(done)

    def at(self, done: int) -> None:
        """Report that `done` units are done in all."""
        with self._lock:
            self.done = done
            # The total is an estimate for some steps; never show 101 of 100.
            self.total = max(self.total, done)
            if self._bar:
                bar, task = self._bar
                bar.update(task, completed=done, total=self.total, left=self.left())
            elif time.monotonic() - self._said >= _LINE_EVERY:
                self._said = time.monotonic()
                self._console.print(
                    f"{self.title}: {done:,} of {format_number_of(self.total, self.unit)}, "
                    f"{self.left()}"
                )

    def advance(self) -> None:
        """Report one more unit done."""
        self.at(self.done + 1)


class Reporter:
    """Writes progress to standard error, so that standard output has only results."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or PipeConsole(stderr=True, highlight=False, soft_wrap=True)

    def say(self, message: str) -> None:
        """Print one line."""
        self.console.print(message, markup=False)

    @contextmanager
    def step(self, title: str, unit: str, total: int) -> Iterator[Step]:
        """Show a long step while the context lasts, then print how long it took."""
        step = Step(self.console, title, unit, total)
        started = time.monotonic()
        if self.console.is_terminal:
            with Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
                TextColumn("{task.fields[left]}"),
                console=self.console,
                transient=True,
            ) as bar:
                step.attach(bar)
                yield step
        else:
            self.say(f"{title}: {format_number_of(total, unit)}")
            yield step
        took = format_duration(time.monotonic() - started)
        # A step whose unit is the second needs no second figure.
        did = "" if unit == "s" else f", {format_number_of(step.done, unit)}"
        self.say(f"{title}: done{did} in {took}")
