# SPDX-License-Identifier: GPL-2.0
"""What removes faults: the remedies, and those that are simulated page by page."""

from __future__ import annotations

from collections.abc import Mapping

from firsttouch.finder.page_tables import page_tables
from firsttouch.finder.totals import BLOCK
from firsttouch.finder.worlds import Ahead, World, large

_KIB = 1 << 10
# Large folios of anonymous memory by their names, and their bytes.
FOLIOS = {
    **{f"huge pages of {kib} KiB": kib * _KIB for kib in (16, 32, 64, 128)},
    **{f"huge pages of {mib} MiB": mib * _KIB * _KIB for mib in (2, 32, 512)},
}
# The remedies by their names in trace.json.
_, _, MTHP_64, MTHP_128, THP, _, _ = FOLIOS
HEAP, AHEAD, KEEP, KEEP_MALLOC, FILLED, SPAWN, RELOCATE, AROUND = (
    "huge pages for the heap", "fault-ahead", "keep what is given back",
    "keep what malloc gives back", "populate what is filled", "spawn in place of fork",
    "no relocations", "fault-around of 2 MiB",
)  # fmt: skip
KEPT = KEEP, KEEP_MALLOC
# What takes away faults of a kind, or of a place, and needs no simulation of pages.
COUNTED = *KEPT, FILLED, SPAWN, RELOCATE, AROUND


def table_bytes(page_size: int) -> int:
    """Return what a page table maps, and so its huge page: 2, 32 or 512 MiB."""
    return page_size * page_size // 8


def largest(page_size: int) -> str:
    """Return the name of the huge pages of a whole page table; "" for a page size of no kernel."""
    return next((name for name, size in FOLIOS.items() if size == table_bytes(page_size)), "")


def worlds_of(page_size: int) -> Mapping[str, type[World]]:
    """Return the remedies that a simulation has for a page size."""
    worlds: dict[str, type[World]] = {AHEAD: Ahead}
    for name, size in FOLIOS.items():
        order = (size // page_size).bit_length() - 1
        whole = size == table_bytes(page_size)
        if size > BLOCK:
            if whole:
                worlds[name] = page_tables(size // BLOCK)
        # Two pages are no large folio of anonymous memory.
        elif order >= 2:
            worlds[name] = large(order, whole=whole)
            if whole:
                worlds[HEAP] = large(order, whole=True, whole_heap=True)
    return worlds
