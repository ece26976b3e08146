# SPDX-License-Identifier: GPL-2.0
"""Remembers who gave back pages, until they are there again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from firsttouch.trace.blocks import Limits, blocks_of


class Giver(NamedTuple):
    """A system call by its name, and the index of the chain of calls that made it."""

    stack: int
    call: str


class Givers:
    """Of a process: who gave back what, by block."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._given: dict[int, list[tuple[int, Giver]]] = {}

    def __bool__(self) -> bool:
        """Tell whether anything was given back."""
        return bool(self._given)

    def give_back(self, limits: Limits, touched: Mapping[int, int], giver: Giver) -> None:
        """Take what was `touched`, by block, between limits for given back."""
        for block, pages in blocks_of(limits, self._block, touched):
            gone = pages & touched[block]
            before = [(had & ~gone, other) for had, other in self._given.get(block, ())]
            self._given[block] = [entry for entry in (*before, (gone, giver)) if entry[0]]

    def take(self, block: int, bit: int) -> Giver | None:
        """Return who gave back a page, which is there again."""
        entries = self._given.get(block, [])
        for number, (pages, giver) in enumerate(entries):
            if pages & bit:
                entries[number] = pages ^ bit, giver
                return giver
        return None
