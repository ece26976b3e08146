# SPDX-License-Identifier: GPL-2.0
"""trace.html: the answer, the sites with their source, faults over time, calls, addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from firsttouch.quantities import format_share
from firsttouch.trace.charts import draw_calls, draw_map, draw_timeline, kind_chains
from firsttouch.trace.palette import DARK, LIGHT, patterns
from firsttouch.trace.printing import remedies_of
from firsttouch.trace.sentences import (
    between,
    command_line,
    named_threads,
    several_processes,
    shares,
)
from firsttouch.trace.sites import Location, Site, Trace
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import Totals
from firsttouch.views.html.figure import Picture, pictures
from firsttouch.views.html.page import page_template
from firsttouch.views.html.style import armless_style

FILE_NAME = "trace.html"
_SITES = 50
# Processes that the page lists.
_PROCESSES = 20
# Lines of source around one.
_AROUND = 3
# Bytes of the largest file that counts as a source.
_SOURCE = 8 << 20


@dataclass(frozen=True)
class SourceLine:
    """A line of an excerpt; `here` marks the one that the excerpt is about."""

    number: int
    text: str
    here: bool


@dataclass(frozen=True)
class Excerpt:
    """The source around a place, and the instruction there."""

    title: str
    instruction: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True)
class SiteLine:
    """A site on the page; `anchor` is empty without source."""

    where: str
    doubles: str
    kind: str
    remedies: str
    anchor: str
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class TraceFigure:
    """A figure with its pictures for wide and narrow screens."""

    anchor: str
    heading: str
    caption: str
    wide: Picture
    narrow: Picture


def render_trace(trace: Trace, totals: Totals, symbols: Symbols, sentences: tuple[str, ...]) -> str:
    """Return trace.html: one file that loads nothing else."""
    return page_template("trace.html.j2").render(
        kinds=[(name, f"{n:,}", format_share(n, trace.faults)) for name, n in shares(trace)],
        programs=trace.programs if len(trace.programs) > 1 else (),
        threads=named_threads(trace),
        processes=several_processes(trace)[:_PROCESSES],
        places=trace.fault_places,
        style=Markup(armless_style(LIGHT, DARK)),
        patterns=patterns(),
        command=command_line(trace),
        machine=trace.machine,
        kernel=trace.kernel,
        sentences=sentences,
        sites=[_site_line(number, site) for number, site in enumerate(trace.sites[:_SITES])],
        figures=list(_figures(trace, totals, symbols)),
    )


def _site_line(number: int, site: Site) -> SiteLine:
    places = [("Read by", site.read, site.reading), ("Written by", site.write, site.writing)]
    excerpts = [
        Excerpt(f"{title} {place}:", instruction, lines)
        for title, place, instruction in places
        if (lines := _excerpt(place))
    ]
    return SiteLine(
        between(site),
        f"{site.doubles:,}",
        site.kind,
        remedies_of(site),
        f"site-{number}" if excerpts else "",
        tuple(excerpts),
    )


def _excerpt(place: Location) -> tuple[SourceLine, ...]:
    """Return the source around a place; nothing if it is not on this host."""
    if not place.line:
        return ()
    # DWARF may name anything: a FIFO, a device.
    file = Path(place.file)
    try:
        if not file.is_file() or file.stat().st_size > _SOURCE:
            return ()
        text = file.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    first = max(place.line - _AROUND, 1)
    return tuple(
        SourceLine(number, line, number == place.line)
        for number, line in enumerate(text[first - 1 : place.line + _AROUND], first)
    )


def _figures(trace: Trace, totals: Totals, symbols: Symbols) -> Iterator[TraceFigure]:
    if not totals.count:
        return
    kinds = ", ".join(f"{name} {count:,}" for name, count in shares(trace))
    counts = f"{trace.faults:,} faults in {trace.seconds:.2f} s: {kinds}."
    yield TraceFigure(
        "time",
        "Faults over time",
        "Each bar counts the faults of a part of the time, by kind.",
        *pictures(
            "time",
            "Page faults over time",
            counts,
            lambda width: draw_timeline(totals, width),
        ),
    )
    if any(len(chain) > 1 for chain in totals.stacks):
        yield _flames(totals, symbols, counts)
    yield TraceFigure(
        "map",
        "The address space",
        "The process with most faults; each strip is a part of its addresses that it touched, "
        "with no large gap, by the kinds of faults that its pages had.",
        *pictures(
            "map",
            "The touched pages of the address space",
            f"{counts} {trace.untouched:,} pages were read and never written.",
            lambda width: draw_map(totals, trace.page_size, width),
        ),
    )


def _flames(totals: Totals, symbols: Symbols, counts: str) -> TraceFigure:
    faults = kind_chains(totals, symbols)
    return TraceFigure(
        "calls",
        "Faults by the functions that were called",
        "A box is as wide as its share of the faults; below it is what it calls, and in the end "
        "the kind of the faults, in brackets. A program without frame pointers "
        "(-fno-omit-frame-pointer) shows its last function alone.",
        *pictures(
            "calls",
            "Faults by chain of calls",
            counts,
            lambda width: draw_calls(faults, width),
        ),
    )
