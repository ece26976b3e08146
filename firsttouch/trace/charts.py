# SPDX-License-Identifier: GPL-2.0
"""The figures of a trace: faults over time, by chain of calls, and by page; folded stacks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from firsttouch.quantities import format_share
from firsttouch.trace.kinds import NAMES, SECOND, ZERO_PAGE
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import BLOCK, Totals, Touched
from firsttouch.views.html.flame import Box, Look, draw_flames, tree_of
from firsttouch.views.html.svg import CHARACTER, Drawing, Scale, round_up, shorten, tick_label

_LEFT, _BOTTOM = 52.0, 34.0
_TALL = 180.0
# Units of a bar.
_BAR = 3.0
# A gap of that many pages begins another region.
_GAP = 1024
# Regions on the map: those with most faults.
_REGIONS = 24
_STRIP, _CELL = 26.0, 3.0


_ROW = 18.0
# A pattern's square has sides of so many units.
_SIDE = 6


class Pattern(NamedTuple):
    """How kinds look that pictures do not tell apart; `lines` is a path in the pattern's square."""

    words: str
    kinds: tuple[int, ...]
    light: str
    dark: str
    lines: str


LOOKS = tuple(
    Pattern(words, tuple(map(NAMES.index, kinds.split(";"))), light, dark, lines)
    for words, kinds, light, dark, lines in (
        ("first write", "first write", "#0b5cad", "#6cb2f5", ""),
        ("zero page", "zero page", "#00838f", "#4dd0e1", "M0 3H6"),
        ("read, then written", "read, then written", "#b44a00", "#f5a04c", "M0 3H6M3 0V6"),
        ("again", "again", "#8e2f8f", "#e08ee0", "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
        ("after fork", "after fork", "#1a6b34", "#6fcf8b", "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
        ("files, shared memory", "file;private file;shared", "#6b6f00", "#cdd26a", "M2 3H4"),
        ("in the kernel", "in the kernel", "#3d444d", "#c9d1d9", "M3 0V6"),
        ("other", "stack;vdso;no memory;unknown", "#7d858e", "#868e98", "M1 1H2M4 4H5"),
    )
)
LIGHT = {f"kind-{number}": look.light for number, look in enumerate(LOOKS)}
DARK = {f"kind-{number}": look.dark for number, look in enumerate(LOOKS)}
# Where each kind is in LOOKS.
PLACES = tuple(
    next(place for place, look in enumerate(LOOKS) if kind in look.kinds)
    for kind in range(len(NAMES))
)


def draw_timeline(totals: Totals, width: float) -> Drawing:
    """Return faults over time, in bars of their kinds."""
    line = totals.timeline
    last = line.last + 1
    bars = int((width - _LEFT) / _BAR)
    counted = {
        place: counts
        for place, look in enumerate(LOOKS)
        if (counts := _bars([line.kinds[kind] for kind in look.kinds], line.shift, last, bars))
    }
    head = legend_height(list(counted), width)
    drawing = Drawing(width, head + _TALL + _BOTTOM)
    draw_legend(drawing, list(counted))
    every = sum(counted.values(), Counter[int]())
    top = round_up(max(every.values(), default=1))
    height = Scale(0, top, head + _TALL, head + 4)
    for tick in (0, top / 2, top):
        drawing.line(_LEFT, height.at(tick), width, height.at(tick), "grid")
        drawing.text(_LEFT - 6, height.at(tick) + 4, tick_label(tick), "t dim", "end")
    below: Counter[int] = Counter()
    for place, counts in counted.items():
        for bar, count in sorted(counts.items()):
            bottom, y = height.at(below[bar]), height.at(below[bar] + count)
            drawing.rect(_LEFT + bar * _BAR, y, _BAR - 0.5, bottom - y, style(place))
        below += counts
    axis = Scale(0, last / 1e6, _LEFT, width)
    for tick in axis.ticks(5):
        x = min(max(axis.at(tick), _LEFT + 8), width - 20)
        drawing.text(x, head + _TALL + 15, tick_label(tick), "t dim", "middle")
    drawing.text(width, head + _TALL + 30, "ms since the start", "t dim", "end")
    return drawing


def _bars(lines: Sequence[Sequence[int]], shift: int, last: int, bars: int) -> Counter[int]:
    """Return the counts of a timeline's parts by bar."""
    drawn: Counter[int] = Counter()
    for counts in lines:
        for part, count in enumerate(counts):
            if count:
                drawn[min((part << shift) * bars // last, bars - 1)] += count
    return drawn


def kind_chains(totals: Totals, symbols: Symbols) -> Counter[tuple[str, ...]]:
    """Return the faults by functions, the outermost first, with their kind in brackets."""
    symbols.demangle(place for chain in totals.stacks for place in chain)
    counts: Counter[tuple[str, ...]] = Counter()
    for places, kinds in zip(totals.stacks, totals.stack_kinds, strict=True):
        chain = tuple(symbols.caller(place) for place in reversed(places))
        for name, count in zip(NAMES, kinds, strict=True):
            if count:
                counts[*chain, f"[{name}]"] += count
    return counts


def draw_calls(faults: Mapping[tuple[str, ...], int], width: float) -> Drawing:
    """Return the flame graph of faults as `kind_chains` counts them."""
    root = tree_of("all faults", {chain: (count, 0.0) for chain, count in faults.items()})
    of_kind = {f"[{name}]": PLACES[kind] for kind, name in enumerate(NAMES)}

    def look(box: Box) -> Look:
        tip = (
            f"{box.name}: {box.total[0]:,.0f} faults ({format_share(box.total[0], root.total[0])})"
        )
        # A file without symbols may have the name of a kind.
        kind = style(of_kind[box.name]) if box.name in of_kind and not box.called else "flame"
        return Look(kind, box.name, tip)

    places = sorted({of_kind[chain[-1]] for chain in faults})
    drawing = draw_flames(root, width, legend_height(places, width), look)
    draw_legend(drawing, places)
    return drawing


@dataclass(frozen=True)
class Region:
    """A part of an address space that was touched; `cells` are equal parts of it.

    A cell counts its pages by the kinds of faults that they had, as in LOOKS.
    """

    name: str
    start: int
    pages: int
    touched: int
    cells: tuple[tuple[int, ...], ...]


def regions(totals: Totals, page_size: int, cells: int) -> list[Region]:
    """Return the regions of the address space with most faults, in the order of addresses."""
    largest = totals.largest
    pages = [_pages(largest, look.kinds, BLOCK // page_size) for look in LOOKS]
    runs = sorted(_runs(sorted(set().union(*pages))), key=len)[-_REGIONS:]
    largest_regions = []
    for run in sorted(runs, key=min):
        first, last = run[0], run[-1]
        counts = [[0] * len(LOOKS) for _ in range(min(cells, last - first + 1))]
        for place, of_kind in enumerate(pages):
            for page in of_kind[bisect_left(of_kind, first) : bisect_right(of_kind, last)]:
                counts[(page - first) * len(counts) // (last - first + 1)][place] += 1
        name = largest.space.name_at(first * page_size, last * page_size)
        largest_regions.append(
            Region(name, first, last - first + 1, len(run), tuple(map(tuple, counts)))
        )
    return largest_regions


def _pages(touched: Touched, kinds: Sequence[int], block: int) -> list[int]:
    """Return the pages that had faults of kinds; what was written later is no zero page."""
    masks: dict[int, int] = {}
    for kind in kinds:
        for n, bits in touched.kinds[kind].items():
            written = touched.kinds[SECOND].get(n, 0) if kind == ZERO_PAGE else 0
            masks[n] = masks.get(n, 0) | bits & ~written
    return [n * block + bit for n in sorted(masks) for bit in range(block) if masks[n] >> bit & 1]


def _runs(pages: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the parts of sorted pages that have no large gap."""
    begin = 0
    for index in range(1, len(pages) + 1):
        if index == len(pages) or pages[index] - pages[index - 1] > _GAP:
            yield pages[begin:index]
            begin = index


def draw_map(totals: Totals, page_size: int, width: float) -> Drawing:
    """Return the map of the address space with most faults: a strip for each region."""
    strips = regions(totals, page_size, int(width / _CELL))
    cells = [cell for region in strips for cell in region.cells]
    places = [place for place in range(len(LOOKS)) if any(cell[place] for cell in cells)]
    head = legend_height(places, width)
    drawing = Drawing(width, head + len(strips) * (_STRIP + 18))
    draw_legend(drawing, places)
    for number, region in enumerate(strips):
        top = head + number * (_STRIP + 18)
        words = f"{region.start * page_size:#x}: {region.touched:,} of {region.pages:,} pages, "
        drawing.text(0, top + 12, shorten(words + region.name, width), "t dim")
        for index, cell in enumerate(region.cells):
            y, tall = top + 17, _STRIP - 8
            for place in places:
                if cell[place]:
                    part = tall * cell[place] / sum(cell)
                    drawing.rect(index * _CELL, y, _CELL, part, style(place))
                    y += part
    return drawing


def folded_trace(totals: Totals, symbols: Symbols) -> str:
    """Return the faults by stack: the outermost function first, the kind in brackets last."""
    stacks = sorted(kind_chains(totals, symbols).items())
    return "".join(f"{';'.join(map(_folded, chain))} {count}\n" for chain, count in stacks)


def _folded(function: str) -> str:
    """Return a name without what separates names and lines in folded stacks."""
    return function.replace(";", ":").replace("\n", " ")


def style(place: int) -> str:
    """Return the class of a place in LOOKS."""
    return f"kind-{place}"


def patterns() -> Markup:
    """Return what the classes refer to: a part of the page, once, that takes no room."""
    parts = "".join(
        f'<pattern id="kind-{number}" width="{_SIDE}" height="{_SIDE}" '
        f'patternUnits="userSpaceOnUse"><rect width="{_SIDE}" height="{_SIDE}" '
        f'style="fill: var(--kind-{number})"/><path d="{look.lines or "M0 0"}"/></pattern>'
        for number, look in enumerate(LOOKS)
    )
    rules = "".join(
        f".{style(number)} {{ fill: url(#kind-{number}); }}" for number in range(len(LOOKS))
    )
    return Markup(
        '<svg class="patterns" width="0" height="0" aria-hidden="true">'
        f'<style>{rules}[class^="kind-"] + .flame-t {{ stroke-width: 3px; }}</style>'
        f"<defs>{parts}</defs></svg>"
    )


def legend_height(places: Sequence[int], width: float) -> float:
    """Return the room that a legend takes."""
    return 8 + _ROW * (1 + max((row for _, _, row in _legend(places, width)), default=0))


def draw_legend(drawing: Drawing, places: Sequence[int]) -> None:
    """Draw the legend at the top of a picture."""
    for place, x, row in _legend(places, drawing.width):
        drawing.rect(x, 4 + _ROW * row, 12, 12, style(place))
        drawing.text(x + 17, 14 + _ROW * row, LOOKS[place].words)


def _legend(places: Sequence[int], width: float) -> Iterator[tuple[int, float, int]]:
    """Yield where each name of a legend goes: how far to the right, and in which row."""
    x, row = 0.0, 0
    for place in places:
        wide = 32 + CHARACTER * len(LOOKS[place].words)
        if x and x + wide > width:
            x, row = 0.0, row + 1
        yield place, x, row
        x += wide
