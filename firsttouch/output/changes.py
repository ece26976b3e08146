# SPDX-License-Identifier: GPL-2.0
"""What an arm changes, as text: a line for each cell that changed, and functions of some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import (
    FAULTS,
    INSTRUCTIONS,
    JUDGED,
    MISSES,
    PATH,
    CellChange,
    Changes,
    Unit,
    units_of,
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
from firsttouch.output.plain import heading, plain, plain_table, print_headed
from firsttouch.output.profile import signed
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.tables import Json

SCHEMA = 1
Line = TypeVar("Line")
# Lines of the tables of cells and of functions; all arms share those of cells.
_CELLS, _FUNCTIONS = 12, 6
# Counts per fault from which on decimals are left out.
_LARGE = 10_000
# What heads cells, by what their counts are divided by.
_UNITS: Mapping[Unit, str] = {
    "fault": "per fault",
    "operation": "per operation",
    "cell": "in the whole cell",
}


@dataclass(frozen=True)
class ChangesTable:
    """Cells that changed to one side: heads, and a row for each cell."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ChangesSection:
    """What an arm changes: tables of what costs more and what costs less, and sentences.

    Each table has cells of one unit.
    """

    title: str
    tables: tuple[ChangesTable, ...]
    sentences: tuple[str, ...]


def changes_section(changes: Changes, most: int | None = None) -> ChangesSection:
    """Return what an arm changes: at most `most` cells to each side."""
    platforms = sorted({str(cell.case.platform) for cell in changes.cells})
    tables, hidden = [], 0
    for more in (True, False):
        cells = changes.changed(more=more)
        hidden += len(cells) - len(cells[:most])
        side = "costs more" if more else "costs less"
        tables += [
            _table(f"{side}, {unit}", changes, alike, several=len(platforms) > 1)
            for unit, alike in by_unit(cells[:most], lambda cell: cell).items()
        ]
    return ChangesSection(
        f"{changes.arm} against {changes.base}, {format_list(platforms)}: {changes.meaning}",
        tuple(tables),
        tuple(_sentences(changes, hidden)),
    )


def rows_of(arms: int | None) -> int | None:
    """Return how many rows a table has if those of `arms` share a terminal; None for all."""
    return max(3, _CELLS // (2 * arms)) if arms else None


def print_changes(changes: Changes, console: Console, arms: int | None = None) -> None:
    """Print what an arm changes; in few lines if the tables of `arms` share a terminal."""
    section = changes_section(changes, rows_of(arms))
    console.print(heading(section.title), soft_wrap=True)
    for shown in section.tables:
        table = plain_table(shown.heads[:1], shown.heads[1:])
        for row in shown.rows:
            table.add_row(*map(plain, row))
        print_headed(table, console)
    for sentence in section.sentences:
        console.print(plain(sentence))


def _table(
    title: str, changes: Changes, cells: Sequence[CellChange], *, several: bool
) -> ChangesTable:
    """Return the kernel instructions of each cell in its unit, and each count's change.

    A count that changes in none of the cells, but by chance, has no column.
    """
    others = [
        metric
        for metric in JUDGED
        if metric != INSTRUCTIONS and any(cell.moved(metric) for cell in cells)
    ]
    words = [JUDGED[metric] for metric in others]
    heads = (title, changes.base, changes.arm, "change", "of all", *words)
    rows = []
    for cell in cells:
        base, value = cell.per_unit(INSTRUCTIONS)
        rows.append(
            (
                f"{name_of(cell)}, {cell.case.platform}" if several else name_of(cell),
                format_per(base),
                format_per(value),
                format_signed(value - base),
                format_change(cell.percent),
                *(
                    format_signed(cell.change(metric)) if metric in cell.judged else "-"
                    for metric in others
                ),
            )
        )
    return ChangesTable(heads, tuple(rows))


def _sentences(changes: Changes, hidden: int = 0) -> Iterator[str]:
    """Return what the table does not say; `hidden` changed cells are not in it."""
    equal, chance = changes.of_kind("equal"), changes.of_kind("chance")
    if hidden:
        yield f"and {hidden:,} more cells changed: the report has them."
    if equal + chance and not changes.of_kind("changed"):
        yield "Nothing changed."
    if equal:
        yield f"{_judged(equal)} are equal in {_cells(equal)}."
    if chance:
        yield f"Within noise, as stock booted twice differs as much: {_cells(chance)}."
    if left := changes.of_kind("not judged"):
        yield f"Not judged, because they count no instructions: {_cells(left)}."
    if moved := list(_moved(changes)):
        yield f"Cache misses within what code that moves explains: {'; '.join(moved)}."


def format_per(value: float) -> str:
    """Return a count per fault or operation; decimals of a large value would say nothing."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:,.2f}"


def format_signed(value: float) -> str:
    """Return a change of such a count, with its sign unless it rounds to zero."""
    return f"{value:+,.0f}" if abs(value) >= _LARGE else signed(value)


def name_of(cell: CellChange) -> str:
    """Return the name of a cell."""
    return cell_name(cell.case.experiment, cell.case.params)


def unit_of(cell: CellChange) -> str:
    """Return what the counts of a cell are divided by: ``per fault``."""
    return _UNITS[cell.unit]


def by_unit(lines: Iterable[Line], cell_of: Callable[[Line], CellChange]) -> dict[str, list[Line]]:
    """Return lines of a table by the unit of their cells; `cell_of` returns the cell of a line."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(unit_of(cell_of(line)), []).append(line)
    return groups


def _cells(cells: Sequence[CellChange]) -> str:
    """Return how many cells these are, and of which experiments."""
    names = list(dict.fromkeys(cell.case.experiment.name for cell in cells))
    return f"{format_number_of(len(cells), 'cells')} of {format_list(sorted(names), most=12)}"


def _judged(cells: Sequence[CellChange]) -> str:
    """Return the counts by which cells were judged."""
    names = [
        words for metric, words in PATH.items() if any(metric in cell.counts for cell in cells)
    ]
    words = format_list(names, most=len(PATH))
    return words[0].upper() + words[1:]


def _moved(changes: Changes) -> Iterator[str]:
    """Return how far each level's misses changed by chance, and in how many cells."""
    for metric, words in MISSES.items():
        cells = [cell for cell in changes.cells if metric in cell.misses]
        both = [cell.misses[metric] for cell in cells if not cell.moved(metric)]
        changed = [100 * (value - base) / base for base, value in both if base and value != base]
        if changed:
            yield (
                f"{words} in {len(changed):,} of {format_number_of(len(both), 'cells')}, "
                f"from {min(changed):+.2f} % to {max(changed):+.2f} %"
            )


def functions_shown(case: Case, base: str, arm: str) -> list[str]:
    """Return the functions that `print_functions` names."""
    return [row.function for row in changed_in(case, base, arm)[:_FUNCTIONS]]


def print_functions(
    case: Case, base: str, arm: str, places: Mapping[str, str], console: Console
) -> None:
    """Print the functions of a profiled case whose instructions changed, per fault or operation.

    `places` has where functions are defined, by name.
    """
    title = f"functions of {cell_name(case.experiment, case.params)}"
    unit, _ = units_of(case, base)
    print_rows(title, (base, arm), changed_in(case, base, arm), places, console, unit)


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
    places: Mapping[str, str],
    console: Console,
    unit: Unit,
) -> None:
    """Print functions that changed between two kernels, of these `names`, and where they are."""
    if not rows:
        return
    # A line of its own: beside a cell's name there is no room for where functions are.
    console.print(plain(title), soft_wrap=True)
    table = plain_table([_UNITS[unit]], [*names, "change"], ["defined at"])
    for row in rows[:_FUNCTIONS]:
        table.add_row(
            plain(row.function),
            *map(format_per, row.values.values()),
            format_signed(row.change or 0),
            plain(places.get(row.function, "-")),
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


def changes_document(
    tried: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
    places: Mapping[str, Mapping[str, str]],
) -> dict[str, Json]:
    """Return what arms change as one JSON object; counts are those of whole cells.

    `profiled` has the cells that each arm ran again with counts by function;
    the functions that changed have their instructions per fault or operation of the base.
    `places` has by arm where functions are defined.
    """
    return {
        "schema": SCHEMA,
        "arms": [
            {
                "arm": changes.arm,
                "baseline": changes.base,
                "tried": changes.meaning,
                "changed": bool(changes.of_kind("changed")),
                "cells": [_document(cell) for cell in changes.cells],
                "functions": [
                    {"cell": cell_name(case.experiment, case.params), "function": row.function,
                     _key(changes.base): row.values[changes.base], "arm": row.values[changes.arm],
                     "defined_at": places.get(changes.arm, {}).get(row.function)}
                    for case in profiled.get(changes.arm, ())
                    for row in changed_in(case, changes.base, changes.arm)
                ],
            }
            for changes in tried
        ],
    }  # fmt: skip


def _key(base: str) -> str:
    """Return the key of what was counted on `base`."""
    return base if base == BASE else "baseline"


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
            metric: {_key(cell.base): base, "arm": value, "chance": cell.chance.get(metric)}
            for metric, (base, value) in cell.judged.items()
        },
    }
