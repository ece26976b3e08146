# SPDX-License-Identifier: GPL-2.0
"""Text where the terminal's encoding lacks some of its characters."""

from __future__ import annotations

import codecs
import sys

# The name of the error handler, for streams too.
ERRORS = "firsttouch"
# What the project itself prints, in ASCII. Of what others wrote, a question mark is left.
_ASCII = {"±": "+-", "≈": "~"}


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
