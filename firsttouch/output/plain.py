# SPDX-License-Identifier: GPL-2.0
"""Text and tables for the terminal in which nothing that is printed is taken for markup."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text


def plain(words: str, style: str = "") -> Text:
    """Return `words` as they are, without what a terminal would act on."""
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words),
                style=style)  # fmt: skip


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
