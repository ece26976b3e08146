# SPDX-License-Identifier: GPL-2.0
"""The mappings that a process's last faults were in: most faults are in one of two."""

from __future__ import annotations

from typing import NamedTuple

from firsttouch.trace.blocks import Limits
from firsttouch.trace.events import Mapped
from firsttouch.trace.instructions import Access
from firsttouch.trace.kinds import kind_of
from firsttouch.trace.spaces import HEAP, MOVED, PROT_EXEC, Space, is_anonymous


class Area(NamedTuple):
    """What is mapped from an address to another, and what its faults have in common.

    `data` is anonymous memory that is not code, and `written` the kind of a write to a page of
    it that had no fault before. Where no mapping is recorded, it has the page of one fault, and
    no address; `missing` if nothing can be mapped there.
    """

    start: int
    end: int
    mapping: Mapped | None
    anonymous: bool
    data: bool
    limits: Limits
    written: int
    missing: bool = False


class Areas:
    """The areas of a space in which its last faults were; `page` is a page's size in bytes."""

    def __init__(self, space: Space, page: int) -> None:
        # Whether each call is recorded that maps memory or moves it.
        self.whole = False
        self._space = space
        self._page = page
        self.forget()

    def forget(self) -> None:
        """Take the space for changed."""
        self._last = self._before = _NONE

    def at(self, address: int, *, user: bool = True) -> Area:
        """Return the area of an address, for a fault of the program or else of the kernel."""
        area = self._last
        if not area.start <= address < area.end:
            area, self._before = self._before, area
            if not area.start <= address < area.end:
                area = self._find(address, user)
            self._last = area
        return area

    def _find(self, address: int, user: bool) -> Area:
        mapping = self._space.at(address)
        # What exec maps is recorded after the kernel's faults there.
        nowhere = user and (mapping is None or mapping.path == MOVED)
        if nowhere and (self.whole or address < _LOWEST):
            return _NONE._replace(data=False, missing=True)
        anonymous = is_anonymous(mapping)
        page = address // self._page
        limits = Limits(page, page + 1)
        start = end = address
        if mapping:
            # A stack grows below what is recorded.
            mapping = mapping._replace(start=min(mapping.start, address))
            start, end = mapping.start, mapping.end
            limits = Limits(start // self._page, end // self._page, mapping.path == HEAP)
        written = kind_of(
            Access.WRITE, 0, mapping, user=True, anonymous=anonymous, before=False, forked=False
        )
        data = anonymous and not (mapping and mapping.prot & PROT_EXEC)
        return Area(start, end, mapping, anonymous, data, limits, written)


# vm.mmap_min_addr, its usual value.
_LOWEST = 65536
_NONE = Area(0, 0, None, True, True, Limits(0, 0), 0)
