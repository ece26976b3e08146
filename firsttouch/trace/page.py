# SPDX-License-Identifier: GPL-2.0
"""trace.html: pictures, remedies to copy, places, doubles, and whose the faults are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from firsttouch.quantities import format_share
from firsttouch.trace.advice import advise, memory_of, saved_share, saved_time, tried_by
from firsttouch.trace.charts import (
    DARK,
    LIGHT,
    draw_calls,
    draw_map,
    draw_timeline,
    kind_chains,
    patterns,
)
from firsttouch.trace.sentences import between, command_line, named_threads, shares
from firsttouch.trace.sites import Trace
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import Totals
from firsttouch.views.html.charts import Chart, pictures
from firsttouch.views.html.page import page_template
from firsttouch.views.html.style import armless_style
from firsttouch.views.tables import Table

FILE_NAME = "trace.html"
# Doubles and processes that the page lists.
_SITES, _PROCESSES = 50, 20


def render_trace(trace: Trace, totals: Totals, symbols: Symbols, sentences: Sequence[str]) -> str:
    """Return trace.html: one file that loads nothing else."""
    return page_template("trace.html.j2").render(
        style=Markup(armless_style(LIGHT, DARK)),
        patterns=patterns(),
        command=command_line(trace),
        machine=trace.machine,
        kernel=trace.kernel,
        sentences=sentences,
        figures=list(_figures(trace, totals, symbols)),
        remedies=list(_remedies(trace)),
        places=_places(trace),
        sites=_sites(trace),
        members=list(_members(trace)),
    )


def _remedies(trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield what each remedy is, what it saves and costs, and its command."""
    for number, advice in enumerate(advise(trace), 1):
        remedy = advice.remedy
        facts = (
            f"-{saved_share(remedy, trace.faults)} faults",
            f"-{saved_time(remedy)}" if remedy.ns else "",
            f"+{memory_of(remedy)} at most" if remedy.memory else "no memory",
            tried_by(trace, number, advice),
        )
        yield advice.what, ", ".join(filter(None, facts)), advice.how


def _places(trace: Trace) -> Table:
    rows = []
    for place in trace.fault_places:
        callers = ", ".join(place.callers)
        for giver in place.givers[:1]:
            callers += f"; given back by {giver.call}(2) in {', '.join(giver.functions)}"
        size = f"{place.memory // 1024:,}"
        rows.append((place.where, f"{place.faults:,}", size, place.kind, callers))
    return Table("", ("Place", "Faults", "KiB", "Kind", "Called by"), rows, more=2)


def _sites(trace: Trace) -> Table:
    rows = [
        (between(site), f"{site.doubles:,}", site.kind, site.memory)
        for site in trace.sites[:_SITES]
    ]
    return Table("", ("Read, then written", "Doubles", "Kind", "Memory"), rows, more=2)


def _members(trace: Trace) -> Iterator[Table]:
    """Yield the kinds, and the programs, threads and processes that tell more than these."""
    kinds = [(name, f"{n:,}", format_share(n, trace.faults)) for name, n in shares(trace)]
    yield Table("", ("Kind", "Faults", "Share"), kinds)
    programs = trace.programs if len(trace.programs) > 1 else ()
    for head, members in (("Program", programs), ("Thread", named_threads(trace))):
        if members:
            rows = [(each.name, f"{each.members:,}", f"{each.faults:,}") for each in members]
            yield Table("", (head, f"{head}s", "Faults"), rows)
    if any(program.members > 1 for program in trace.programs):
        rows = [(str(p.pid), f"{p.faults:,}", p.name) for p in trace.processes[:_PROCESSES]]
        yield Table("", ("Process", "Faults", "Program"), rows, more=1)


def _figures(trace: Trace, totals: Totals, symbols: Symbols) -> Iterator[Chart]:
    if not totals.count:
        return
    kinds = ", ".join(f"{name} {count:,}" for name, count in shares(trace))
    counts = f"{trace.faults:,} faults in {trace.seconds:.2f} s: {kinds}."
    yield Chart(
        "Faults over time",
        "Each bar counts the faults of a part of the time, by kind.",
        *pictures("time", "Faults over time", counts, lambda width: draw_timeline(totals, width)),
    )
    if any(len(chain) > 1 for chain in totals.stacks):
        faults = kind_chains(totals, symbols)
        yield Chart(
            "Faults by the functions that were called",
            "A box is as wide as its share of the faults; below it is what it calls, and in the "
            "end the kind of the faults, in brackets.",
            *pictures("calls", "Faults by calls", counts, lambda width: draw_calls(faults, width)),
        )
    yield Chart(
        "The address space",
        "The process with most faults; each strip is a part of its addresses that it touched, "
        "with no large gap, by the kinds of faults that its pages had. "
        f"{trace.untouched:,} pages were read and never written.",
        *pictures(
            "map", "The address space", counts,
            lambda width: draw_map(totals, trace.page_size, width),
        ),
    )  # fmt: skip
