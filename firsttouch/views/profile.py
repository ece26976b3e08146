# SPDX-License-Identifier: GPL-2.0
"""Profiles as text: functions on the terminal, stacks for other tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.profile import (
    CELL,
    COUNTS,
    INSTRUCTIONS,
    USER,
    Basis,
    Frame,
    FunctionRow,
    Profile,
    basis_of,
    compare_functions,
    profiles_of,
)
from firsttouch.views.markdown import tried_options
from firsttouch.views.names import format_params
from firsttouch.views.plain import heading, plain, plain_table, print_table

# The lines of a table that answers first; --table prints every function.
_FIRST = 30
_ENTERED = {"tail_call": "tail call", "exception": "exception", "stack_switch": "stack switch"}


def case_title(case: Case) -> str:
    """Return a case's experiment, parameters and platform."""
    return f"{case.experiment.name} {format_params(case.params)}, {case.platform}"


def profile_command(case: Case) -> str:
    """Return the command that profiles all arms of a case."""
    first, *others = case.arms
    if tried := tried_options(case):
        words = shlex.split(case.command(others[-1]))
        return shlex.join([*words[: words.index("--arm")], *tried])
    return " ".join([case.command(first), *(f"--arm {arm}" for arm in others)])


def frame_label(frame: Frame) -> str:
    """Return a function's name, and how it was entered if not by a call."""
    entered = _ENTERED.get(frame.entered)
    return f"{frame.function} [{entered}]" if entered else frame.function


def signed(value: float) -> str:
    """Return a change, with its sign unless it rounds to zero."""
    text = f"{value:+,.2f}"
    return "0" if text in ("+0.00", "-0.00") else text


def unit_label(basis: Basis, count: str = INSTRUCTIONS) -> str:
    """Return what a value of the kernel is: ``instructions per fault``."""
    return COUNTS[count] if basis.unit == CELL else f"{COUNTS[count]} per {basis.unit}"


def print_profile(
    case: Case, count: str, unit: str | None, console: Console, *, whole: bool
) -> None:
    """Print the functions of a case with `count` per `unit` on each arm, and the change.

    Prints every function if `whole`, or else the first of them. Raises
    UserError as `basis_of` does.
    """
    profiles = profiles_of(case)
    basis = basis_of(case, profiles, unit)
    functions = compare_functions(profiles, basis, count)
    user = [row for row in functions if row.function == USER]
    rows = [row for row in functions if row.function != USER]
    shown = rows if whole else rows[:_FIRST]
    changes = ["change"] if len(profiles) > 1 else []
    table = plain_table(["function"], [*profiles, *changes])
    for row in [_total(profiles, basis, count), *user, *shown]:
        values = [f"{value:,.2f}" for value in row.values.values()]
        changes = [] if row.change is None else [signed(row.change)]
        table.add_row(*map(plain, [row.function, *values, *changes]))
    console.print(heading(case_title(case)))
    divisors = [f"{number:,.0f} {basis.unit}s on {arm}" for arm, number in basis.divisors.items()]
    about = "" if basis.unit == CELL else f": {', '.join(divisors)}"
    console.print(plain(f"{unit_label(basis, count)}{about}"), soft_wrap=True)
    for arm, profile in profiles.items():
        if count in profile.missing:
            console.print(plain(f"Not on {arm}: {profile.missing[count]}."), soft_wrap=True)
    print_table(table, console)
    if rest := rows[len(shown) :]:
        console.print(plain(f"{len(rest):,} more functions: --table prints each."))


def _total(profiles: Mapping[str, Profile], basis: Basis, count: str) -> FunctionRow:
    values = {arm: profile.total(count) / basis.divisors[arm] for arm, profile in profiles.items()}
    first, *others = values.values()
    return FunctionRow("the kernel, all functions", values, others[-1] - first if others else None)


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
