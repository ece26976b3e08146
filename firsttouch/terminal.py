# SPDX-License-Identifier: GPL-2.0
"""What Ctrl-C and SIGTERM do. It imports almost nothing, so that it takes effect at once."""

from __future__ import annotations

import os
import signal

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def leave_on_signals() -> None:
    """From now on a signal ends the process at once: nothing needs to be cleaned up."""
    for number in _NUMBERS:
        signal.signal(number, _leave)


def interrupt_on_signals() -> None:
    """From now on the first signal raises KeyboardInterrupt(number); a second ends the process."""
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def _leave(number: int, _frame: object) -> None:
    try:
        os.write(2, b"firsttouch: interrupted.\n")
    finally:
        os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> None:
    leave_on_signals()
    raise KeyboardInterrupt(number)
