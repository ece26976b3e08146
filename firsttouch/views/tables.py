# SPDX-License-Identifier: GPL-2.0
"""A Table is what every view prints; the terminal, Markdown, CSV and HTML are its printers.

Results may come from others: no printer lets markup or terminal escapes in them take effect.
"""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup, escape
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from firsttouch.quantities import format_number_of
from firsttouch.views.terminal import heading, plain

_SHORTEST = 20
# What begins the cells of a column of verdicts: their sign, and their colour on the terminal.
_VERDICTS: Mapping[str, tuple[str, str]] = {
    "reproduced": ("✓", "green"),
    "exceeded": ("▲", "green"),
    "not reproduced": ("✗", "red"),
    "cannot be judged by counts": ("-", "dim"),
}


@dataclass(frozen=True)
class Table:
    """Rows of text under a head.

    The first `names` columns and the last `more` are words, those between are figures. `wraps`
    has the smallest width of each column whose words may wrap. `about` follows the title.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    about: str = ""
    names: int = 1
    more: int = 0
    wraps: Mapping[int, int] = field(default_factory=dict)

    @property
    def figures(self) -> range:
        return range(self.names, len(self.head) - self.more)

    def most(self, rows: int | None) -> Table:
        """Return the table with its first rows, and a note that counts the others."""
        left = len(self.rows) - len(self.rows[:rows])
        note = f"and {format_number_of(left, 'more rows')}" if left else self.note
        return replace(self, rows=self.rows[:rows], note=note)


def print_table(table: Table, console: Console) -> None:
    """Print a table; if it is too wide, its first names above the others, or a line for a row.

    No number is ever cut or broken.
    """
    if table.title:
        console.print(heading(table.title, table.about))
    nested = [_nested(table)] if table.names > 1 and any(row[1] for row in table.rows) else []
    forms = [(form, gap) for form in (_blanked(table), *nested) for gap in (2, 1)]
    fitting = next((each for each in forms if _width(*each) <= console.width), None)
    if fitting and table.rows:
        with console.capture() as printed:
            console.print(_filled(*fitting))
        for line in printed.get().splitlines():
            console.print(Text.from_ansi(line.rstrip()), soft_wrap=True)
    elif table.rows:
        form, _ = forms[-1]
        if not table.title and form.head[0]:
            console.print(plain(table.head[0]))
        # The terminal itself wraps a line that is still too long.
        for line in _lines(form, max(console.width, _SHORTEST)):
            console.print(plain(line), soft_wrap=True)
    if table.note:
        console.print(plain(table.note, "dim"))


def print_tables(tables: Iterable[Table], console: Console) -> None:
    for table in tables:
        console.print()
        print_table(table, console)


def _filled(table: Table, gap: int) -> RichTable:
    filled = RichTable(box=None, padding=(0, gap, 0, 0), header_style="dim")
    for place, head in enumerate(table.head):
        filled.add_column(
            plain(head),
            justify="right" if place in table.figures else "left",
            no_wrap=place not in table.wraps,
            min_width=table.wraps.get(place),
        )
    for row in table.rows:
        filled.add_row(*(plain(cell, _style(cell)) for cell in row))
    return filled


def _width(table: Table, gap: int) -> int:
    """Return the smallest width of a table, if only the columns that may wrap do so."""
    width = 0
    for place, cells in enumerate(zip(table.head, *table.rows, strict=True)):
        wraps = table.wraps.get(place, 0)
        texts = [word for cell in cells for word in (cell.split() if wraps else [cell])]
        width += gap + max(wraps, *(cell_len(plain(text).plain) for text in texts), 0)
    return width


def _lines(table: Table, width: int) -> Iterator[str]:
    """Yield each row as lines: its names, then its figures, each after its column's head."""
    for row in table.rows:
        names = " ".join(filter(None, row[: table.names]))
        if names.strip():
            yield from textwrap.wrap(names, width)
        items = [
            f"{table.head[place]} {cell}".strip() if place in table.figures else cell
            for place, cell in enumerate(row)
            if cell and place >= table.names
        ]
        indent = "  " + " " * (len(names) - len(names.lstrip()))
        # Nothing is broken within an item.
        text = "  ".join(item.replace(" ", "\0") for item in items)
        wrapped = textwrap.wrap(
            text, width, initial_indent=indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        yield from (line.replace("\0", " ") for line in wrapped)


def _blanked(table: Table) -> Table:
    """Leave out a first name that is that of the row above, if other names follow it."""
    if table.names == 1:
        return table
    firsts = ["", *(row[0] for row in table.rows)]
    rows = [
        ("" if row[0] == last else row[0], *row[1:])
        for last, row in zip(firsts, table.rows, strict=False)
    ]
    return replace(table, rows=tuple(rows))


def _nested(table: Table) -> Table:
    """Put each first name on a line of its own, above the rows that have it."""
    rows: list[Sequence[str]] = []
    last = ""
    for first, second, *others in table.rows:
        if first != last:
            rows.append((first, *("" for _ in others)))
        rows.append((f"  {second}", *others))
        last = first
    wraps = {column - 1: width for column, width in table.wraps.items() if column}
    return replace(table, head=table.head[1:], rows=tuple(rows), names=table.names - 1, wraps=wraps)


def _verdict(cell: str) -> str:
    return next((verdict for verdict in _VERDICTS if cell.startswith(verdict)), "")


def _style(cell: str) -> str:
    return _VERDICTS[verdict][1] if (verdict := _verdict(cell)) else ""


def markdown(table: Table) -> Iterator[str]:
    """Return the lines of a table in Markdown, without title and note."""
    yield _line(table.head)
    yield _line("---:" if column in table.figures else "---" for column in range(len(table.head)))
    yield from map(_line, table.rows)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(markdown_cell, cells)) + " |"


def markdown_cell(text: str) -> str:
    """Return text escaped for a cell: it ends no cell and no line, and has no HTML."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def as_csv(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.head, *table.rows])
    return text.getvalue()


def as_html(table: Table) -> Markup:
    """Return a table as an element; on a narrow screen its rows are cards."""
    figures = table.figures
    heads = (
        Markup('<th scope="col"{}>{}</th>').format(_number(column in figures), _broken(head))
        for column, head in enumerate(table.head)
    )
    rows = (
        Markup("<tr>{}</tr>\n").format(
            Markup("").join(
                _cell(table.head[column], cell, number=column in figures)
                if column
                else Markup('<th scope="row">{}</th>').format(_broken(cell))
                for column, cell in enumerate(row)
            )
        )
        for row in table.rows
    )
    title = f"{table.title} {table.about}".strip()
    return Markup(
        '<table class="cards">\n{}<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n{}'
    ).format(
        Markup("<caption>{}</caption>\n").format(title) if title else "",
        Markup("").join(heads),
        Markup("").join(rows),
        Markup('<p class="dim">{}</p>\n').format(table.note) if table.note else "",
    )


def _cell(head: str, cell: str, *, number: bool) -> Markup:
    if not cell:
        return Markup("<td></td>")
    if verdict := _verdict(cell):
        return Markup(
            '<td data-label="{}" class="verdict v-{}"><span><span aria-hidden="true">{}</span> {}'
            "</span></td>"
        ).format(head, verdict.replace(" ", "-"), _VERDICTS[verdict][0], cell)
    return Markup('<td data-label="{}"{}>{}</td>').format(head, _number(number), _broken(cell))


def html_command(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def _number(number: bool) -> Markup:
    return Markup(' class="n"') if number else Markup("")


def _broken(text: str) -> Markup:
    """Return a command, or a name that breaks across lines after an underscore."""
    if text.startswith("firsttouch "):
        return html_command(text)
    return Markup("_<wbr>").join(text.split("_")) if " " not in text else escape(text)
