# SPDX-License-Identifier: GPL-2.0
"""Consoles: where text for people goes, in colour on a terminal that wants it."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class PipeConsole(Console):
    """A console that leaves it to the command what a reader who has gone means."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, as writing without rich does."""
        raise BrokenPipeError
