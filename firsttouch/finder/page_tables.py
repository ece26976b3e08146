# SPDX-License-Identifier: GPL-2.0
"""Huge pages of a whole page table, where that maps more than a block of 2 MiB.

With pages of 16 KiB it maps 32 MiB, with pages of 64 KiB 512 MiB.
"""

from __future__ import annotations

from firsttouch.finder.worlds import HUGE, Outcome, World


class PageTables(World):
    """Transparent huge pages, ``always``, of `blocks` blocks each: mm/huge_memory.c.

    They come by the first touch of a table inside one mapping, as the huge zero page if that
    is a read. Faults after a part was given back bring pages of the usual size.
    """

    kind = HUGE

    def __init__(self, outcome: Outcome, block: int) -> None:
        super().__init__(outcome, block)
        self._every = (1 << block) - 1
        # Tables that had a page when a fault looked, and have given none back since.
        self._used: set[int] = set()
        # Tables in whose place a huge page is.
        self._huge: set[int] = set()

    def forget(self, block: int, pages: int, *, mapped: bool = False) -> None:
        """As in any world."""
        super().forget(block, pages)
        table = block // self.blocks
        # Where a huge page was there is no table, if all of it is given back.
        if not mapped or not self.rules.keeps_tables or table in self._huge:
            self._used.discard(table)
        self._huge.discard(table)

    def move(self, first: int, count: int, to: int) -> None:
        """As in any world."""
        super().move(first, count, to)
        self._used.clear()
        self._huge.clear()

    def _written(self, block: int, page: int, tid: int, inside: int) -> int:
        del tid
        table = block // self.blocks
        if not self._all_zero(block) and not self._takes(block, inside):
            self._huge.discard(table)
            return page
        self._huge.add(table)
        for other in self._others(block):
            self._present[other] = self._idle[other] = self._every
            self._zero.pop(other, None)
        self._outcome.bring((self.blocks - 1) * self._block)
        return self._every

    def _read(self, block: int, page: int, inside: int) -> int:
        if not self._takes(block, inside):
            return page
        self._huge.add(block // self.blocks)
        for other in self._others(block):
            self._zero[other] = self._every
        return self._every

    def _others(self, block: int) -> list[int]:
        """Return the other blocks of a block's table."""
        first = block - block % self.blocks
        return [other for other in range(first, first + self.blocks) if other != block]

    def _all_zero(self, block: int) -> bool:
        """Tell whether a block's table maps the huge zero page, to be replaced as a whole."""
        return (
            not self.rules.splits_zero
            and self._zero.get(block) == self._every
            and all(self._zero.get(other) == self._every for other in self._others(block))
        )

    def _takes(self, block: int, inside: int) -> bool:
        """Tell whether a huge page comes in place of a block's table, which is used from now on."""
        table = block // self.blocks
        if inside != self._every or table in self._used:
            return False
        self._used.add(table)
        return not any(
            self._present.get(other, 0) | self._zero.get(other, 0)
            for other in (block, *self._others(block))
        )


def page_tables(blocks: int) -> type[PageTables]:
    """Return the world of huge pages of so many blocks."""
    return type(f"PageTables{blocks}", (PageTables,), {"blocks": blocks})
