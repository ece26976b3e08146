# SPDX-License-Identifier: GPL-2.0
"""Text for the terminal, without markup or terminal escapes from the data."""

from __future__ import annotations

import os

from rich.console import Console
from rich.text import Text

from firsttouch.progress import PipeConsole

_WIDTH = 100


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
    """Return `words` as text without markup.

    A replacement character stands for each control character.
    """
    printable = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
    return Text("".join(printable), style=style)


def heading(title: str, about: str = "") -> Text:
    text = plain(title, "bold")
    return Text.assemble(text, "  ", plain(about)) if about else text
