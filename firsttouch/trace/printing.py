# SPDX-License-Identifier: GPL-2.0
"""A trace on the terminal: the first screen, and a table of several programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from firsttouch.quantities import format_share
from firsttouch.trace.advice import (
    Advice,
    advise,
    memory_of,
    saved_share,
    saved_time,
    tried_by,
)
from firsttouch.trace.sentences import (
    command_line,
    doubles_line,
    doubts,
    few_doubles,
    headline,
    kinds_line,
)
from firsttouch.trace.sites import Site, Trace, shortened
from firsttouch.trace.spaces import ANONYMOUS
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import plain

# Places and lines that are printed, and faults of a program that has too few to say more.
_PLACES, _LINES = 5, 14
_TINY = 100
# Characters of a place in the table of programs, for three arms beside it.
_PLACE = 36


def print_trace(trace: Trace, console: Console, more: str) -> None:
    """Print the answer in at most 14 lines of 80 columns, and what makes it doubtful.

    `more` says where the rest is.
    """
    if trace.faults < _TINY:
        console.print(plain(f"{command_line(trace)}: only {trace.faults:,} page faults.", "bold"))
    else:
        console.print(_cut(headline(trace), console), style="bold")
        console.print(_cut(kinds_line(trace), console))
        advices = advise(trace)
        for number, advice in enumerate(advices, 1):
            _print_advice(trace, number, advice, console)
        doubles = not few_doubles(trace)
        for place in trace.fault_places[: _LINES - 3 - 2 * len(advices) - doubles][:_PLACES]:
            called = f" < {' < '.join(map(shortened, place.callers))}" if place.callers else ""
            share = format_share(place.faults, trace.faults)
            where = f"{place.faults:>9,} {share:>7}  {place.kind}: {place.where}{called}"
            console.print(_cut(where, console))
        if doubles:
            console.print(_cut(doubles_line(trace), console))
    for sentence in doubts(trace):
        console.print(plain(sentence))
    console.print(_cut(more, console))


def _print_advice(trace: Trace, number: int, advice: Advice, console: Console) -> None:
    remedy = advice.remedy
    faults = f"-{saved_share(remedy, trace.faults)}"
    time = f"-{saved_time(remedy)}" if remedy.ns else ""
    memory = f"+{memory_of(remedy)}" if remedy.memory else ""
    tried = tried_by(trace, number, advice)
    said = f"{number} {faults:>12}{time:>10}{memory:>10} {tried:7} {advice.what}"
    console.print(_cut(said, console))
    # A command is whole, to be pasted.
    console.print(plain(f"  {advice.how}"), soft_wrap=True)


def _cut(line: str, console: Console) -> Text:
    text = plain(line)
    text.truncate(console.width, overflow="ellipsis")
    return text


def print_programs(programs: Mapping[str, Mapping[str, Trace]], console: Console) -> None:
    """Print the doubles of programs on each arm, by program and arm; the largest share first.

    The place is the first in anonymous memory, on the first arm.
    """
    arms = list(dict.fromkeys(arm for traces in programs.values() for arm in traces))
    first = {name: next(iter(traces.values())) for name, traces in programs.items()}
    rows = []
    for name in sorted(first, key=lambda name: -first[name].doubles / max(first[name].faults, 1)):
        trace, traces = first[name], programs[name]
        site = first_place(trace.sites)
        doubles = (f"{traces[arm].doubles:,}" if arm in traces else "" for arm in arms)
        place = f"{site.doubles:,} {_shortened(str(site.read))}" if site else "none"
        share = format_share(trace.doubles, trace.faults)
        rows.append((name, f"{trace.faults:,}", *doubles, share, place))
    heads = ("program", "faults", *(f"doubles, {arm}" for arm in arms), "share", "first place")
    print_table(Table("", heads, rows, more=1), console)


def _shortened(place: str) -> str:
    """Return the two ends of a long name."""
    half = _PLACE // 2
    return place if len(place) <= _PLACE else f"{place[: half - 3]}...{place[-half:]}"


def first_place(sites: Iterable[Site]) -> Site | None:
    """Return the site in anonymous memory with most doubles."""
    return next((site for site in sites if site.memory == ANONYMOUS), None)
