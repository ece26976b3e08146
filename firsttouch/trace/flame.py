# SPDX-License-Identifier: GPL-2.0
"""The flame graph of a trace: faults by chain of calls, which ends with their kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from firsttouch.finder.kinds import NAMES
from firsttouch.finder.symbols import Symbols
from firsttouch.finder.totals import Totals
from firsttouch.output.html.flame import Box, Look, draw_flames
from firsttouch.output.html.svg import Drawing
from firsttouch.quantities import format_share
from firsttouch.trace.palette import PLACES, draw_legend, legend_height, style

# Functions that call each other, the outermost first; the last is a kind, in brackets.
Chain = tuple[str, ...]

_STYLES = {f"[{name}]": style(PLACES[kind]) for kind, name in enumerate(NAMES)}


def kind_chains(totals: Totals, symbols: Symbols) -> Counter[Chain]:
    """Return the faults by chain of functions and kind."""
    symbols.demangle(place for chain in totals.stacks for place in chain)
    counts: Counter[Chain] = Counter()
    for places, kinds in zip(totals.stacks, totals.stack_kinds, strict=True):
        chain = tuple(symbols.caller(place) for place in reversed(places))
        for name, count in zip(NAMES, kinds, strict=True):
            if count:
                counts[*chain, f"[{name}]"] += count
    return counts


def flame_graph(faults: Mapping[Chain, int], width: float) -> Drawing:
    """Return the drawing of the faults by chain of functions and kind."""
    root = Box("all faults")
    for chain, count in faults.items():
        box = root
        for name in chain:
            box = box.call(name)
        box.itself = box.itself[0] + count, 0.0
    root.sum_up()

    def look(box: Box) -> Look:
        count = int(box.total[0])
        tip = f"{box.name}: {count:,} faults ({format_share(count, int(root.total[0]))})"
        # A file without symbols may have the name of a kind.
        kind = "flame" if box.called else _STYLES.get(box.name, "flame")
        return Look(kind, box.name, tip)

    places = sorted({PLACES[kind] for kind, name in enumerate(NAMES) if _has(faults, name)})
    drawing = draw_flames(root, width, legend_height(places, width), look)
    draw_legend(drawing, places)
    return drawing


def _has(faults: Mapping[Chain, int], kind: str) -> bool:
    return any(chain[-1] == f"[{kind}]" for chain in faults)
