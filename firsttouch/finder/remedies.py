# SPDX-License-Identifier: GPL-2.0
"""What removes faults: the remedies, and those that are simulated page by page."""

from __future__ import annotations

from collections.abc import Mapping

from firsttouch.finder.worlds import Ahead, World, large

# The remedies by their names in trace.json.
(
    THP, HEAP, MTHP_64, MTHP_16, AHEAD, KEEP, KEEP_MALLOC, FILLED, SPAWN, RELOCATE, AROUND,
) = (
    "huge pages of 2 MiB", "huge pages for the heap", "huge pages of 64 KiB",
    "huge pages of 16 KiB", "fault-ahead", "keep what is given back",
    "keep what malloc gives back", "populate what is filled", "spawn in place of fork",
    "no relocations", "fault-around of 2 MiB",
)  # fmt: skip
KEPT = KEEP, KEEP_MALLOC
# What takes away faults of a kind, or of a place, and needs no simulation of pages.
COUNTED = *KEPT, FILLED, SPAWN, RELOCATE, AROUND
_KIB = 1024


def worlds_of(page_size: int) -> Mapping[str, type[World]]:
    """Return the remedies that a simulation has for a page size."""
    worlds: dict[str, type[World]] = {AHEAD: Ahead}
    for name, size in ((THP, 2048 * _KIB), (MTHP_64, 64 * _KIB), (MTHP_16, 16 * _KIB)):
        order = (size // page_size).bit_length() - 1
        # Two pages are no large folio of anonymous memory.
        if order >= 2:
            whole = size == page_size * page_size // 8
            worlds[name] = large(order, whole=whole)
            if whole:
                worlds[HEAP] = large(order, whole=True, whole_heap=True)
    return worlds
