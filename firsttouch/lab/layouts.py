# SPDX-License-Identifier: GPL-2.0
"""Layouts: arrangements of kernel and program in memory that ought not to matter.

One layout gives one exact number. Layout 0 is the guest as it is. Any other is
the same guest but for what its number decides here, the same on every host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from firsttouch.building.programs import ORDERS
from firsttouch.errors import UserError
from firsttouch.files import digest_bytes
from firsttouch.vm.guest import KASLR_SEED

# The largest paddings, in bytes. arm64's command line has 2,048 bytes, of which an arm needs some
# hundreds.
_LINE, _ENVIRONMENT = 512, 1024
# More would be a slip of the hand.
_MOST = 10_000


@dataclass(frozen=True)
class Layout:
    """What differs in the guests of a layout.

    `words` are for the kernel's command line. A name with a dot pads that line
    alone: the kernel takes it for a parameter of a module. Without a dot it
    becomes init's environment, which init hands to its commands. `kaslr_seed`
    decides where the kernel's image and its linear map are in virtual memory.
    `order` is the order in which ftbench's objects are linked, less than
    `ORDERS`.
    """

    words: tuple[str, ...] = ()
    kaslr_seed: int = KASLR_SEED
    order: int = 0


def layout_of(number: int) -> Layout:
    """Return the layout of a number; that of 0 changes nothing."""
    if not number:
        return Layout()
    seed = bytes.fromhex(digest_bytes(f"layout {number}".encode()))
    line, environment = int.from_bytes(seed[:2]), int.from_bytes(seed[2:4])
    words = (
        f"layout.padding={'x' * (line % _LINE)}",
        f"LAYOUT={'x' * (environment % _ENVIRONMENT)}",
    )
    # The kernel takes 0 for no seed.
    return Layout(words, int.from_bytes(seed[8:16]) or 1, number % ORDERS)


def parse_layouts(text: str) -> tuple[int, ...]:
    """Return the layouts that ``--layouts`` asks for: ``20`` the first 20, ``20-99`` these.

    Raises UserError, which says what to give, for anything else.
    """
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6})", text)
    if match:
        first, last = int(match[1] or 0), int(match[2]) - (match[1] is None)
        if first <= last < _MOST:
            return tuple(range(first, last + 1))
    raise UserError(
        f"--layouts {text}: give how many, such as 20, or the first and the last, such as 20-99; "
        f"there are {_MOST:,}."
    )
