# SPDX-License-Identifier: GPL-2.0
"""What a kernel's build prints: how far it is, and what went wrong."""

from __future__ import annotations

import re
from collections import deque

from firsttouch.progress import Step

# make names each object that it builds: "  CC      mm/memory.o".
_OBJECT = re.compile(r"  [A-Z0-9]+(?: \[M\])? +\S+\.o$")
_ERROR = re.compile(
    r"error:|Error \d|\*\*\*|undefined reference|ld: |: multiple definition"
    r"|No space left on device"
)


def follow_make(line: str, step: Step, errors: deque[str]) -> None:
    """Take a line that make printed: an object is a step further, a message an error."""
    if _OBJECT.match(line):
        step.advance()
    elif _ERROR.search(line):
        errors.append(line.rstrip())
