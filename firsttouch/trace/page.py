# SPDX-License-Identifier: GPL-2.0
"""trace.html: pictures, remedies to copy, places, doubles, and whose the faults are.

The pictures have faults over time, by chain of calls (also as folded stacks), and by page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from firsttouch.quantities import format_share
from firsttouch.trace.advice import advise, facts_of
from firsttouch.trace.kinds import NAMES
from firsttouch.trace.sentences import between, command_line, shares
from firsttouch.trace.sites import Trace
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import BLOCK, Totals
from firsttouch.views.html.charts import WIDTH
from firsttouch.views.html.flame import Box, Look, draw_flames, tree_of
from firsttouch.views.html.page import page_template
from firsttouch.views.html.style import page_style, picture_style
from firsttouch.views.html.svg import Drawing, Picture, Scale, round_up, shorten, tick_label
from firsttouch.views.tables import Table

FILE_NAME = "trace.html"
# Doubles and processes that the page lists.
_SITES, _PROCESSES = 50, 20
_LEFT, _BOTTOM, _TALL = 52.0, 34.0, 180.0
# Units of a bar of the timeline, and of a strip and a cell of the map.
_BAR, _STRIP, _CELL = 3.0, 18.0, 3.0
# A gap of that many pages begins another region of the map, which has those with most faults.
_GAP, _REGIONS = 1024, 24
# What separates names and lines in folded stacks, and what a name has in its place.
_FOLDED = str.maketrans(";\n", ": ")
# Kinds that pictures do not tell apart, in the colours of a look by day and by night.
_LOOKS = (
    ("first write", "#0b5cad", "#6cb2f5"),
    ("zero page", "#00838f", "#4dd0e1"),
    ("read, then written", "#b44a00", "#f5a04c"),
    ("again", "#8e2f8f", "#e08ee0"),
    ("after fork", "#1a6b34", "#6fcf8b"),
    ("file; private file; shared", "#6b6f00", "#cdd26a"),
    ("in the kernel", "#3d444d", "#c9d1d9"),
    ("stack; vdso; no memory; unknown", "#7d858e", "#868e98"),
)
_STYLES = [f"kind-{number}" for number in range(len(_LOOKS))]
_LIGHT, _DARK = (
    dict(zip(_STYLES, colors, strict=True)) for colors in list(zip(*_LOOKS, strict=True))[1:]
)
# Where each kind is in _LOOKS.
_PLACES = [next(n for n, look in enumerate(_LOOKS) if k in look[0].split("; ")) for k in NAMES]


def render_trace(trace: Trace, totals: Totals, symbols: Symbols, sentences: Sequence[str]) -> str:
    rules = "".join(f".{style} {{ fill: var(--{style}); }}\n" for style in _STYLES)
    rules += "".join(f".legend .{style} {{ color: var(--{style}); }}\n" for style in _STYLES)
    rules += '[class^="kind-"] + .flame-t { stroke-width: 3px; }'
    return page_template("trace.html.j2").render(
        style=Markup(page_style(rules, _LIGHT, _DARK)),
        command=command_line(trace),
        machine=trace.machine,
        kernel=trace.kernel,
        sentences=sentences,
        legend=[
            (style, kinds)
            for style, (kinds, *_) in zip(_STYLES, _LOOKS, strict=True)
            if any(kind in trace.fault_kinds for kind in kinds.split("; "))
        ],
        figures=list(_figures(trace, totals, symbols)),
        remedies=list(_remedies(trace)),
        places=_places(trace),
        sites=_sites(trace),
        members=list(_members(trace)),
    )


def _remedies(trace: Trace) -> Iterator[tuple[str, str, str]]:
    for number, advice in enumerate(advise(trace), 1):
        faults, time, memory, tried = facts_of(trace, number, advice)
        facts = (f"{faults} faults", time, memory and f"{memory} at most", tried)
        yield advice.what, ", ".join(filter(None, facts)), advice.how


def _places(trace: Trace) -> Table:
    rows = []
    for place in trace.fault_places:
        called = [", ".join(place.callers)] if place.callers else []
        if place.given_back:
            call, *functions = place.given_back
            called.append(f"given back by {call}(2) in {', '.join(functions)}")
        rows.append((place.where, f"{place.faults:,}", place.kind, "; ".join(called)))
    return Table("", ("Place", "Faults", "Kind", "Called by"), rows, more=2)


def _sites(trace: Trace) -> Table:
    rows = [
        (between(site), f"{site.doubles:,}", site.kind, site.memory)
        for site in trace.sites[:_SITES]
    ]
    return Table("", ("Read, then written", "Doubles", "Kind", "Memory"), rows, more=2)


def _members(trace: Trace) -> Iterator[Table]:
    kinds = [(name, f"{n:,}", format_share(n, trace.faults)) for name, n in shares(trace)]
    yield Table("", ("Kind", "Faults", "Share"), kinds)
    for head, members in (("Program", trace.programs), ("Thread", trace.threads)):
        if len(members) > 1:
            rows = [(each.name, f"{each.members:,}", f"{each.faults:,}") for each in members]
            yield Table("", (head, f"{head}s", "Faults"), rows)
    if len(trace.processes) > 1:
        rows = [(str(p.pid), f"{p.faults:,}", p.name) for p in trace.processes[:_PROCESSES]]
        yield Table("", ("Process", "Faults", "Program"), rows, more=1)


def _figures(trace: Trace, totals: Totals, symbols: Symbols) -> Iterator[Picture]:
    if not trace.faults:
        return
    kinds = ", ".join(f"{name} {count:,}" for name, count in shares(trace))
    counts = f"{trace.faults:,} faults in {trace.seconds:.2f} s: {kinds}."
    yield Picture(
        "time", "Faults over time", counts, draw_timeline(totals, WIDTH),
        caption="Each bar counts the faults in a time slice, by kind.",
    )  # fmt: skip
    if any(len(chain) > 1 for chain in totals.stacks):
        faults = kind_chains(totals, symbols)
        yield Picture(
            "calls", "Faults by calls", counts, draw_calls(faults, WIDTH),
            "Faults by the functions that were called",
            "A box is as wide as its share of the faults. Below it are the functions that it "
            "calls, and last the kind of the faults, in brackets.",
        )  # fmt: skip
    yield Picture(
        "map", "The address space", counts, draw_map(totals, trace.page_size, WIDTH),
        caption="The process with the most faults. Each strip is a range of touched addresses "
        "without a large gap, coloured by the kind of the pages' faults.",
    )  # fmt: skip


def draw_timeline(totals: Totals, width: float) -> Drawing:
    line = totals.timeline
    bars = int((width - _LEFT) / _BAR)
    counted: dict[int, Counter[int]] = {}
    for (kind, part), count in line.counts.items():
        bar = min((part << line.shift) * bars // (line.last + 1), bars - 1)
        counted.setdefault(_PLACES[kind], Counter())[bar] += count
    drawing = Drawing(width, _TALL + _BOTTOM)
    every = sum(counted.values(), Counter[int]())
    top = round_up(max(every.values(), default=1))
    height = Scale(0, top, _TALL, 10)
    for tick in (0, top / 2, top):
        drawing.line(_LEFT, height.at(tick), width, height.at(tick), "grid")
        drawing.text(_LEFT - 6, height.at(tick) + 4, tick_label(tick), "t dim", "end")
    below: Counter[int] = Counter()
    for place in sorted(counted):
        for bar, count in sorted(counted[place].items()):
            bottom, y = height.at(below[bar]), height.at(below[bar] + count)
            drawing.rect(_LEFT + bar * _BAR, y, _BAR - 0.5, bottom - y, _STYLES[place])
        below += counted[place]
    axis = Scale(0, (line.last + 1) / 1e6, _LEFT, width)
    for tick in axis.ticks(5):
        x = min(max(axis.at(tick), _LEFT + 8), width - 20)
        drawing.text(x, _TALL + 15, tick_label(tick), "t dim", "middle")
    drawing.text(width, _TALL + 30, "ms since the start", "t dim", "end")
    return drawing


def kind_chains(totals: Totals, symbols: Symbols) -> Counter[tuple[str, ...]]:
    """Return the faults by functions, the outermost first, with their kind in brackets."""
    counts: Counter[tuple[str, ...]] = Counter()
    for stack in totals.stacks.values():
        chain = tuple(symbols.caller(place) for place in reversed(stack.places))
        for name, count in zip(NAMES, stack.kinds, strict=True):
            if count:
                counts[*chain, f"[{name}]"] += count
    return counts


def draw_calls(faults: Mapping[tuple[str, ...], int], width: float) -> Drawing:
    """Return the flame graph of faults as `kind_chains` counts them."""
    root = tree_of("all faults", {chain: (count, 0.0) for chain, count in faults.items()})
    of_kind = {f"[{name}]": place for name, place in zip(NAMES, _PLACES, strict=True)}

    def look(box: Box) -> Look:
        share = format_share(box.total[0], root.total[0])
        tip = f"{box.name}: {box.total[0]:,.0f} faults ({share})"
        # A file without symbols may have the name of a kind.
        kind = _STYLES[of_kind[box.name]] if box.name in of_kind and not box.called else "flame"
        return Look(kind, box.name, tip)

    return draw_flames(root, width, 0, look)


def trace_picture(trace: Trace, totals: Totals, symbols: Symbols) -> str:
    """Return the flame graph of the faults as SVG that stands alone."""
    drawing = draw_calls(kind_chains(totals, symbols), WIDTH)
    rules = "".join(f".{style} {{ fill: var(--{style}); fill-opacity: .5; }}" for style in _STYLES)
    kinds = ", ".join(f"{name} {count:,}" for name, count in shares(trace))
    title = f"{trace.faults:,} page faults by the functions that were called"
    picture = Picture("calls", title, f"Faults by calls, and by kind: {kinds}.", drawing)
    style = picture_style(drawing.shapes, rules, _LIGHT, _DARK)
    return picture.document(command_line(trace), style)


def folded_trace(totals: Totals, symbols: Symbols) -> str:
    """Return the faults by stack: the outermost function first, the kind in brackets last."""
    stacks = sorted(kind_chains(totals, symbols).items())
    return "".join(
        f"{';'.join(name.translate(_FOLDED) for name in chain)} {count}\n"
        for chain, count in stacks
    )


def draw_map(totals: Totals, page_size: int, width: float) -> Drawing:
    """Return the address space with most faults: a strip for each region that was touched.

    A cell of a strip has the kind that most of its pages had.
    """
    block = BLOCK // page_size
    # Of a page that was read and then written the latter counts: it comes last.
    kind_at = {
        number * block + bit: place
        for place, pages_of in zip(_PLACES, totals.largest.kinds, strict=True)
        for number, pages in pages_of.items()
        for bit in range(block)
        if pages >> bit & 1
    }
    regions = sorted(_runs(sorted(kind_at)), key=len)[-_REGIONS:]
    drawing = Drawing(width, len(regions) * (_STRIP + 18))
    for number, region in enumerate(sorted(regions, key=min)):
        first, size = region[0], region[-1] - region[0] + 1
        cells: dict[int, Counter[int]] = {}
        count = min(int(width / _CELL), size)
        for page in region:
            cells.setdefault((page - first) * count // size, Counter())[kind_at[page]] += 1
        top = number * (_STRIP + 18)
        mapping = totals.largest.space.at(first * page_size)
        name = mapping.path if mapping else "unknown"
        words = f"{first * page_size:#x}: {len(region):,} of {size:,} pages, {name}"
        drawing.text(0, top + 12, shorten(words, width), "t dim")
        for index, cell in cells.items():
            ((place, _),) = cell.most_common(1)
            drawing.rect(index * _CELL, top + 17, _CELL, _STRIP, _STYLES[place])
    return drawing


def _runs(pages: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the parts of sorted pages that have no large gap."""
    begin = 0
    for index in range(1, len(pages) + 1):
        if index == len(pages) or pages[index] - pages[index - 1] > _GAP:
            yield pages[begin:index]
            begin = index
