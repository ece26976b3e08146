# SPDX-License-Identifier: GPL-2.0
"""What an arm changes, as a Comparison of the cells that cost more and less.

Also that as JSON, and as a mail in 72 columns: figures, and how to repeat them.
"""

from __future__ import annotations

import io
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from firsttouch.analysis.changes import (
    FAULTS,
    INSTRUCTIONS,
    JUDGED,
    PATH,
    CellChange,
    Changes,
)
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_change, format_list, format_number_of
from firsttouch.tables import Json
from firsttouch.views.comparison import Comparison, Line, print_comparison
from firsttouch.views.profile import (
    UNITS,
    changed_in,
    format_per,
    format_signed,
    function_tables,
)
from firsttouch.views.rows import cell_name, facts_of
from firsttouch.views.tables import print_tables

SCHEMA = 1
# Lines of the tables of cells, which all arms share.
_CELLS = 12
# What stands for no setting.
PLAIN = "as it is"
_MORE, _LESS = "costs more", "costs less"


def compared_arms(changes: Changes, arms: int | None = None) -> Comparison:
    """Return what an arm changes; with few lines if the tables of `arms` share a terminal.

    Each table has the kernel instructions of its cells in their unit, and each count's change. A
    count that changes in none of the cells, but by noise, has no column. A cell that ran in several
    settings has one line on each side, of the setting in which it changes most.
    """
    platforms = {cell.case.platform for cell in changes.cells}
    settings = sorted({platform.setting for platform in platforms})
    lines, columns, hidden = list[Line](), dict[str, tuple[str, ...]](), 0
    for side, more in ((_MORE, True), (_LESS, False)):
        by_cell: dict[str, list[CellChange]] = {}
        for cell in changes.changed(more=more):
            where = "" if len(settings) > 1 else cell.case.platform
            by_cell.setdefault(f"{_name(cell)} {where}", []).append(cell)
        every = [(cells[0], len(cells)) for cells in by_cell.values()]
        shown = every[: max(3, _CELLS // (2 * arms)) if arms else None]
        hidden += len(every) - len(shown)
        for unit in dict.fromkeys(cell.unit for cell, _ in shown):
            alike = [(cell, times) for cell, times in shown if cell.unit == unit]
            others = [
                metric
                for metric in JUDGED
                if metric != INSTRUCTIONS and any(cell.moved(metric) for cell, _ in alike)
            ]
            title = f"{side}, {UNITS[unit]}"
            heads = ["settings"] * (len(settings) > 1)
            columns[title] = ("change", "relative", *(JUDGED[metric] for metric in others), *heads)
            for cell, times in alike:
                platform = cell.case.platform
                where = f", {platform}" if len(platforms) > 1 else ""
                if len(settings) > 1:
                    where = f", {platform.setting or PLAIN}"
                noise = not cell.weight and cell.percent
                texts = (
                    "noise" if noise else format_change(cell.percent),
                    *(
                        format_signed(cell.change(metric)) if metric in cell.figures else "-"
                        for metric in others
                    ),
                    *(f"{times} of {len(settings)}" for _ in heads),
                )
                lines.append(_line(cell, f"{_name(cell)}{where}", texts, title))
    where = (
        f"{len(settings)} settings"
        if len(settings) > 1
        else format_list(sorted(map(str, platforms)))
    )
    return Comparison(
        (), (), (), tuple(lines),
        notes=tuple(_sentences(changes, hidden)),
        title=f"{changes.arm} against {BASE}, {where}: {changes.meaning}",
        sides=(BASE, changes.arm),
        changes=columns,
    )  # fmt: skip


def _line(cell: CellChange, name: str, texts: tuple[str, ...], title: str) -> Line:
    base, value = cell.per_unit(INSTRUCTIONS)
    both = (format_per(base), format_per(value), format_signed(value - base))
    return Line(
        {**cell.case.document(), "metric": INSTRUCTIONS}, (name,), base, value,
        change_percent(base, value), (*both, *texts), cell.moved(INSTRUCTIONS), (title, ""),
    )  # fmt: skip


def _sentences(changes: Changes, hidden: int) -> Iterator[str]:
    """Return what the table does not say; `hidden` changed cells are not in it."""
    equal, chance = changes.of_kind("equal"), changes.of_kind("chance")
    if hidden:
        yield f"{format_number_of(hidden, 'more cells')} changed: see the report."
    if equal + chance and not changes.of_kind("changed"):
        yield "Nothing changed."
    if equal:
        judged = [w for metric, w in PATH.items() if any(metric in cell.figures for cell in equal)]
        words = format_list(judged, most=len(PATH))
        yield f"{words[0].upper()}{words[1:]} are equal in {_cells(equal)}."
    if chance:
        yield f"Within noise (stock booted twice differs as much): {_cells(chance)}."
    if left := changes.of_kind("not judged"):
        yield f"Not judged, because they count no instructions: {_cells(left)}."


def _cells(cells: Sequence[CellChange]) -> str:
    names = sorted({cell.case.experiment.name for cell in cells})
    return f"{format_number_of(len(cells), 'cells')} of {format_list(names, most=12)}"


def _name(cell: CellChange) -> str:
    return cell_name(cell.case.experiment, cell.case.params)


def changes_document(
    tried: Sequence[Changes], profiled: Mapping[str, Sequence[Case]]
) -> dict[str, Json]:
    """Return what arms change as one JSON object; counts are those of whole cells.

    `profiled` has the cells that each arm ran again with counts by function;
    the functions that changed have their instructions per fault or operation of stock.
    """
    return {
        "schema": SCHEMA,
        "arms": [
            {
                "arm": changes.arm,
                "tried": changes.meaning,
                "changed": bool(changes.of_kind("changed")),
                "cells": [_cell_document(cell) for cell in changes.cells],
                "functions": [
                    {"cell": cell_name(case.experiment, case.params), "function": row.function,
                     BASE: row.values[BASE], "arm": row.values[changes.arm]}
                    for case in profiled.get(changes.arm, ())
                    for row in changed_in(case, changes.arm)
                ],
            }
            for changes in tried
        ],
    }  # fmt: skip


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
            metric: {BASE: base.median, "arm": value.median, "chance": base.noise}
            for metric, (base, value) in cell.figures.items()
        },
    }


_WIDTH = 72
_LIMITS = (
    "These are counts of an emulated CPU, not times. They do not show memory latency, lock "
    "contention, speculation, or the latency of barriers and TLB invalidations. Cache misses come "
    "from a model with LRU replacement and no prefetching, and also change when code moves."
)


def reply(
    dataset: Dataset,
    tried: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
    argv: Sequence[str],
) -> str:
    """Return the text of a mail about what the arms of `tried` change.

    `profiled` has by arm the cells that ran again with counts by function.
    `argv` asked for it.
    """
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, highlight=False, color_system=None)
    for changes in tried:
        print_comparison(compared_arms(changes), console)
        cases = profiled.get(changes.arm, ())
        print_tables(function_tables(cases, changes.arm), console)
        console.print()
    words = ["firsttouch", *(word for word in argv if word != "--reply")]
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


def _command(words: Sequence[str]) -> Iterator[str]:
    """Return a shell command as lines that can be pasted together."""
    text = " ".join(shlex.quote(word).replace(" ", "\0") for word in words)
    lines = textwrap.wrap(
        text, _WIDTH - 2, initial_indent="  ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    yield from (f"{line} \\".replace("\0", " ") for line in lines[:-1])
    yield lines[-1].replace("\0", " ")


def _made(dataset: Dataset) -> Iterator[str]:
    every = [facts_of(result.provenance) for result in dataset.results()]
    yield from sorted({f"{BASE}: Linux {facts['kernel']}" for facts in every})
    files = {
        name: digest
        for facts in every
        for name, digest in facts.items()
        if name.startswith(("patch ", "fragment "))
    }
    yield from (f"{name}: SHA-256 {digest[:16]}" for name, digest in files.items())
    yield from sorted({f"QEMU {facts['QEMU']}" for facts in every})
    yield from sorted({facts["compiler"] for facts in every})
