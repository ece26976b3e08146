# SPDX-License-Identifier: GPL-2.0
"""What can go wrong, by who can fix it.

Each message is one sentence that says what to do. A build or a guest that
fails carries the lines that show why besides.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FirsttouchError(Exception):
    """Root of all errors that are reported without a traceback."""

    exit_status = 2

    def __init__(self, message: str, detail: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.detail = list(detail)


class UserError(FirsttouchError):
    """The request cannot be carried out as it was put; the user can fix it."""


class HostError(FirsttouchError):
    """This host lacks something: a tool, space, a package."""


class BuildError(FirsttouchError):
    """A kernel or a program did not build; `detail` holds the compiler's errors."""

    exit_status = 1


class GuestError(FirsttouchError):
    """A guest failed, or what it measured cannot be trusted; `detail` is its log's end."""

    exit_status = 1


def nearest(name: str, known: Iterable[str], preferred: str = "") -> str:
    """Say which of `known` the unknown `name` was probably meant to be.

    Returns the tail of an error sentence: the nearest name, or all of them.
    Of several names that are equally near, `preferred` is the one.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close and preferred in names and _likeness(name, preferred) == _likeness(name, close[0]):
        close = [preferred]
    if close:
        return f"did you mean {close[0]!r}?"
    return "known are " + ", ".join(names) + "."


def _likeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, name).ratio()
