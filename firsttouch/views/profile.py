# SPDX-License-Identifier: GPL-2.0
"""Profiles as text: functions, those that an arm changes, and stacks for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from firsttouch.analysis.changes import Unit, units_of
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import (
    COUNTS,
    INSTRUCTIONS,
    USER,
    Frame,
    FunctionRow,
    compare_functions,
    profiles_of,
)
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_number_of
from firsttouch.views.rows import cell_name, format_params
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain

# The lines of a table that answers first; --table prints every function.
_FIRST = 30
# Lines of a table of functions that changed.
_CHANGED = 6
_ENTERED = {"tail_call": "tail call", "exception": "exception", "stack_switch": "stack switch"}
# Counts per fault from which on decimals are left out.
_LARGE = 10_000
# What heads cells, by what their counts are divided by.
UNITS: Mapping[Unit, str] = {
    "fault": "per fault",
    "operation": "per operation",
    "cell": "in the whole cell",
}


def case_title(case: Case) -> str:
    return f"{case.experiment.name} {format_params(case.params)}, {case.platform}"


def frame_label(frame: Frame) -> str:
    entered = _ENTERED.get(frame.entered)
    return f"{frame.function} [{entered}]" if entered else frame.function


def signed(value: float) -> str:
    """Return a change, with its sign unless it rounds to zero."""
    text = f"{value:+,.2f}"
    return "0" if text in ("+0.00", "-0.00") else text


def format_per(value: float) -> str:
    """Return a count per fault or operation; decimals of a large value would say nothing."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:,.2f}"


def format_signed(value: float) -> str:
    """Return a change of such a count, with its sign unless it rounds to zero."""
    return f"{value:+,.0f}" if abs(value) >= _LARGE else signed(value)


def print_profile(case: Case, count: str, console: Console, *, whole: bool) -> None:
    """Print the functions of a case with `count` on each arm, and the change.

    Prints every function if `whole`, or else the first of them.
    """
    profiles = profiles_of(case)
    base = next(iter(profiles))
    unit, units = units_of(case, base)
    functions = compare_functions(profiles, units, count)
    rows = [row for row in functions if row.function != USER]
    shown = rows if whole else rows[:_FIRST]
    totals = {arm: profile.total(count) / units for arm, profile in profiles.items()}
    first, *others = totals.values()
    total = FunctionRow("the kernel, all functions", totals, others[-1] - first if others else None)
    lines = [
        (
            row.function,
            *(f"{value:,.2f}" for value in row.values.values()),
            *([] if row.change is None else [signed(row.change)]),
        )
        for row in (total, *(row for row in functions if row.function == USER), *shown)
    ]
    console.print(heading(case_title(case)))
    about = "" if unit == "cell" else f": {units:,.0f} {unit}s on {base}"
    console.print(plain(f"{COUNTS[count]} {UNITS[unit]}{about}"), soft_wrap=True)
    reasons = (profile.missing.get(count) for profile in profiles.values())
    for why in dict.fromkeys(filter(None, reasons)):
        console.print(plain(f"Not available: {why}."), soft_wrap=True)
    left = len(rows) - len(shown)
    note = f"{format_number_of(left, 'more functions')}: --table prints all." if left else ""
    head = ("function", *profiles, *(["change"] if others else []))
    print_table(Table("", head, lines, note), console)


def changed_in(case: Case, arm: str) -> list[FunctionRow]:
    """Return the functions whose instructions an arm changes against stock, the largest first.

    They are those per fault or operation of stock.
    """
    profiles = {name: profile for name, profile in profiles_of(case).items() if name in (BASE, arm)}
    rows = compare_functions(profiles, units_of(case)[1])
    return [row for row in rows if row.function != USER and signed(row.change or 0) != "0"]


def function_tables(cases: Sequence[Case], arm: str) -> Iterator[Table]:
    for case in cases:
        rows = changed_in(case, arm)
        rest, note = rows[_CHANGED:], ""
        if rest:
            functions = format_number_of(len(rest), "more functions")
            note = f"{functions}, together {signed(sum(row.change or 0 for row in rest))}"
        lines = [
            (row.function, *map(format_per, row.values.values()), format_signed(row.change or 0))
            for row in rows[:_CHANGED]
        ]
        if lines:
            title = f"functions of {cell_name(case.experiment, case.params)}"
            yield Table(title, (UNITS[units_of(case)[0]], BASE, arm, "change"), lines, note)


def folded(dataset: Dataset) -> str:
    """Return each stack as a line: its functions, outermost first, and its own instructions.

    The form is that of stackcollapse-perf.pl, which most drawers of flame graphs
    read. The first word of a stack names the cell and the arm.
    """
    return "".join(f"{line}\n" for case in dataset.cases for line in _folded(case, dataset.cases))


def _folded(case: Case, cases: Sequence[Case]) -> Iterator[str]:
    for arm, profile in profiles_of(case).items():
        first = arm if len(cases) == 1 else f"{arm} {case_title(case)}"
        for stack, counts in profile.stacks.items():
            if counts.get(INSTRUCTIONS):
                names = [first.replace(";", ","), *map(frame_label, stack)]
                yield f"{';'.join(names)} {counts[INSTRUCTIONS]}"
