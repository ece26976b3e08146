# SPDX-License-Identifier: GPL-2.0
"""The figures of a trace: faults over time, and which pages of the address space had them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firsttouch.finder.found import BLOCK, Found
from firsttouch.finder.kinds import (
    AFTER_FORK,
    AGAIN,
    FAULT_KINDS,
    FILE,
    FIRST_WRITE,
    PRIVATE,
    SECOND,
    SHARED_MEMORY,
    ZERO_PAGE,
)
from firsttouch.output.html.scales import Scale, round_up, tick_label
from firsttouch.output.html.svg import CHARACTER, Drawing, shorten

_LEFT, _BOTTOM = 52.0, 34.0
_TALL = 180.0
# Units of a bar.
_BAR = 3.0
# A gap of that many pages begins another region.
_GAP = 1024
# Regions on the map: those with most faults.
_REGIONS = 24
_STRIP, _CELL = 26.0, 3.0
# What the timeline tells apart by colour, from the bottom of a bar to its top.
_GROUPS = (
    ("files and shared memory", "fault-unwritten", (FILE, PRIVATE, SHARED_MEMORY)),
    ("first write", "fault-any", (FIRST_WRITE,)),
    ("read, and then written", "fault-double", (ZERO_PAGE, SECOND)),
    ("again", "fault-again", (AGAIN,)),
    ("after fork", "fault-fork", (AFTER_FORK,)),
)
_OTHERS = ("other", "fault-other")


def draw_timeline(found: Found, width: float) -> Drawing:
    """Return faults over time, in bars of their kinds."""
    grouped = {kind for _, _, kinds in _GROUPS for kind in kinds}
    others = tuple(kind for kind in range(len(FAULT_KINDS)) if kind not in grouped)
    groups = [(_OTHERS[1], others), *((style, kinds) for _, style, kinds in _GROUPS)]
    words = [_OTHERS, *((name, style) for name, style, _ in _GROUPS)]
    head = 10 + 16 * _legend_rows(words, width)
    drawing = Drawing(width, head + _TALL + _BOTTOM)
    _draw_legend(drawing, words, width)
    line = found.timeline
    last = line.last + 1
    bars = int((width - _LEFT) / _BAR)
    counted = [
        (style, sum((_bars(line.kinds[kind], line.shift, last, bars) for kind in kinds), Counter()))
        for style, kinds in groups
    ]
    every = sum((counts for _, counts in counted), Counter[int]())
    top = round_up(max(every.values(), default=1))
    height = Scale(0, top, head + _TALL, head + 4)
    for tick in (0, top / 2, top):
        drawing.line(_LEFT, height.at(tick), width, height.at(tick), "grid")
        drawing.text(_LEFT - 6, height.at(tick) + 4, tick_label(tick), "t dim", "end")
    below: Counter[int] = Counter()
    for style, counts in counted:
        for bar, count in sorted(counts.items()):
            bottom, y = height.at(below[bar]), height.at(below[bar] + count)
            drawing.rect(_LEFT + bar * _BAR, y, _BAR - 0.5, bottom - y, style)
        below += counts
    axis = Scale(0, last / 1e6, _LEFT, width)
    for tick in axis.ticks(5):
        x = min(max(axis.at(tick), _LEFT + 8), width - 20)
        drawing.text(x, head + _TALL + 15, tick_label(tick), "t dim", "middle")
    drawing.text(width, head + _TALL + 30, "ms since the start", "t dim", "end")
    return drawing


def _legend(words: Sequence[tuple[str, str]], width: float) -> Iterator[tuple[float, int]]:
    """Yield where each name of a legend goes: how far to the right, and in which row."""
    x, row = 0.0, 0
    for name, _ in words:
        wide = 32 + CHARACTER * len(name)
        if x and x + wide > width:
            x, row = 0.0, row + 1
        yield x, row
        x += wide


def _legend_rows(words: Sequence[tuple[str, str]], width: float) -> int:
    return 1 + max(row for _, row in _legend(words, width))


def _draw_legend(drawing: Drawing, words: Sequence[tuple[str, str]], width: float) -> None:
    for (x, row), (name, style) in zip(_legend(words, width), words, strict=True):
        drawing.rect(x, 6 + 16 * row, 10, 10, style)
        drawing.text(x + 15, 15 + 16 * row, name)


def _bars(counts: Sequence[int], shift: int, last: int, bars: int) -> Counter[int]:
    """Return the counts of a timeline's parts by bar."""
    drawn: Counter[int] = Counter()
    for part, count in enumerate(counts):
        if count:
            drawn[min((part << shift) * bars // last, bars - 1)] += count
    return drawn


@dataclass(frozen=True)
class Region:
    """A part of an address space that was touched; `cells` are equal parts of it.

    A cell counts its pages that were touched, those that were double, and those
    of anonymous memory that were read and never written.
    """

    name: str
    start: int
    pages: int
    touched: int
    cells: tuple[tuple[int, int, int], ...]


def regions(found: Found, page_size: int, cells: int) -> list[Region]:
    """Return the regions of the address space with most faults, in the order of addresses."""
    largest = found.largest
    block = BLOCK // page_size
    touched, doubled = (
        [n * block + bit for n in sorted(pages) for bit in range(block) if pages[n] >> bit & 1]
        for pages in (largest.pages, largest.doubled)
    )
    doubles, unwritten = set(doubled), largest.reads
    found_regions = []
    for pages in _runs(touched):
        counts = [[0, 0, 0] for _ in range(min(cells, pages[-1] - pages[0] + 1))]
        for page in pages:
            cell = counts[(page - pages[0]) * len(counts) // (pages[-1] - pages[0] + 1)]
            cell[0] += 1
            cell[1] += page in doubles
            cell[2] += page in unwritten
        name = largest.space.name_at(pages[0] * page_size, pages[-1] * page_size)
        found_regions.append(
            Region(
                name,
                pages[0],
                pages[-1] - pages[0] + 1,
                len(pages),
                tuple((a, b, c) for a, b, c in counts),
            )
        )
    most = sorted(found_regions, key=lambda region: -region.touched)[:_REGIONS]
    return sorted(most, key=lambda region: region.start)


def _runs(pages: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the parts of sorted pages that have no large gap."""
    begin = 0
    for index in range(1, len(pages) + 1):
        if index == len(pages) or pages[index] - pages[index - 1] > _GAP:
            yield pages[begin:index]
            begin = index


def draw_map(found: Found, page_size: int, width: float) -> Drawing:
    """Return the map of the address space with most faults: a strip for each region."""
    strips = regions(found, page_size, int(width / _CELL))
    drawing = Drawing(width, 26 + len(strips) * (_STRIP + 18))
    x = 0.0
    for kind, words in (
        ("fault-any", "written"),
        ("fault-double", "read, then written"),
        ("fault-unwritten", "read, never written"),
    ):
        drawing.rect(x, 6, 10, 10, kind)
        drawing.text(x + 15, 15, words)
        x += 30 + 7 * len(words)
    for number, region in enumerate(strips):
        top = 26 + number * (_STRIP + 18)
        words = f"{region.start * page_size:#x}: {region.touched:,} of {region.pages:,} pages, "
        drawing.text(0, top + 12, shorten(words + region.name, width), "t dim")
        for index, (touched, doubled, unwritten) in enumerate(region.cells):
            if not touched:
                continue
            left, tall = index * _CELL, _STRIP - 8
            drawing.rect(left, top + 17, _CELL, tall, "fault-any")
            for count, kind in ((doubled, "fault-double"), (unwritten, "fault-unwritten")):
                if count:
                    drawing.rect(left, top + 17, _CELL, tall * count / touched, kind)
    return drawing
