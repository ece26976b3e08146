# SPDX-License-Identifier: GPL-2.0
"""Errors, grouped by who can fix them.

Each message is one sentence that says what to do. The error of a failed build
or guest also carries the log lines that show why.
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
    """The request cannot be carried out; the user can fix it."""


class HostError(FirsttouchError):
    """This host lacks something: a tool, space, a package."""


class BuildError(FirsttouchError):
    exit_status = 1


class GuestError(FirsttouchError):
    """A guest failed, or its figures cannot be trusted; `detail` is the end of its log."""

    exit_status = 1


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of a message about the unknown `name`: the nearest of `names`, or all."""
    ordered = sorted(names)
    close = difflib.get_close_matches(name, ordered, n=1)
    return f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(ordered)}."
