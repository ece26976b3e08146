# SPDX-License-Identifier: GPL-2.0
"""Text and tables for the terminal, without markup or terminal escapes from the data."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from firsttouch.progress import PipeConsole
from firsttouch.terminal import spelled

_WIDTH = 100

# Wraps text at words; its own width is not used.
_MEASURE = Console(width=100, highlight=False)
_SHORTEST = 20


def output_console(*, aside: bool = False) -> Console:
    """Return the console for results: at most 100 columns, plain text if it is not a terminal.

    COLUMNS sets the width, also when the output is not a terminal. It is
    standard output, or with `aside` standard error.
    """
    console = PipeConsole(highlight=False, stderr=aside)
    asked = os.environ.get("COLUMNS", "").isdigit()
    if console.width > _WIDTH or not (console.is_terminal or asked):
        console.width = _WIDTH
    return console


def plain(words: str, style: str = "") -> Text:
    """Return `words` as plain text that the terminal can show.

    A replacement character stands for each control character.
    """
    printable = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return Text(spelled("".join(printable)), style=style)


def heading(title: str, about: str = "") -> Text:
    text = plain(title, "bold")
    return Text.assemble(text, "  ", plain(about)) if about else text


def plain_table(
    names: Iterable[str], figures: Iterable[str], more: Iterable[str] = (), *, gap: int = 2
) -> Table:
    """Return an empty table: columns of names, then of figures, then of `more` names."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim")
    for name in names:
        table.add_column(plain(name), no_wrap=True)
    for name in figures:
        table.add_column(plain(name), justify="right", no_wrap=True)
    for name in more:
        table.add_column(plain(name), no_wrap=True)
    return table


def may_wrap(table: Table, column: int, narrowest: int = 12) -> None:
    """Let the words of a column wrap if the table is too wide.

    The column stays at least `narrowest` characters wide.
    """
    table.columns[column].no_wrap = False
    table.columns[column].min_width = narrowest


def fits(table: Table, console: Console) -> bool:
    """Tell whether a table fits on a console, if only columns that may wrap do so."""
    return sum(_narrowest(column) + table.padding[1] for column in table.columns) <= console.width


def _narrowest(column: Column) -> int:
    """Return the smallest width of a column: its longest cell, or its longest word if it wraps."""
    texts = [_words(cell).plain for cell in (column.header, *column.cells)]
    if not column.no_wrap:
        words = [word for text in texts for word in text.split()]
        return max(column.min_width or 0, *map(cell_len, words), 0)
    return max((cell_len(text) for text in texts), default=0)


def lines_of(table: Table, width: int) -> list[Text]:
    """Return each row as lines: its names, then its figures, each after its column's head."""
    lines: list[Text] = []
    cells = [[_words(cell) for cell in column.cells] for column in table.columns]
    heads = [_words(column.header).plain for column in table.columns]
    figures = [column.justify == "right" for column in table.columns]
    # Names to the right of the figures, such as a verdict, stay behind them.
    first = figures.index(True) if True in figures else len(figures)
    for row in zip(*cells, strict=True):
        names = Text(" ").join(cell for cell in row[:first] if cell.plain)
        if names.plain:
            lines += names.wrap(_MEASURE, max(width, _SHORTEST))
        indent = "  " + " " * (len(names.plain) - len(names.plain.lstrip()))
        line = Text(indent)
        for head, cell, figure in list(zip(heads, row, figures, strict=True))[first:]:
            if not cell.plain:
                continue
            item = Text.assemble(f"{head} ", cell) if figure and head else cell
            if line.plain.strip() and line.cell_len + 2 + item.cell_len > width:
                lines.append(line)
                line = Text(indent)
            line = Text.assemble(line, "  " if line.plain.strip() else "", item)
        if line.plain.strip():
            lines.append(line)
    return lines


def _words(cell: object) -> Text:
    return cell.copy() if isinstance(cell, Text) else plain(str(cell))
