# SPDX-License-Identifier: GPL-2.0
"""Places in the words of a program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

# The object of code that is in no file.
JIT = "[JIT]"
# What a C++ compiler calls a namespace that has no name.
_NAMELESS = "(anonymous namespace)::"
# What is before the arguments of a template or a generic: the end of its name.
_NAMED = re.compile(r"(?<!\boperator)(?<=\w)<")
_BRACKETS = re.compile(r"->|[<>]")


@dataclass(frozen=True)
class Location:
    """A place in the words of the program; "" and 0 for what is not known.

    `object` is the path of the file, or `JIT`.
    """

    object: str
    offset: int
    function: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return function, file and line, as far as they are known."""
        name = shortened(self.function) or f"{PurePath(self.object).name}+{self.offset:#x}"
        return f"{name} ({PurePath(self.file).name}:{self.line})" if self.line else name


def is_nameless(location: Location) -> bool:
    """Tell whether a place is in no file, and no JIT compiler named it."""
    return location.object == JIT and not location.function


def shortened(function: str) -> str:
    """Return the name of a function without the arguments of its templates, as ``f<>``."""
    name = function.replace(_NAMELESS, "")
    begin = _NAMED.search(name)
    while begin:
        end = _closing(name, begin.start())
        if not end:
            return name
        name = f"{name[: begin.end()]}{name[end - 1 :]}"
        begin = _NAMED.search(name, begin.end() + 1)
    return name


def _closing(name: str, start: int) -> int:
    """Return where the bracket at `start` has ended; 0 if it does not."""
    depth = 0
    for bracket in _BRACKETS.finditer(name, start):
        depth += {"<": 1, ">": -1}.get(bracket[0], 0)
        if depth == 0:
            return bracket.end()
    return 0
