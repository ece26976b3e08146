# SPDX-License-Identifier: GPL-2.0
"""What an arm changes across settings, as text: what got worse first, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import INSTRUCTIONS, JUDGED, Changes
from firsttouch.analysis.matrix import Matrix, Moved
from firsttouch.analysis.verdicts import change_percent
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.views.changed_functions import changed_in
from firsttouch.views.changes import (
    by_unit,
    format_per,
    format_signed,
    name_of,
    rows_of,
    unit_of,
)
from firsttouch.views.names import cell_name
from firsttouch.views.plain import heading, plain, plain_table, print_headed
from firsttouch.views.profile import signed

# What stands for no setting.
PLAIN = "as it is"
_FUNCTIONS = 3


def print_matrix(
    matrix: Matrix, profiled: Sequence[Case], console: Console, arms: int | None = None
) -> None:
    """Print what got worse, what got better and what did not move.

    It takes few lines if the tables of `arms` share a terminal. `profiled` are the cases
    that ran again with counts by function.
    """
    changes, most = matrix.changes, rows_of(arms)
    number = format_number_of(len(matrix.settings), "settings")
    console.print(heading(f"{changes.arm} against {changes.base} in {number}: {changes.meaning}"))
    for side, moved in (("Worse", matrix.worse), ("Better", matrix.better)):
        console.print(plain(f"{side}: {_headline(moved, changes, profiled)}"))
    for side, moved in (("worse", matrix.worse), ("better", matrix.better)):
        for unit, alike in by_unit(moved[:most], lambda case: case.most).items():
            _print_table(f"{side}, {unit}", alike, changes, console)
        if hidden := moved[len(moved[:most]) :]:
            console.print(plain(f"and {format_number_of(len(hidden), 'more cells')}"))
    for sentence in _rest(matrix):
        console.print(plain(sentence))


def _headline(moved: Sequence[Moved], changes: Changes, profiled: Sequence[Case]) -> str:
    """Return what moved most, by how much, where, and the functions that did it."""
    if not moved:
        return "nothing."
    first = moved[0].most
    base, value = first.per_unit(first.decisive)
    setting = first.case.platform.setting
    where = f"in {setting}" if setting else PLAIN
    words = (
        f"{name_of(first)} {where}: {format_per(base)} to {format_per(value)} "
        f"{JUDGED[first.decisive]} {unit_of(first)} ({format_change(change_percent(base, value))})"
    )
    example = moved[0].example.case
    for case in profiled:
        if (case.experiment.name, case.params) == (example.experiment.name, example.params):
            rows = changed_in(case, changes.base, changes.arm)[:_FUNCTIONS]
            words += "".join(f", {row.function} {signed(row.change or 0)}" for row in rows)
            break
    return f"{words}."


def _print_table(title: str, moved: Sequence[Moved], changes: Changes, console: Console) -> None:
    """Print a line for each case: the setting that moves it most, and what it is without.

    A line whose instructions did not move names the count that did.
    """
    table = plain_table(
        [title, "most in"], [changes.base, changes.arm, "change", "of all", PLAIN, "settings"]
    )
    for case in moved:
        cell = case.most
        metric, bare = cell.decisive, case.plain
        base, value = cell.per_unit(metric)
        counted = "" if metric == INSTRUCTIONS else f", {JUDGED[metric]}"
        table.add_row(
            plain(f"{name_of(cell)}{counted}"),
            plain(cell.case.platform.setting or PLAIN),
            format_per(base),
            format_per(value),
            format_signed(value - base),
            format_change(change_percent(base, value)),
            format_signed(bare.change(metric)) if bare and metric in bare.judged else "-",
            f"{len(case.cells)} of {case.of}",
        )
    print_headed(table, console)


def _rest(matrix: Matrix) -> Iterator[str]:
    if matrix.still:
        still = [cell_name(case.experiment, case.params) for case in matrix.still]
        yield f"Did not move in any setting: {format_list(still, most=12)}."
    if names := [name for name in matrix.settings if name]:
        yield f"Settings: {PLAIN}, {format_list(names, most=len(names))}."
