# SPDX-License-Identifier: GPL-2.0
"""What an arm changes: tables of the cells that cost more and less, in one setting or several."""

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
    Matrix,
    Moved,
)
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.tables import Json
from firsttouch.views.names import cell_name
from firsttouch.views.profile import UNITS, changed_in, format_per, format_signed, signed
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain

SCHEMA = 1
Line = TypeVar("Line")
# Lines of the tables of cells, which all arms share.
_CELLS = 12
# What stands for no setting.
PLAIN = "as it is"
_FUNCTIONS = 3


@dataclass(frozen=True)
class ChangesSection:
    """What an arm changes: tables of what costs more and what costs less, and sentences.

    Each table has cells of one unit; its title heads its first column.
    """

    title: str
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]


def changes_section(changes: Changes, most: int | None = None) -> ChangesSection:
    """Return what an arm changes: at most `most` cells to each side."""
    platforms = sorted({str(cell.case.platform) for cell in changes.cells})
    tables, hidden = [], 0
    for side, more in (("costs more", True), ("costs less", False)):
        cells = changes.changed(more=more)
        hidden += len(cells) - len(cells[:most])
        tables += [
            _table(f"{side}, {unit}", changes, alike, several=len(platforms) > 1)
            for unit, alike in _by_unit(cells[:most], lambda cell: cell).items()
        ]
    return ChangesSection(
        f"{changes.arm} against {changes.base}, {format_list(platforms)}: {changes.meaning}",
        tuple(tables),
        tuple(_sentences(changes, hidden)),
    )


def print_changes(changes: Changes, console: Console, arms: int | None = None) -> None:
    """Print what an arm changes; in few lines if the tables of `arms` share a terminal."""
    section = changes_section(changes, _rows_of(arms))
    console.print(heading(section.title), soft_wrap=True)
    for table in section.tables:
        print_table(table, console)
    for sentence in section.sentences:
        console.print(plain(sentence))


def _rows_of(arms: int | None) -> int | None:
    return max(3, _CELLS // (2 * arms)) if arms else None


def _table(title: str, changes: Changes, cells: Sequence[CellChange], *, several: bool) -> Table:
    """Return the kernel instructions of each cell in its unit, and each count's change.

    A count that changes in none of the cells, but by chance, has no column.
    """
    others = [
        metric
        for metric in JUDGED
        if metric != INSTRUCTIONS and any(cell.moved(metric) for cell in cells)
    ]
    words = [JUDGED[metric] for metric in others]
    rows = []
    for cell in cells:
        base, value = cell.per_unit(INSTRUCTIONS)
        rows.append((
            f"{_name(cell)}, {cell.case.platform}" if several else _name(cell),
            format_per(base),
            format_per(value),
            format_signed(value - base),
            format_change(cell.percent) if cell.weight or base == value else "noise",
            *(format_signed(cell.change(metric)) if metric in cell.judged else "-"
              for metric in others),
        ))  # fmt: skip
    return Table("", (title, changes.base, changes.arm, "change", "of all", *words), rows)


def _sentences(changes: Changes, hidden: int) -> Iterator[str]:
    """Return what the table does not say; `hidden` changed cells are not in it."""
    equal, chance = changes.of_kind("equal"), changes.of_kind("chance")
    if hidden:
        yield f"and {hidden:,} more cells changed: the report has them."
    if equal + chance and not changes.of_kind("changed"):
        yield "Nothing changed."
    if equal:
        judged = [w for metric, w in PATH.items() if any(metric in cell.counts for cell in equal)]
        words = format_list(judged, most=len(PATH))
        yield f"{words[0].upper()}{words[1:]} are equal in {_cells(equal)}."
    if chance:
        yield f"Within noise, as stock booted twice differs as much: {_cells(chance)}."
    if left := changes.of_kind("not judged"):
        yield f"Not judged, because they count no instructions: {_cells(left)}."
    if moved := list(_within(changes)):
        yield f"Cache misses within what code that moves explains: {'; '.join(moved)}."


def _cells(cells: Sequence[CellChange]) -> str:
    names = sorted({cell.case.experiment.name for cell in cells})
    return f"{format_number_of(len(cells), 'cells')} of {format_list(names, most=12)}"


def _within(changes: Changes) -> Iterator[str]:
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


def _name(cell: CellChange) -> str:
    return cell_name(cell.case.experiment, cell.case.params)


def _by_unit(lines: Iterable[Line], cell_of: Callable[[Line], CellChange]) -> dict[str, list[Line]]:
    """Return lines of a table by the unit of their cells; `cell_of` returns the cell of a line."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(UNITS[cell_of(line).unit], []).append(line)
    return groups


def print_matrix(
    matrix: Matrix, profiled: Sequence[Case], console: Console, arms: int | None = None
) -> None:
    """Print what got worse, what got better and what did not move.

    It takes few lines if the tables of `arms` share a terminal. `profiled` are the cases
    that ran again with counts by function.
    """
    changes, most = matrix.changes, _rows_of(arms)
    sides = (("Worse", matrix.worse), ("Better", matrix.better))
    number = format_number_of(len(matrix.settings), "settings")
    console.print(heading(f"{changes.arm} against {changes.base} in {number}: {changes.meaning}"))
    for side, moved in sides:
        console.print(plain(f"{side}: {_headline(moved, changes, profiled)}"))
    for side, moved in sides:
        for unit, alike in _by_unit(moved[:most], lambda case: case.most).items():
            print_table(_matrix_table(f"{side.lower()}, {unit}", alike, changes), console)
        if hidden := moved[len(moved[:most]) :]:
            console.print(plain(f"and {format_number_of(len(hidden), 'more cells')}"))
    if matrix.still:
        still = [cell_name(case.experiment, case.params) for case in matrix.still]
        console.print(plain(f"Did not move in any setting: {format_list(still, most=12)}."))
    if names := [name for name in matrix.settings if name]:
        console.print(plain(f"Settings: {PLAIN}, {format_list(names, most=len(names))}."))


def _headline(moved: Sequence[Moved], changes: Changes, profiled: Sequence[Case]) -> str:
    """Return what moved most, by how much, where, and the functions that did it."""
    if not moved:
        return "nothing."
    first = moved[0].most
    base, value = first.per_unit(first.decisive)
    setting = first.case.platform.setting
    words = (
        f"{_name(first)} {f'in {setting}' if setting else PLAIN}: {format_per(base)} to "
        f"{format_per(value)} {JUDGED[first.decisive]} {UNITS[first.unit]} "
        f"({format_change(change_percent(base, value))})"
    )
    example = moved[0].example.case
    for case in profiled:
        if (case.experiment.name, case.params) == (example.experiment.name, example.params):
            rows = changed_in(case, changes.base, changes.arm)[:_FUNCTIONS]
            words += "".join(f", {row.function} {signed(row.change or 0)}" for row in rows)
            break
    return f"{words}."


def _matrix_table(title: str, moved: Sequence[Moved], changes: Changes) -> Table:
    """Return a line for each case: the setting that moves it most, and what it is without.

    A line whose instructions did not move names the count that did.
    """
    rows = []
    for case in moved:
        cell = case.most
        metric, bare = cell.decisive, case.plain
        base, value = cell.per_unit(metric)
        rows.append((
            _name(cell) + ("" if metric == INSTRUCTIONS else f", {JUDGED[metric]}"),
            format_per(base),
            format_per(value),
            format_signed(value - base),
            format_change(change_percent(base, value)),
            format_signed(bare.change(metric)) if bare and metric in bare.judged else "-",
            f"{len(case.cells)} of {case.of}",
            cell.case.platform.setting or PLAIN,
        ))  # fmt: skip
    head = (title, changes.base, changes.arm, "change", "of all", PLAIN, "settings", "most in")
    return Table("", head, rows, more=1)


def changes_document(
    tried: Sequence[Changes], profiled: Mapping[str, Sequence[Case]]
) -> dict[str, Json]:
    """Return what arms change as one JSON object; counts are those of whole cells.

    `profiled` has the cells that each arm ran again with counts by function;
    the functions that changed have their instructions per fault or operation of the base.
    """
    return {
        "schema": SCHEMA,
        "arms": [
            {
                "arm": changes.arm,
                "baseline": changes.base,
                "tried": changes.meaning,
                "changed": bool(changes.of_kind("changed")),
                "cells": [_cell_document(cell) for cell in changes.cells],
                "functions": [
                    {"cell": cell_name(case.experiment, case.params), "function": row.function,
                     _key(changes.base): row.values[changes.base], "arm": row.values[changes.arm]}
                    for case in profiled.get(changes.arm, ())
                    for row in changed_in(case, changes.base, changes.arm)
                ],
            }
            for changes in tried
        ],
    }  # fmt: skip


def _key(base: str) -> str:
    return base if base == BASE else "baseline"


def _cell_document(cell: CellChange) -> dict[str, Json]:
    return {
        **cell.case.document(),
        "setting": cell.case.platform.setting,
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
