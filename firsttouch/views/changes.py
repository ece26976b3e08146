# SPDX-License-Identifier: GPL-2.0
"""What an arm changes, as text: a line for each cell that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console

from firsttouch.analysis.changes import (
    INSTRUCTIONS,
    JUDGED,
    MISSES,
    PATH,
    CellChange,
    Changes,
    Unit,
)
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.views.names import cell_name
from firsttouch.views.plain import heading, plain, plain_table, print_headed
from firsttouch.views.profile import signed

Line = TypeVar("Line")
# Lines of the tables of cells, which all arms share.
_CELLS = 12
# Counts per fault from which on decimals are left out.
_LARGE = 10_000
# What heads cells, by what their counts are divided by.
UNITS: Mapping[Unit, str] = {
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
                format_change(cell.percent) if cell.weight or base == value else "noise",
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
    return UNITS[cell.unit]


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
