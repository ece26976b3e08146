# SPDX-License-Identifier: GPL-2.0
"""What an arm changes, as text: a line for each cell that changed, and functions of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import (
    FAULTS,
    INSTRUCTIONS,
    MISSES,
    OPERATIONS,
    PATH,
    CellChange,
    Changes,
)
from firsttouch.analysis.profile import (
    USER,
    Basis,
    FunctionRow,
    Profile,
    compare_functions,
    profiles_of,
)
from firsttouch.catalog.arms import BASE
from firsttouch.output.names import cell_name
from firsttouch.output.plain import fits, heading, plain, plain_table, print_table
from firsttouch.output.profile import signed
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.tables import Json

SCHEMA = 1
# Lines of the tables of cells and of functions; all arms share those of cells.
_CELLS, _FUNCTIONS = 12, 6
# Counts per fault from which on decimals are left out.
_LARGE = 10_000
# What follows the name of a cell whose counts are not per fault.
_UNITS = {"fault": "", "operation": ", each", "cell": " (whole)"}


@dataclass(frozen=True)
class ChangesTable:
    """Cells that changed to one side: heads, and a row for each cell."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ChangesSection:
    """What an arm changes: a table of what costs more, one of what costs less, and sentences."""

    title: str
    tables: tuple[ChangesTable, ...]
    sentences: tuple[str, ...]


def changes_section(found: Changes, most: int | None = None) -> ChangesSection:
    """Return what an arm changes; each table has at most `most` rows."""
    platforms = sorted({str(cell.case.platform) for cell in found.cells})
    tables, hidden = [], 0
    for more in (True, False):
        cells = found.changed(more=more)
        hidden += len(cells) - len(cells[:most])
        if cells:
            tables.append(_table(found.arm, cells[:most], more=more, several=len(platforms) > 1))
    return ChangesSection(
        f"{found.arm} against {BASE}, {format_list(platforms)}: {found.meaning}",
        tuple(tables),
        tuple(_sentences(found, hidden)),
    )


def rows_of(arms: int | None) -> int | None:
    """Return how many rows a table has if those of `arms` share a terminal; None for all."""
    return max(3, _CELLS // (2 * arms)) if arms else None


def print_changes(found: Changes, console: Console, arms: int | None = None) -> None:
    """Print what an arm changes; in few lines if the tables of `arms` share a terminal."""
    section = changes_section(found, rows_of(arms))
    console.print(heading(section.title), soft_wrap=True)
    for shown in section.tables:
        table = plain_table(shown.heads[:1], shown.heads[1:])
        for row in shown.rows:
            table.add_row(*map(plain, row))
        if not fits(table, console):
            # Rows as lines lack the head of their names.
            console.print(plain(shown.heads[0]))
        print_table(table, console)
    for sentence in section.sentences:
        console.print(plain(sentence))


def _table(arm: str, cells: Sequence[CellChange], *, more: bool, several: bool) -> ChangesTable:
    """Return the kernel instructions of each cell per fault, and each count's change.

    A count that changes in none of the cells, but by chance, has no column.
    """
    others = [
        metric
        for metric in PATH
        if metric != INSTRUCTIONS and any(cell.moved(metric) for cell in cells)
    ]
    title = f"costs {'more' if more else 'less'}, per fault"
    heads = (title, BASE, arm, "change", "of all", *(PATH[metric] for metric in others))
    rows = []
    for cell in cells:
        base, value = cell.per_fault(INSTRUCTIONS)
        rows.append(
            (
                f"{name_of(cell)}, {cell.case.platform}" if several else name_of(cell),
                format_per(base),
                format_per(value),
                format_signed(value - base),
                format_change(cell.percent),
                *(format_signed(cell.change(one)) if one in cell.counts else "-" for one in others),
            )
        )
    return ChangesTable(heads, tuple(rows))


def _sentences(found: Changes, hidden: int = 0) -> Iterator[str]:
    """Return what the table does not say; `hidden` changed cells are not in it."""
    equal, chance = found.of_kind("equal"), found.of_kind("chance")
    if hidden:
        yield f"and {hidden:,} more cells changed: the report has them."
    if equal + chance and not found.of_kind("changed"):
        yield "Nothing changed."
    if equal:
        yield f"{_judged(equal)} are equal in {_cells(equal)}."
    if chance:
        yield f"Within noise, as stock booted twice differs as much: {_cells(chance)}."
    if left := found.of_kind("not judged"):
        yield f"Not judged, because they count no instructions: {_cells(left)}."
    if moved := list(_moved(found)):
        yield f"Cache misses, which change as code moves: {'; '.join(moved)}."


def format_per(value: float) -> str:
    """Return a count per fault; decimals of a large value would say nothing."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:,.2f}"


def format_signed(value: float) -> str:
    """Return a change of a count per fault, with its sign unless it rounds to zero."""
    return f"{value:+,.0f}" if abs(value) >= _LARGE else signed(value)


def name_of(cell: CellChange) -> str:
    """Return the name of a cell, and whether its counts are those of all of it."""
    name = cell_name(cell.case.experiment, cell.case.params)
    return f"{name}{_UNITS[cell.unit]}"


def _cells(cells: Sequence[CellChange]) -> str:
    """Return how many cells these are, and of which experiments."""
    names = list(dict.fromkeys(cell.case.experiment.name for cell in cells))
    return f"{format_number_of(len(cells), 'cells')} of {format_list(sorted(names), most=12)}"


def _judged(cells: Sequence[CellChange]) -> str:
    """Return the counts by which cells were judged."""
    names = [words for metric, words in PATH.items() if any(metric in one.counts for one in cells)]
    words = format_list(names, most=len(PATH))
    return words[0].upper() + words[1:]


def _moved(found: Changes) -> Iterator[str]:
    """Return how far each level's misses changed, and in how many cells."""
    for metric, words in MISSES.items():
        both = [cell.misses[metric] for cell in found.cells if metric in cell.misses]
        changed = [100 * (value - base) / base for base, value in both if base and value != base]
        if changed:
            yield (
                f"{words} in {len(changed):,} of {format_number_of(len(both), 'cells')}, "
                f"from {min(changed):+.2f} % to {max(changed):+.2f} %"
            )


def functions_shown(case: Case, arm: str) -> list[str]:
    """Return the functions that `print_functions` names."""
    return [row.function for row in changed_in(case, arm)[:_FUNCTIONS]]


def print_functions(case: Case, arm: str, places: Mapping[str, str], console: Console) -> None:
    """Print the functions of a profiled case whose instructions changed, per fault on stock.

    `places` has where functions are defined, by name.
    """
    title = f"functions of {cell_name(case.experiment, case.params)}"
    unit = "operation" if case.value(BASE, OPERATIONS) else "fault"
    print_rows(title, (BASE, arm), changed_in(case, arm), places, console, unit)


def changed_functions(profiles: Mapping[str, Profile], faults: float | None) -> list[FunctionRow]:
    """Return the functions whose instructions changed, per fault, the largest change first."""
    basis = Basis("fault", dict.fromkeys(profiles, faults or 1))
    return [
        row
        for row in compare_functions(profiles, basis)
        if row.function != USER and signed(row.change or 0) != "0"
    ]


def print_rows(
    title: str,
    names: Sequence[str],
    rows: Sequence[FunctionRow],
    places: Mapping[str, str],
    console: Console,
    unit: str = "fault",
) -> None:
    """Print functions that changed between two kernels, of these `names`, and where they are."""
    if not rows:
        return
    # A line of its own: beside a cell's name there is no room for where functions are.
    console.print(plain(title), soft_wrap=True)
    table = plain_table([f"per {unit}"], [*names, "change"], ["defined at"])
    for row in rows[:_FUNCTIONS]:
        table.add_row(
            plain(row.function),
            *map(format_per, row.values.values()),
            format_signed(row.change or 0),
            plain(places.get(row.function, "-")),
        )
    print_table(table, console)
    if rows[_FUNCTIONS:]:
        rest = sum(row.change or 0 for row in rows[_FUNCTIONS:])
        console.print(plain(f"{len(rows) - _FUNCTIONS:,} more functions, together {signed(rest)}"))


def changed_in(case: Case, arm: str) -> list[FunctionRow]:
    """Return the functions whose instructions per fault or operation changed, the largest first."""
    profiles = {name: found for name, found in profiles_of(case).items() if name in (BASE, arm)}
    if len(profiles) < 2:
        return []
    return changed_functions(profiles, case.value(BASE, OPERATIONS) or case.value(BASE, FAULTS))


def changes_document(
    found: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
    places: Mapping[str, Mapping[str, str]],
) -> dict[str, Json]:
    """Return what arms change as one JSON object; counts are those of whole cells.

    `profiled` has the cells that each arm ran again with counts by function;
    the functions that changed have their instructions per fault on stock.
    `places` has by arm where functions are defined.
    """
    return {
        "schema": SCHEMA,
        "arms": [
            {
                "arm": one.arm,
                "tried": one.meaning,
                "changed": bool(one.of_kind("changed")),
                "cells": [_document(cell) for cell in one.cells],
                "functions": [
                    {"cell": cell_name(case.experiment, case.params), "function": row.function,
                     "stock": row.values[BASE], "arm": row.values[one.arm],
                     "defined_at": places.get(one.arm, {}).get(row.function)}
                    for case in profiled.get(one.arm, ())
                    for row in changed_in(case, one.arm)
                ],
            }
            for one in found
        ],
    }  # fmt: skip


def _document(cell: CellChange) -> dict[str, Json]:
    case = cell.case
    return {
        "release": case.platform.release,
        "machine": case.platform.machine,
        "setting": case.platform.setting,
        "experiment": case.experiment.name,
        "params": dict(case.params),
        "kind": cell.kind,
        "change_percent": cell.percent if INSTRUCTIONS in cell.counts else None,
        "faults": cell.counts.get(FAULTS, (0.0, 0.0))[0] or None,
        "per": cell.unit,
        "units": cell.units,
        "counts": {
            metric: {"stock": base, "arm": value, "chance": cell.chance.get(metric)}
            for metric, (base, value) in {**cell.counts, **cell.misses}.items()
        },
    }
