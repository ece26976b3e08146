# SPDX-License-Identifier: GPL-2.0
"""The command line: a file for each command or two, with its options and its code."""

from __future__ import annotations

import argparse
from typing import TypeVar

_P = TypeVar("_P", bound=argparse.ArgumentParser)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps descriptions, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def add_command(commands: argparse._SubParsersAction[_P], name: str, line: str) -> _P:
    """Add a command; `line` is also its description, unless it gets another one."""
    description = f"{line[0].upper()}{line[1:]}."
    return commands.add_parser(name, help=line, description=description, formatter_class=_Formatter)
