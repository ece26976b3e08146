# SPDX-License-Identifier: GPL-2.0
"""Progress: one line of a terminal, a line now and then elsewhere, never more than all."""

import io

import pytest
from rich.console import Console

from firsttouch import progress
from firsttouch.progress import Reporter


def _reporter(terminal: bool) -> tuple[Reporter, io.StringIO]:
    sink = io.StringIO()
    return Reporter(Console(file=sink, force_terminal=terminal, width=100, highlight=False)), sink


class _Clock:
    """Time that passes by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_elsewhere_a_line_now_and_then_with_the_time_left(clock: _Clock) -> None:
    reporter, sink = _reporter(terminal=False)
    with reporter.step("Building 6.12 stock", "objects", 1200) as step:
        for done in range(0, 601, 10):
            clock.now = done * 0.2
            step.at(done)
    lines = sink.getvalue().splitlines()
    assert lines[0] == "Building 6.12 stock: 1,200 objects"
    assert lines[1] == "Building 6.12 stock: 100 of 1,200 objects, about 3 min 40 s left"
    assert lines[-1] == "Building 6.12 stock: done, 600 objects in 2 min 00 s"
    # Two minutes of work, a line every 20 seconds.
    assert len(lines) == 2 + 6


def test_a_build_goes_on_at_the_pace_of_earlier_ones(clock: _Clock) -> None:
    reporter, _ = _reporter(terminal=False)
    left = []
    with reporter.step("Building 6.12 stock", "objects", 1800) as step:
        # A build of 1,000 s, whose first half of the objects takes 590.
        for done, clock.now in ((0, 0.0), (50, 40.0), (180, 100.0), (900, 590.0), (1800, 1000.0)):
            step.at(done)
            left.append(step.line().rpartition(", ")[2])
    said = ["for 0 s", "for 40 s", "about 15 min 00 s left", "about 6 min 50 s left"]
    assert left == [*said, "for 16 min 40 s"]


def test_on_a_terminal_the_line_is_drawn_and_then_replaced(clock: _Clock) -> None:
    reporter, sink = _reporter(terminal=True)
    with reporter.step("Measuring", "cells", 54) as step:
        clock.now = 30.0
        assert step.line() == "Measuring: 0 of 54 cells, for 30 s"
        step.at(27)
    text = sink.getvalue()
    assert "Measuring: 27 of 54 cells, about 30 s left" in text
    assert text.endswith("Measuring: done, 27 cells in 30 s\n")
    assert "\x1b[" in text


def test_a_step_that_fails_leaves_the_line(clock: _Clock) -> None:
    reporter, sink = _reporter(terminal=True)
    with pytest.raises(OSError, match="gone"), reporter.step("Measuring", "cells", 54):
        raise OSError("gone")
    with reporter.step("Again", "cells", 1) as step:
        step.advance()
    assert "Measuring: done" not in sink.getvalue()
    assert sink.getvalue().endswith("Again: done, 1 cell in 0 s\n")
