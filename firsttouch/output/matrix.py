# SPDX-License-Identifier: GPL-2.0
"""What an arm changes across settings, as text: what got worse first, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import INSTRUCTIONS, PATH
from firsttouch.analysis.matrix import Matrix, Moved
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.output.changes import changed_in, format_per, format_signed, name_of, rows_of
from firsttouch.output.names import cell_name
from firsttouch.output.plain import fits, heading, plain, plain_table, print_table
from firsttouch.output.profile import signed
from firsttouch.quantities import format_change, format_list, format_number_of

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
    found, most = matrix.found, rows_of(arms)
    number = format_number_of(len(matrix.settings), "settings")
    console.print(heading(f"{found.arm} against {BASE} in {number}: {found.meaning}"))
    for side, moved in (("Worse", matrix.worse), ("Better", matrix.better)):
        console.print(plain(f"{side}: {_headline(moved, found.arm, profiled)}"))
    for side, moved in (("worse", matrix.worse), ("better", matrix.better)):
        if moved:
            _print_table(side, moved[:most], found.arm, console)
        if hidden := moved[len(moved[:most]) :]:
            console.print(plain(f"and {format_number_of(len(hidden), 'more cells')}"))
    for sentence in _rest(matrix):
        console.print(plain(sentence))


def _headline(moved: Sequence[Moved], arm: str, profiled: Sequence[Case]) -> str:
    """Return what moved most, by how much, where, and the functions that did it."""
    if not moved:
        return "nothing."
    first = moved[0].most
    base, value = first.per_fault(first.decisive)
    setting = first.case.platform.setting
    where = f"in {setting}" if setting else PLAIN
    words = (
        f"{name_of(first)} {where}: {format_per(base)} to {format_per(value)} "
        f"{PATH[first.decisive]} ({format_change(change_percent(base, value))})"
    )
    example = moved[0].example.case
    for case in profiled:
        if (case.experiment.name, case.params) == (example.experiment.name, example.params):
            rows = changed_in(case, arm)[:_FUNCTIONS]
            words += "".join(f", {row.function} {signed(row.change or 0)}" for row in rows)
            break
    return f"{words}."


def _print_table(side: str, moved: Sequence[Moved], arm: str, console: Console) -> None:
    """Print a line for each case: the setting that moves it most, and what it is without.

    A line whose instructions did not move names the count that did.
    """
    table = plain_table(
        [f"{side}, per fault", "most in"], [BASE, arm, "change", "of all", PLAIN, "settings"]
    )
    for one in moved:
        cell = one.most
        metric, bare = cell.decisive, one.plain
        base, value = cell.per_fault(metric)
        counted = "" if metric == INSTRUCTIONS else f", {PATH[metric]}"
        table.add_row(
            plain(f"{name_of(cell)}{counted}"),
            plain(cell.case.platform.setting or PLAIN),
            format_per(base),
            format_per(value),
            format_signed(value - base),
            format_change(change_percent(base, value)),
            format_signed(bare.change(metric)) if bare and metric in bare.counts else "-",
            f"{len(one.cells)} of {one.of}",
        )
    if not fits(table, console):
        # Rows as lines lack the head of their names.
        console.print(plain(f"{side}, per fault"))
    print_table(table, console)


def _rest(matrix: Matrix) -> Iterator[str]:
    if matrix.still:
        still = [cell_name(case.experiment, case.params) for case in matrix.still]
        yield f"Did not move in any setting: {format_list(still, most=12)}."
    if names := [name for name in matrix.settings if name]:
        yield f"Settings: {PLAIN}, {format_list(names, most=len(names))}."
