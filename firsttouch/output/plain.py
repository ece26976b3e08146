# SPDX-License-Identifier: GPL-2.0
"""Text and tables for the terminal in which nothing that is printed is taken for markup."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from firsttouch.spelling import spelled

# What wraps text by words, whatever the console that gets it.
_MEASURE = Console(width=100, highlight=False)
_SHORTEST = 20


def plain(words: str, style: str = "") -> Text:
    """Return `words` as they are, without what a terminal would act on or cannot show."""
    printable = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return Text(spelled("".join(printable)), style=style)


def heading(title: str, about: str = "") -> Text:
    """Return a heading, and what it is about behind it."""
    text = plain(title, "bold")
    return Text.assemble(text, "  ", plain(about)) if about else text


def plain_table(
    names: Iterable[str], figures: Iterable[str], more: Iterable[str] = (), *, gap: int = 2
) -> Table:
    """Return an empty table: columns of names, of figures, and of more names behind them."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim")
    for name in names:
        table.add_column(plain(name), no_wrap=True)
    for name in figures:
        table.add_column(plain(name), justify="right", no_wrap=True)
    for name in more:
        table.add_column(plain(name), no_wrap=True)
    return table


def may_wrap(table: Table, column: int, narrowest: int = 12) -> None:
    """Let the words of a column go to further lines where the table is too wide.

    It keeps room for `narrowest` characters, not to become a pillar of words.
    """
    table.columns[column].no_wrap = False
    table.columns[column].min_width = narrowest


def print_table(table: Table, console: Console) -> None:
    """Print a table; where the console is too narrow for it, its rows as lines.

    No number is cut or broken, however narrow the console is.
    """
    if fits(table, console):
        console.print(table)
        return
    for line in _as_lines(table, console.width):
        # What is longer than the console goes on in its next line.
        console.print(line, soft_wrap=True)


def fits(table: Table, console: Console) -> bool:
    """Tell whether a console has room for a table of which nothing but words is broken."""
    return sum(_narrowest(column) + table.padding[1] for column in table.columns) <= console.width


def _narrowest(column: Column) -> int:
    """Return how narrow a column may be: its longest line or, where that may wrap, some words."""
    texts = [_words(cell).plain for cell in (column.header, *column.cells)]
    if not column.no_wrap:
        words = [word for text in texts for word in text.split()]
        return max(column.min_width or 0, *map(cell_len, words), 0)
    return max((cell_len(text) for text in texts), default=0)


def _as_lines(table: Table, width: int) -> list[Text]:
    """Return each row as lines: its names, and below them its figures by their heads."""
    lines: list[Text] = []
    cells = [[_words(cell) for cell in column.cells] for column in table.columns]
    heads = [_words(column.header).plain for column in table.columns]
    figures = [column.justify == "right" for column in table.columns]
    # Names that stand behind the figures, such as a verdict, stay there.
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
