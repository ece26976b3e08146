# SPDX-License-Identifier: GPL-2.0
"""What Ctrl-C and SIGTERM do, and text that the terminal's encoding lacks.

It imports almost nothing, so that it takes effect at once.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# The name of the error handler, for streams too.
ERRORS = "firsttouch"
# What the project itself prints, in ASCII. Of what others wrote, a question mark is left.
_ASCII = {"±": "+-", "≈": "~"}
_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def leave_on_signals() -> None:
    """From now on a signal ends the process at once: nothing needs to be cleaned up."""
    for number in _NUMBERS:
        signal.signal(number, _leave)


def interrupt_on_signals() -> None:
    """From now on the first signal raises KeyboardInterrupt(number); a second ends the process."""
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def _leave(number: int, _frame: object) -> NoReturn:
    try:
        os.write(2, b"firsttouch: interrupted.\n")
    finally:
        os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> NoReturn:
    leave_on_signals()
    raise KeyboardInterrupt(number)


def spelled(text: str) -> str:
    """Return `text` as standard output will have it: spelled before it is laid out in columns."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, ERRORS).decode(encoding)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in missing), error.end


codecs.register_error(ERRORS, _in_ascii)
