# SPDX-License-Identifier: GPL-2.0
"""Profiles as text: functions on the terminal, stacks for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from firsttouch.analysis.dataset import Case, Dataset
from firsttouch.analysis.names import format_params
from firsttouch.analysis.profile import (
    COUNTS,
    INSTRUCTIONS,
    USER,
    Frame,
    FunctionRow,
    Profile,
    compare_functions,
    read_profile,
)
from firsttouch.output.plain import heading, plain, plain_table, print_table

# The lines of a table that answers first; --table prints every function.
_FIRST = 30
_ENTERED = {"tail_call": "tail call", "exception": "exception", "stack_switch": "stack switch"}


def profiles_of(case: Case) -> dict[str, Profile]:
    """Return the profiles of a case by arm; UserError if one is malformed."""
    found = {arm: read_profile(measured) for arm, measured in case.arms.items()}
    return {arm: profile for arm, profile in found.items() if profile is not None}


def per_fault(profiles: Mapping[str, Profile]) -> dict[str, float] | None:
    """Return the number of faults of each arm; None if one of them has none."""
    faults = {arm: float(profile.faults or 0) for arm, profile in profiles.items()}
    return faults if all(faults.values()) else None


def case_title(case: Case) -> str:
    """Return a case's experiment, parameters and platform."""
    return f"{case.experiment.name} {format_params(case.params)}, {case.platform}"


def profile_command(case: Case) -> str:
    """Return the command that profiles all arms of a case."""
    first, *others = case.arms
    return " ".join([case.command(first), *(f"--arm {arm}" for arm in others)])


def frame_label(frame: Frame) -> str:
    """Return a function's name, and how it was entered if not by a call."""
    entered = _ENTERED.get(frame.entered)
    return f"{frame.function} [{entered}]" if entered else frame.function


def signed(value: float) -> str:
    """Return a change, with its sign unless it rounds to zero."""
    text = f"{value:+,.2f}"
    return "0" if text in ("+0.00", "-0.00") else text


def print_profile(case: Case, count: str, console: Console, *, whole: bool) -> None:
    """Print the functions of a case with `count` per fault on each arm, and the change.

    Prints every function if `whole`, or else the first of them. Without faults
    the counts are those of the whole cell.
    """
    profiles = profiles_of(case)
    faults = per_fault(profiles)
    divisors = faults or dict.fromkeys(profiles, 1.0)
    unit = f"{COUNTS[count]}{' per fault' if faults else ''}"
    console.print(heading(case_title(case)))
    for arm, profile in profiles.items():
        if count in profile.missing:
            console.print(plain(f"{arm}: no {COUNTS[count]}: {profile.missing[count]}"))
    found = compare_functions(profiles, divisors, count)
    rows = [row for row in found if row.function != USER]
    user = [row for row in found if row.function == USER]
    shown = rows if whole else rows[:_FIRST]
    changed = len(profiles) > 1
    table = plain_table(["function"], [*profiles, *(["change"] if changed else [])])
    for row in [_total(profiles, divisors, count), *user, *shown]:
        values = [f"{value:,.2f}" for value in row.values.values()]
        table.add_row(
            plain(row.function), *map(plain, values), *([plain(signed(row.change or 0))] * changed)
        )
    console.print(plain(f"Kernel {unit}:{_faults(profiles) if faults else ''}"))
    print_table(table, console)
    if rest := rows[len(shown) :]:
        console.print(plain(f"{len(rest):,} more functions: --table prints each."))


def _total(
    profiles: Mapping[str, Profile], divisors: Mapping[str, float], count: str
) -> FunctionRow:
    values = {arm: profile.total(count) / divisors[arm] for arm, profile in profiles.items()}
    first, *others = values.values()
    return FunctionRow("the kernel, all functions", values, others[-1] - first if others else None)


def _faults(profiles: Mapping[str, Profile]) -> str:
    return " " + ", ".join(f"{profile.faults:,} faults on {arm}" for arm, profile in
                           profiles.items())  # fmt: skip


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
