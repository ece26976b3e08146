# SPDX-License-Identifier: GPL-2.0
"""Text for the terminal, without markup or terminal escapes from the data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from firsttouch.progress import PipeConsole

_WIDTH = 100


class _Output(PipeConsole):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Strip the blanks that end a line where a sentence wraps or a column is filled."""
        segments = super().render(renderable, options)
        if self.is_terminal:
            return segments
        text = "".join(segment.text for segment in segments if not segment.control)
        return [Segment(re.sub(" +\n", "\n", text))]


def output_console(*, aside: bool = False) -> Console:
    """Return the console for results: at most 100 columns, plain text if it is not a terminal.

    COLUMNS sets the width, also when the output is not a terminal. It is
    standard output, or with `aside` standard error.
    """
    console = _Output(highlight=False, stderr=aside)
    asked = os.environ.get("COLUMNS", "").strip("0").isdigit()
    if not 0 < console.width <= _WIDTH or not (console.is_terminal or asked):
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
