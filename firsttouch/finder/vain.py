# SPDX-License-Identifier: GPL-2.0
"""Pages in vain: upgraded read faults got them, and the program never wrote to them.

A recording tells which faults were upgraded. The modelled PMU watched which pages
were written (pmu/pages.h). Both number the faults at an address, of all processes,
in order. Where the two count differently, the page stays unsure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from firsttouch.finder.found import Found

# What the PMU watches, bytes, and how many of them a huge page has.
UNIT = 4096
_HUGE = 512


class Page(NamedTuple):
    """A physical page at a virtual address, from a fault there to the next; both are numbers.

    `fault` says which fault at the address began it, from 1; 0 if it was there
    without one, such as a page that mremap(2) moved. `faults` counts those at the
    address so far. `written` is None if that is not known. `physical` is None for a
    write by DC ZVA of which only the virtual address is known.
    """

    virtual: int
    physical: int | None
    fault: int
    faults: int
    written: bool | None


@dataclass(frozen=True)
class Watch:
    """The pages that user code accessed, in the order of their first accesses.

    `unplaced` counts user code's DC ZVA that may have written to any page.
    """

    pages: tuple[Page, ...]
    unplaced: int


@dataclass(frozen=True)
class Vain:
    """How many base pages the upgrades of a recording allocated in vain.

    `unsure` are base pages of which it is not known. A DC ZVA that is `unplaced`
    may have written to pages in `pages`: if there is any, that is an upper bound.
    """

    pages: int
    unsure: int
    unplaced: int


def pages_in_vain(found: Found, watch: Watch) -> Vain:
    """Return which upgraded pages were in vain; `watch` is of the same run as the recording."""
    judge = _Judge(found, watch)
    counts = {True: 0, False: 0, None: 0}
    for row in sorted(found.upgrades):
        size, written = judge.fate(row)
        counts[written] += size
    return Vain(counts[False], counts[None], watch.unplaced)


class _Judge:
    def __init__(self, found: Found, watch: Watch) -> None:
        self._faults = found.faults
        self._pages = watch.pages
        # Places in the watch, and rows of the recording.
        self._at: dict[int, list[int]] = defaultdict(list)
        self._behind: dict[int | None, list[int]] = defaultdict(list)
        self._rows: dict[int, list[int]] = defaultdict(list)
        self._blocks: dict[int, list[int]] = defaultdict(list)
        for place, page in enumerate(watch.pages):
            self._at[page.virtual].append(place)
            self._behind[page.physical].append(place)
        for row, number in enumerate(found.faults.page):
            self._rows[number].append(row)
            self._blocks[number // _HUGE].append(row)

    def fate(self, row: int) -> tuple[int, bool | None]:
        """Return how many base pages a fault got, and whether one of them was written."""
        first = self._begun_by(row)
        if first is None:
            return 1, None
        page = self._pages[first]
        if page.physical is None:
            return 1, None
        if not self._is_huge(row, page.physical):
            return 1, self._written(first, [page.physical])
        start = page.physical - page.physical % _HUGE
        return _HUGE, self._written(first, range(start, start + _HUGE))

    def _begun_by(self, row: int) -> int | None:
        """Return the place in the watch of the page that began with a fault; None if not known."""
        number = self._faults.page[row]
        rows, places = self._rows[number], self._at.get(number)
        if not places or self._pages[places[-1]].faults != len(rows):
            return None
        ordinal = rows.index(row) + 1
        return next((place for place in places if self._pages[place].fault == ordinal), None)

    def _is_huge(self, row: int, physical: int) -> bool:
        """Tell whether a fault got a huge page.

        That lies in its block as the page is in the virtual one, and no other page of the
        block faults in the same address space afterwards.
        """
        faults = self._faults
        number = faults.page[row]
        return (physical - number) % _HUGE == 0 and not any(
            later > row
            and faults.space[later] == faults.space[row]
            and faults.page[later] != number
            for later in self._blocks[number // _HUGE]
        )

    def _written(self, first: int, physical: Iterable[int]) -> bool | None:
        """Tell whether a page was written from `first` on until it was freed.

        It was freed where another fault gets it. Until then it may have moved.
        """
        fates: set[bool | None] = set()
        for number in physical:
            for place in self._behind.get(number, ()):
                page = self._pages[place]
                if place > first and page.fault:
                    break
                if place >= first:
                    fates.add(page.written)
        virtual = self._pages[first].virtual
        if any(
            place > first and self._pages[place].virtual == virtual for place in self._behind[None]
        ):
            fates.add(None)
        return True if True in fates else None if None in fates else False
