# SPDX-License-Identifier: GPL-2.0
"""A trace on the terminal: sentences, and a table of the sites with most doubles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console

from firsttouch.quantities import format_share
from firsttouch.trace.sentences import between, few_doubles
from firsttouch.trace.sites import REMEDIES, Site, Trace
from firsttouch.trace.spaces import ANONYMOUS
from firsttouch.views.terminal import may_wrap, plain, plain_table, print_table

_SITES = 10
# Characters of a place in the table of programs, for three arms beside it.
_PLACE = 36


def print_trace(trace: Trace, sentences: Sequence[str], console: Console) -> None:
    """Print the answer, what follows from it, and the top sites."""
    first, *others = sentences
    console.print(plain(first, "bold"))
    for sentence in others:
        console.print(plain(sentence))
    if trace.fault_places:
        console.print()
        _print_places(trace, console)
    if not trace.sites or few_doubles(trace):
        return
    console.print()
    table = plain_table((), ("doubles", "of all"), ("where", "kind", "removed by"))
    may_wrap(table, 2, 24)
    may_wrap(table, 4, 10)
    for site in trace.sites[:_SITES]:
        table.add_row(
            plain(f"{site.doubles:,}"),
            plain(format_share(site.doubles, trace.doubles)),
            plain(between(site)),
            plain(site.kind),
            plain(remedies_of(site)),
        )
    print_table(table, console)
    left = trace.sites[_SITES:]
    if left:
        rest = sum(site.doubles for site in left)
        console.print(plain(f"and {len(left):,} more sites with {rest:,} doubles", "dim"))


def _print_places(trace: Trace, console: Console) -> None:
    table = plain_table((), ("faults", "of all"), ("kind", "where", "called by"))
    may_wrap(table, 3, 24)
    may_wrap(table, 4, 16)
    for place in trace.fault_places[:_SITES]:
        table.add_row(
            plain(f"{place.faults:,}"),
            plain(format_share(place.faults, trace.faults)),
            plain(place.kind),
            plain(str(place.place)),
            plain(place.called_by),
        )
    print_table(table, console)


def print_programs(programs: Mapping[str, Mapping[str, Trace]], console: Console) -> None:
    """Print the doubles of programs on each arm, by program and arm; the largest share first.

    The place is the first in anonymous memory, on the first arm.
    """
    arms = list(dict.fromkeys(arm for traces in programs.values() for arm in traces))
    table = plain_table(
        ["program"], ["faults", *(f"doubles, {arm}" for arm in arms), "share"], ["first place"]
    )
    first = {name: next(iter(traces.values())) for name, traces in programs.items()}
    for name in sorted(first, key=lambda name: -first[name].doubles / max(first[name].faults, 1)):
        trace, traces = first[name], programs[name]
        site = first_place(trace.sites)
        table.add_row(
            plain(name),
            f"{trace.faults:,}",
            *(f"{traces[arm].doubles:,}" if arm in traces else "" for arm in arms),
            format_share(trace.doubles, trace.faults),
            plain(f"{site.doubles:,} {_shortened(str(site.read))}" if site else "none"),
        )
    print_table(table, console)


def _shortened(place: str) -> str:
    """Return the two ends of a long name."""
    half = _PLACE // 2
    return place if len(place) <= _PLACE else f"{place[: half - 3]}...{place[-half:]}"


def first_place(sites: Iterable[Site]) -> Site | None:
    """Return the site in anonymous memory with most doubles."""
    return next((site for site in sites if site.memory == ANONYMOUS), None)


def remedies_of(site: Site) -> str:
    """Return what removes the doubles of a site, each with its number unless it is all."""
    if site.memory != ANONYMOUS and not any(site.removable.values()):
        return f"nothing: {site.memory}"
    return ", ".join(
        remedy if count == site.doubles else f"{remedy} ({count:,})"
        for remedy in REMEDIES
        if (count := site.removable[remedy])
    )
