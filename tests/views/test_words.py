# SPDX-License-Identifier: GPL-2.0
"""Numbers and names in words: one form for one thing."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.errors import UserError, nearest
from firsttouch.progress import Reporter
from firsttouch.quantities import format_change, format_number_of


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (None, "-"),
        (0.0, "0.00 %"),
        (-0.0, "0.00 %"),
        (0.004, "0.00 %"),
        (-0.004, "0.00 %"),
        (0.006, "+0.01 %"),
        (-50.0, "-50.00 %"),
    ],
)
def test_a_change_that_rounds_to_nothing_has_one_form(percent: float | None, text: str) -> None:
    assert format_change(percent) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [(1, "cells", "1 cell"), (0, "cells", "0 cells"), (2048, "MiB", "2,048 MiB"), (1, "s", "1 s")],
)
def test_one_thing_is_not_called_things(number: int, unit: str, text: str) -> None:
    assert format_number_of(number, unit) == text


def test_a_step_of_one_cell_says_so_and_a_step_of_seconds_says_its_time_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = io.StringIO()
    reporter = Reporter(Console(file=sink, width=100))
    with reporter.step("Measuring", "cells", 1) as step:
        step.advance()
    with reporter.step("Surveying", "s", 29) as step:
        step.at(29)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 29)
    lines = sink.getvalue().splitlines()
    assert lines == [
        "Measuring: 1 cell", "Measuring: done, 1 cell in 0 s",
        "Surveying: 29 s", "Surveying: done in 29 s",
    ]  # fmt: skip


def test_the_default_is_meant_where_several_names_are_near() -> None:
    with pytest.raises(UserError, match=f"did you mean '{DEFAULT_MACHINE}'"):
        load_machine("neoverse")
    with pytest.raises(UserError, match="did you mean 'neoverse-v2'"):
        load_machine("neoverse-v")
    assert nearest("a", ["b", "c"], "b") == "use one of b, c."
