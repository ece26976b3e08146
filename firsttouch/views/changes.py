# SPDX-License-Identifier: GPL-2.0
"""What an arm changes, as a Comparison of the cells that cost more and less: in settings, or one.

Also that as JSON, and as a mail in 72 columns: figures, and how to repeat them.
"""

from __future__ import annotations

import io
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.changes import (
    FAULTS,
    INSTRUCTIONS,
    JUDGED,
    MISSES,
    PATH,
    CellChange,
    Changes,
    Matrix,
    MovedCase,
)
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.arms import BASE, UNNAMED, Arm
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.tables import Json
from firsttouch.views.comparison import COMPARABLE, Comparison, Line, print_comparison
from firsttouch.views.names import cell_name
from firsttouch.views.profile import (
    UNITS,
    changed_in,
    format_per,
    format_signed,
    function_tables,
    signed,
)
from firsttouch.views.tables import print_tables

SCHEMA = 1
# Lines of the tables of cells, which all arms share.
_CELLS = 12
# What stands for no setting.
PLAIN = "as it is"
_FUNCTIONS = 3
_MORE, _LESS = "costs more", "costs less"


def compared_arms(changes: Changes, arms: int | None = None) -> Comparison:
    """Return what an arm changes; with few lines if the tables of `arms` share a terminal.

    Each table has the kernel instructions of its cells in their unit, and each count's change. A
    count that changes in none of the cells, but by noise, has no column.
    """
    platforms = sorted({str(cell.case.platform) for cell in changes.cells})
    lines, columns, hidden = list[Line](), dict[str, tuple[str, ...]](), 0
    for side, more in ((_MORE, True), (_LESS, False)):
        cells = changes.changed(more=more)
        shown = cells[: _most(arms)]
        hidden += len(cells) - len(shown)
        for unit in dict.fromkeys(cell.unit for cell in shown):
            alike = [cell for cell in shown if cell.unit == unit]
            others = [
                metric
                for metric in JUDGED
                if metric != INSTRUCTIONS and any(cell.moved(metric) for cell in alike)
            ]
            title = f"{side}, {UNITS[unit]}"
            columns[title] = ("change", "of all", *(JUDGED[metric] for metric in others))
            for cell in alike:
                where = f", {cell.case.platform}" if len(platforms) > 1 else ""
                noise = not cell.weight and cell.percent
                texts = (
                    "noise" if noise else format_change(cell.percent),
                    *(
                        format_signed(cell.change(metric)) if metric in cell.figures else "-"
                        for metric in others
                    ),
                )
                lines.append(_line(cell, INSTRUCTIONS, f"{_name(cell)}{where}", texts, title))
    return Comparison(
        COMPARABLE, (), (), (), tuple(lines),
        notes=tuple(_sentences(changes, hidden)),
        title=f"{changes.arm} against {changes.base}, {format_list(platforms)}: {changes.meaning}",
        sides=(changes.base, changes.arm),
        changes=columns,
    )  # fmt: skip


def _line(cell: CellChange, metric: str, name: str, texts: tuple[str, ...], title: str) -> Line:
    base, value = cell.per_unit(metric)
    both = (format_per(base), format_per(value), format_signed(value - base))
    return Line(
        {**cell.case.document(), "metric": metric}, (name,), base, value,
        change_percent(base, value), (*both, *texts), cell.moved(metric), (title, ""),
    )  # fmt: skip


def _most(arms: int | None) -> int | None:
    return max(3, _CELLS // (2 * arms)) if arms else None


def _sentences(changes: Changes, hidden: int) -> Iterator[str]:
    """Return what the table does not say; `hidden` changed cells are not in it."""
    equal, chance = changes.of_kind("equal"), changes.of_kind("chance")
    if hidden:
        yield f"and {hidden:,} more cells changed: the report has them."
    if equal + chance and not changes.of_kind("changed"):
        yield "Nothing changed."
    if equal:
        judged = [w for metric, w in PATH.items() if any(metric in cell.figures for cell in equal)]
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
        cells = [cell for cell in changes.cells if metric in cell.figures]
        both = [
            (base.median, value.median)
            for cell in cells
            for base, value in [cell.figures[metric]]
            if not base.differs(value)
        ]
        changed = [100 * (value - base) / base for base, value in both if base and value != base]
        if changed:
            yield (
                f"{words} in {len(changed):,} of {format_number_of(len(both), 'cells')}, "
                f"from {min(changed):+.2f} % to {max(changed):+.2f} %"
            )


def _name(cell: CellChange) -> str:
    return cell_name(cell.case.experiment, cell.case.params)


def compared_in_settings(
    matrix: Matrix, profiled: Sequence[Case], arms: int | None = None
) -> Comparison:
    """Return what got worse, what got better and what did not move, in settings.

    It has few lines if the tables of `arms` share a terminal. `profiled` are the cells that ran
    again with counts by function. A line is a case in the setting that moves it most; if its
    instructions did not move, it names the count that did.
    """
    changes, lines, hidden = matrix.changes, list[Line](), list[str]()
    sides = (("worse", matrix.worse), ("better", matrix.better))
    for side, moved in sides:
        shown = moved[: _most(arms)]
        if len(moved) > len(shown):
            hidden.append(f"{format_number_of(len(moved) - len(shown), 'more cells')} got {side}")
        lines += [
            _setting_line(case, f"{side}, {UNITS[unit]}")
            for unit in dict.fromkeys(case.most.unit for case in shown)
            for case in shown
            if case.most.unit == unit
        ]
    notes = [f"and {', '.join(hidden)}: --json has them."] if hidden else []
    if matrix.still:
        still = [cell_name(case.experiment, case.params) for case in matrix.still]
        notes.append(f"Did not move in any setting: {format_list(still, most=12)}.")
    if names := [name for name in matrix.settings if name]:
        notes.append(f"Settings: {PLAIN}, {format_list(names, most=len(names))}.")
    number = format_number_of(len(matrix.settings), "settings")
    columns = ("change", "of all", PLAIN, "settings", "most in")
    return Comparison(
        COMPARABLE,
        tuple(f"{side.title()}: {_headline(moved, changes, profiled)}" for side, moved in sides),
        (), (), tuple(lines),
        notes=tuple(notes),
        title=f"{changes.arm} against {changes.base} in {number}: {changes.meaning}",
        sides=(changes.base, changes.arm),
        changes=dict.fromkeys((title for line in lines for title in line.group[:1]), columns),
        words=1,
    )  # fmt: skip


def _setting_line(case: MovedCase, title: str) -> Line:
    cell, bare = case.most, case.plain
    metric = cell.decisive
    name = _name(cell) + ("" if metric == INSTRUCTIONS else f", {JUDGED[metric]}")
    texts = (
        format_change(change_percent(*cell.per_unit(metric))),
        format_signed(bare.change(metric)) if bare and metric in bare.figures else "-",
        f"{len(case.cells)} of {case.of}",
        cell.case.platform.setting or PLAIN,
    )
    return _line(cell, metric, name, texts, title)


def _headline(moved: Sequence[MovedCase], changes: Changes, profiled: Sequence[Case]) -> str:
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
        "change_percent": cell.percent if INSTRUCTIONS in cell.figures else None,
        "faults": cell.figures[FAULTS][0].median or None if FAULTS in cell.figures else None,
        "per": cell.unit,
        "units": cell.units,
        "counts": {
            metric: {_key(cell.base): base.median, "arm": value.median, "chance": base.noise}
            for metric, (base, value) in cell.figures.items()
        },
    }


_WIDTH = 72
_LIMITS = (
    "These are counts of an emulated CPU, and counts are not times. They do not show what waits "
    "for memory, for a lock or for another CPU, what a CPU predicts or runs ahead, or how long a "
    "barrier or a TLB invalidation takes. Cache misses are those of a model with LRU replacement "
    "and without prefetching; they also change when code moves."
)


def reply(
    dataset: Dataset,
    tried: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
    options: Sequence[str],
) -> str:
    """Return the text of a mail about what the arms of `tried` change.

    `profiled` has by arm the cells that ran again with counts by function.
    `options` are those that select what ran, without the arms.
    """
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, highlight=False, color_system=None)
    for changes in tried:
        print_comparison(compared_arms(changes), console)
        cases = profiled.get(changes.arm, ())
        print_tables(function_tables(cases, changes.base, changes.arm), console)
        console.print()
    names = {name for changes in tried for name in (changes.base, changes.arm)}
    arms = [arm for name, arm in dataset.catalog.arms.items() if arm.tried and name in names]
    words = ["firsttouch", "try", *(word for arm in arms for word in _options(arm)), *options]
    lines = [
        *_wrapped(text.getvalue()), "To repeat it:", *_command(words), "",
        *_wrapped("\n".join(_made(dataset))), "", *textwrap.wrap(_LIMITS, _WIDTH),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> Iterator[str]:
    """Return lines without blanks at their ends; those that are too long go on below."""
    for line in text.splitlines():
        yield from textwrap.wrap(
            line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]


def _options(arm: Arm) -> Sequence[str]:
    """Return the options that make an arm; its files have their names alone, as in a mail."""
    kernel = replace(
        arm.kernel,
        patches=tuple(Path(file.name) for file in arm.kernel.patches),
        fragments=tuple(Path(file.name) for file in arm.kernel.fragments),
    )
    words = replace(arm, kernel=kernel).options()
    return words[2:] if arm.name == UNNAMED else words


def _command(words: Sequence[str]) -> Iterator[str]:
    """Return a shell command as lines that can be pasted together; options keep their values."""
    parts: list[str] = []
    for word in words:
        if parts and not word.startswith("--") and parts[-1].startswith("--"):
            parts[-1] += f" {shlex.quote(word)}"
        else:
            parts.append(shlex.quote(word))
    line = " "
    for part in parts:
        if len(line) + len(part) > _WIDTH - len("  \\") and line.strip():
            yield f"{line} \\"
            line = "   "
        line = f"{line} {part}"
    yield line


def _made(dataset: Dataset) -> Iterator[str]:
    """Return with what the figures were made: sources, files that were tried, and tools."""
    results = dataset.results()
    for release in sorted({result.provenance.kernel_version for result in results}):
        yield f"{BASE}: Linux {release}"
    files = {
        name: digest
        for result in results
        for name, digest in result.provenance.digests.items()
        if name.startswith(("patch ", "fragment "))
    }
    yield from (f"{name}: SHA-256 {digest[:16]}" for name, digest in files.items())
    for what in ("qemu", "compiler"):
        tools = {str(getattr(result.provenance, what)) for result in results}
        yield from (tool.replace("emulator version ", "") for tool in sorted(tools))
