# SPDX-License-Identifier: GPL-2.0
"""A flame graph: chains of calls as boxes, as wide as they have faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from firsttouch.finder.found import Found
from firsttouch.finder.symbols import Symbols
from firsttouch.output.html.svg import CHARACTER, Drawing, shorten
from firsttouch.quantities import format_share

# Functions that call each other, the outermost first.
Chain = tuple[str, ...]

_ROW = 17.0
# Boxes narrower than this show nothing.
_NARROWEST = 0.6
# From this share of a box's faults on, its colour says that they are doubles.
_SOME, _MOST = 0.02, 0.5
_KINDS = ("fault-flame", "fault-flame some", "fault-flame most")


@dataclass
class _Frame:
    """A function called in one way; its faults include those of what it calls."""

    name: str
    faults: int = 0
    doubles: int = 0
    called: dict[str, _Frame] = field(default_factory=dict)

    def depth(self, least: float) -> int:
        """Return the number of rows of it and what it calls, without what is too narrow."""
        shown = [frame.depth(least) for frame in self.called.values() if frame.faults >= least]
        return 1 + max(shown, default=0)


def flame_graph(faults: Mapping[Chain, int], doubles: Mapping[Chain, int], width: float) -> Drawing:
    """Return the drawing of folded stacks: chains of functions, the outermost first.

    Both have counts by chain; `doubles` of `faults` colour the boxes.
    """
    root = _Frame("all faults")
    for chain, count in faults.items():
        _add(root, chain, count, doubles.get(chain, 0))
    least = root.faults * _NARROWEST / width
    rows = root.depth(least)
    drawing = Drawing(width, rows * _ROW + 4)
    _draw(drawing, root, 0.0, width / max(root.faults, 1), rows - 1, root.faults)
    return drawing


def _add(root: _Frame, chain: Chain, count: int, doubles: int) -> None:
    frame = root
    for name in (*chain, None):
        frame.faults += count
        frame.doubles += doubles
        if name is not None:
            frame = frame.called.setdefault(name, _Frame(name))


def _draw(drawing: Drawing, frame: _Frame, left: float, scale: float, row: int, whole: int) -> None:
    """Draw a frame and, above it, what it calls, in the order of names."""
    width, top = frame.faults * scale, row * _ROW + 2
    share = frame.doubles / frame.faults
    kind = _KINDS[(share >= _SOME) + (share >= _MOST)]
    tip = f"{frame.name}: {frame.faults:,} faults ({format_share(frame.faults, whole)})"
    if frame.doubles:
        tip += f", {frame.doubles:,} of them double"
    drawing.rect(left, top, width, _ROW - 1, kind, tip)
    if width > 4 * CHARACTER:
        drawing.text(left + 3, top + 12, shorten(frame.name, width - 4), "f")
    for name in sorted(frame.called):
        called = frame.called[name]
        if called.faults * scale >= _NARROWEST:
            _draw(drawing, called, left, scale, row - 1, whole)
        left += called.faults * scale


def named_chains(found: Found, symbols: Symbols) -> list[list[str]]:
    """Return the chains of a recording as names, the pc first."""
    symbols.demangle(place for chain in found.stacks for place in chain)
    return [[symbols.caller(place) for place in chain] for chain in found.stacks]


def fold(chains: Sequence[Sequence[str]], counts: Sequence[int]) -> Counter[Chain]:
    """Return the counts of chains, which have the pc first, where there are any."""
    folded: Counter[Chain] = Counter()
    for chain, count in zip(chains, counts, strict=True):
        if count:
            folded[tuple(reversed(chain))] += count
    return folded
