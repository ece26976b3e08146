# SPDX-License-Identifier: GPL-2.0
"""The mappings that a process's last faults were in: most faults are in one of two."""

from __future__ import annotations

from typing import NamedTuple

from firsttouch.finder.accesses import Access
from firsttouch.finder.blocks import Limits
from firsttouch.finder.events import Mapped
from firsttouch.finder.kinds import kind_of
from firsttouch.finder.spaces import HEAP, MOVED, PROT_EXEC, Space, is_anonymous


class Area(NamedTuple):
    """What is mapped from an address to another, and what its faults have in common.

    `data` is anonymous memory that is not code, and `written` the kind of a write to a page of
    it that had no fault before. Where no mapping is recorded, it has the page of one fault, and
    no address.
    """

    start: int
    end: int
    mapping: Mapped | None
    anonymous: bool
    data: bool
    limits: Limits
    written: int


class Areas:
    """The areas of a space in which its last faults were; `page` is a page's size in bytes."""

    def __init__(self, space: Space, page: int) -> None:
        self._space = space
        self._page = page
        self.forget()

    def forget(self) -> None:
        """Take the space for changed."""
        self._last = self._before = _NONE

    def at(self, address: int) -> Area:
        """Return the area of an address."""
        area = self._last
        if not area.start <= address < area.end:
            area, self._before = self._before, area
            if not area.start <= address < area.end:
                area = self._find(address)
            self._last = area
        return area

    def _find(self, address: int) -> Area:
        mapping = self._space.at(address)
        anonymous = is_anonymous(mapping)
        page = address // self._page
        limits = Limits(page, page + 1)
        start = end = address
        if mapping:
            # A stack grows below what is recorded.
            mapping = mapping._replace(start=min(mapping.start, address))
            start, end = mapping.start, mapping.end
            heap, moved = mapping.path == HEAP, mapping.path == MOVED
            limits = Limits(start // self._page, end // self._page, heap, moved)
        written = kind_of(
            Access.WRITE, 0, mapping, user=True, anonymous=anonymous, before=False, forked=False
        )
        data = anonymous and not (mapping and mapping.prot & PROT_EXEC)
        return Area(start, end, mapping, anonymous, data, limits, written)


_NONE = Area(0, 0, None, True, True, Limits(0, 0), 0)
