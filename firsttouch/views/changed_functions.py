# SPDX-License-Identifier: GPL-2.0
"""The functions whose instructions an arm changes, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import Unit, units_of
from firsttouch.analysis.profile import (
    USER,
    Basis,
    FunctionRow,
    Profile,
    compare_functions,
    profiles_of,
)
from firsttouch.views.changes import UNITS, format_per, format_signed
from firsttouch.views.names import cell_name
from firsttouch.views.plain import plain, plain_table, print_headed
from firsttouch.views.profile import signed

# Lines of the table.
_FUNCTIONS = 6


def print_functions(case: Case, base: str, arm: str, console: Console) -> None:
    """Print the functions of a profiled case whose instructions changed, per fault or operation."""
    title = f"functions of {cell_name(case.experiment, case.params)}"
    unit, _ = units_of(case, base)
    print_rows(title, (base, arm), changed_in(case, base, arm), console, unit)


def changed_functions(profiles: Mapping[str, Profile], units: float) -> list[FunctionRow]:
    """Return the functions whose instructions changed, divided by `units`, the largest first."""
    basis = Basis("fault", dict.fromkeys(profiles, units))
    return [
        row
        for row in compare_functions(profiles, basis)
        if row.function != USER and signed(row.change or 0) != "0"
    ]


def print_rows(
    title: str,
    names: Sequence[str],
    rows: Sequence[FunctionRow],
    console: Console,
    unit: Unit,
) -> None:
    """Print functions that changed between two kernels, of these `names`."""
    if not rows:
        return
    console.print(plain(title), soft_wrap=True)
    table = plain_table([UNITS[unit]], [*names, "change"])
    for row in rows[:_FUNCTIONS]:
        table.add_row(
            plain(row.function),
            *map(format_per, row.values.values()),
            format_signed(row.change or 0),
        )
    print_headed(table, console)
    if rows[_FUNCTIONS:]:
        rest = sum(row.change or 0 for row in rows[_FUNCTIONS:])
        console.print(plain(f"{len(rows) - _FUNCTIONS:,} more functions, together {signed(rest)}"))


def changed_in(case: Case, base: str, arm: str) -> list[FunctionRow]:
    """Return the functions whose instructions per fault or operation changed, the largest first."""
    profiles = {name: profile for name, profile in profiles_of(case).items() if name in (base, arm)}
    if len(profiles) < 2:
        return []
    return changed_functions(profiles, units_of(case, base)[1])
