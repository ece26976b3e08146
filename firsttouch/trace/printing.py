# SPDX-License-Identifier: GPL-2.0
"""A trace on the terminal: sentences, and a table of the sites with most doubles."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from firsttouch.finder.sites import REMEDIES, Site, Trace
from firsttouch.finder.spaces import ANONYMOUS
from firsttouch.output.plain import may_wrap, plain, plain_table, print_table
from firsttouch.trace.sentences import between, percent

_SITES = 10


def print_trace(trace: Trace, sentences: Sequence[str], console: Console) -> None:
    """Print the answer, what follows from it, and the top sites."""
    first, *others = sentences
    console.print(plain(first, "bold"))
    for sentence in others:
        console.print(plain(sentence))
    if not trace.sites:
        return
    console.print()
    table = plain_table((), ("doubles", "of all"), ("where", "kind", "removed by"))
    may_wrap(table, 2, 24)
    may_wrap(table, 4, 10)
    for site in trace.sites[:_SITES]:
        table.add_row(
            plain(f"{site.doubles:,}"),
            plain(percent(site.doubles, trace.doubles)),
            plain(between(site)),
            plain(site.kind),
            plain(remedies_of(site)),
        )
    print_table(table, console)
    left = trace.sites[_SITES:]
    if left:
        rest = sum(site.doubles for site in left)
        console.print(plain(f"and {len(left):,} more sites with {rest:,} doubles", "dim"))


def remedies_of(site: Site) -> str:
    """Return what removes the doubles of a site, each with its number unless it is all."""
    if site.memory != ANONYMOUS and not any(site.removable.values()):
        return f"nothing: {site.memory}"
    return ", ".join(
        remedy if count == site.doubles else f"{remedy} ({count:,})"
        for remedy in REMEDIES
        if (count := site.removable[remedy])
    )
