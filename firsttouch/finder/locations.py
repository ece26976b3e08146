# SPDX-License-Identifier: GPL-2.0
"""Places in the words of a program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

# The object of code that is in no file.
JIT = "[JIT]"


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
        name = self.function or f"{PurePath(self.object).name}+{self.offset:#x}"
        return f"{name} ({PurePath(self.file).name}:{self.line})" if self.line else name


def is_nameless(location: Location) -> bool:
    """Tell whether a place is in no file, and no JIT compiler named it."""
    return location.object == JIT and not location.function
