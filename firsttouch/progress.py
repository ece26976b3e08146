# SPDX-License-Identifier: GPL-2.0
"""Progress of long steps: one line of a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.live import Live
from rich.text import Text

from firsttouch.quantities import format_duration, format_number_of

# Seconds between two lines of progress in a log.
_LINE_EVERY = 20.0
# The part of its time that a build takes up to each tenth of the objects: Linux 6.1 and 7.3.
_PACE = {"objects": (0.0, 0.1, 0.2, 0.35, 0.47, 0.59, 0.67, 0.77, 0.86, 0.93, 1.0)}


class PipeConsole(Console):
    """A console on which a broken pipe is an exception, not the end of the process."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, as writing without rich does."""
        raise BrokenPipeError


class Step:
    """One long step: `done` of about `total` units; both may change while it runs."""

    def __init__(self, console: Console, title: str, unit: str, total: int) -> None:
        self.title, self.unit, self.total = title, unit, total
        self.done = 0
        self._console = console
        self.began = self._said = time.monotonic()

    def line(self) -> str:
        """Return what the step does, how far it is, and how long it has run or will run."""
        passed = max(time.monotonic() - self.began, 0.0)
        when = f"for {format_duration(passed)}"
        if self.total <= 20 * self.done < 20 * self.total:
            pace = _PACE.get(self.unit, (0.0, 1.0))
            place, more = divmod((len(pace) - 1) * self.done / self.total, 1)
            begun, ended = pace[int(place) : int(place) + 2]
            left = passed / (begun + more * (ended - begun)) - passed
            when = f"about {format_duration(left)} left"
        return f"{self.title}: {self.done:,} of {format_number_of(self.total, self.unit)}, {when}"

    def at(self, done: int) -> None:
        """Report that `done` units are done in all."""
        # The total is an estimate for some steps; never show 101 of 100.
        self.total = max(self.total, done)
        self.done, now = done, time.monotonic()
        if not self._console.is_terminal and now - self._said >= _LINE_EVERY:
            self._said = now
            self._console.print(self.line(), markup=False)

    def advance(self) -> None:
        self.at(self.done + 1)


class Reporter:
    """Writes progress to standard error, so that standard output has only results."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or PipeConsole(stderr=True, highlight=False, soft_wrap=True)

    def say(self, message: str) -> None:
        self.console.print(message, markup=False)

    @contextmanager
    def step(self, title: str, unit: str, total: int) -> Iterator[Step]:
        """Report a step, which is part of no other one, while the context lasts."""
        step = Step(self.console, title, unit, total)
        drawn = self.console.is_terminal
        if not drawn:
            self.say(f"{title}: {format_number_of(total, unit)}")
        with Live(
            get_renderable=lambda: Text(step.line(), no_wrap=True, overflow="ellipsis"),
            console=self.console, transient=True, auto_refresh=drawn,
        ):  # fmt: skip
            yield step
        took = format_duration(time.monotonic() - step.began)
        self.say(f"{title}: done, {format_number_of(step.done, unit)} in {took}")
