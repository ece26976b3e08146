# SPDX-License-Identifier: GPL-2.0
"""Makes the trace of a recording: its faults by what they are, its doubles by site."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from firsttouch.trace.fault_places import (
    fault_kinds,
    fault_places,
    members_of,
    processes,
)
from firsttouch.trace.records import Recording
from firsttouch.trace.remedies import AROUND
from firsttouch.trace.sites import (
    HUGE,
    POPULATE,
    REMEDIES,
    RMW,
    SOURCE,
    Location,
    Remedy,
    Site,
    Trace,
)
from firsttouch.trace.spaces import ANONYMOUS, Place
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import ATOMIC, BLOCK, Outcome, Pair, Totals

# Shares of the pages of such a block that the program touches: from the first on it is worth
# while to populate all of it, from the second on a huge page wastes less than it holds.
_POPULATED, _HUGE = 0.9, 0.5


def summarize(recording: Recording, totals: Totals, symbols: Symbols) -> Trace:
    """Return the trace of a recording whose events were read."""
    ending = recording.ending
    seconds = (ending.time - recording.time if ending else totals.timeline.last) / 1e9
    unseen = None
    if ending and not totals.detached and ending.minor + ending.major and not recording.attached:
        unseen = max(0, ending.minor + ending.major - ending.faults)
    kinds = fault_kinds(totals)
    sites = _sites(totals, symbols, recording.page_size)
    places = fault_places(totals, symbols, recording.page_size)
    return Trace(
        command=recording.command,
        machine=recording.machine,
        kernel=recording.kernel_release,
        page_size=recording.page_size,
        complete=ending is not None,
        status=ending.status if ending else None,
        seconds=seconds,
        faults=sum(kinds.values()),
        in_kernel=totals.in_kernel,
        anonymous=totals.anonymous,
        lost=max(0, ending.faults - totals.count) if ending else 0,
        unseen=unseen,
        major=ending.major if ending else 0,
        undecoded=totals.undecoded,
        untouched=totals.unwritten,
        sites=sites,
        resident=ending.resident * 1024 if ending else 0,
        unnamed=symbols.troubles(),
        exact=recording.says_mapped,
        system=ending.system / 1e9 if ending and ending.system else None,
        detached=tuple(dict.fromkeys(totals.detached)),
        fault_kinds=kinds,
        programs=members_of(totals.programs),
        threads=members_of(totals.threads),
        processes=processes(totals),
        remedies=tuple(
            Remedy(
                name,
                _saved(name, outcome, recording),
                outcome.most * recording.page_size,
                most=outcome.saved + outcome.chance if outcome.chance else 0,
            )
            for name, outcome in totals.outcomes.items()
        ),
        allocator=max(totals.allocators, key=lambda name: totals.allocators[name], default=""),
        no_huge=totals.no_huge,
        fault_places=places,
        calls=recording.says_calls,
        nameless=sum(
            sum(kinds)
            for places, kinds in zip(totals.stacks, totals.stack_kinds, strict=True)
            if not places[0].path and not symbols.function(places[0])
        ),
    )


def _saved(name: str, outcome: Outcome, recording: Recording) -> int:
    """Return the faults that a remedy saves.

    Fault-around maps what is in the page cache. A fault that has to read from a disk stays, and
    so does the next, which finds what that one read.
    """
    if name != AROUND or not recording.ending:
        return outcome.saved
    return max(0, outcome.saved - 2 * recording.ending.major)


def _sites(totals: Totals, symbols: Symbols, page_size: int) -> tuple[Site, ...]:
    """Return the sites, the one with most doubles first."""
    locations = symbols.locate(place for pair in totals.pairs for place in (pair.read, pair.write))
    dense = _dense(totals, page_size)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, pair in enumerate(totals.pairs):
        groups[_key(pair, locations)].append(index)
    sites = [
        _site(totals, sorted(members, key=lambda m: -totals.counts[m]), dense, locations)
        for members in groups.values()
    ]
    return tuple(sorted(sites, key=lambda site: (-site.doubles, str(site.read), str(site.write))))


def _key(pair: Pair, locations: Mapping[Place, Location]) -> tuple[str, ...]:
    """Return what the pairs of one site have in common: lines, or else functions or places."""
    places = (locations[place] for place in (pair.read, pair.write))
    return (pair.kind, pair.memory, *(f"{place.object} {place}" for place in places))


def _site(
    totals: Totals,
    members: list[int],
    dense: Mapping[int, Counter[str]],
    locations: Mapping[Place, Location],
) -> Site:
    pair = totals.pairs[members[0]]
    removable = dict.fromkeys(REMEDIES, 0)
    for member in members:
        for remedy, count in _removable(totals, member, dense).items():
            removable[remedy] += count
    return Site(
        pair.kind,
        pair.memory,
        locations[pair.read],
        locations[pair.write],
        pair.reading,
        pair.writing,
        sum(totals.counts[member] for member in members),
        removable,
    )


def _removable(totals: Totals, member: int, dense: Mapping[int, Counter[str]]) -> Mapping[str, int]:
    """Return how many doubles of a pair each remedy removes.

    A kernel upgrades reads of missing anonymous memory alone. To write first is
    possible everywhere, but the program does not write to a file's pages first
    where the loader does.
    """
    pair, count = totals.pairs[member], totals.counts[member]
    if pair.memory != ANONYMOUS:
        return {}
    upgraded = count if pair.kind == ATOMIC else 0
    return {RMW: upgraded, SOURCE: count, **dense.get(member, {})}


def _dense(totals: Totals, page_size: int) -> dict[int, Counter[str]]:
    """Return by pair how many of its doubles are in blocks that the program fills."""
    dense: dict[int, Counter[str]] = defaultdict(Counter)
    for pair, counts in totals.filled.items():
        for pages, count in counts.items():
            for remedy in _filled(pages * page_size / BLOCK):
                dense[pair][remedy] += count
    return dense


def _filled(share: float) -> Iterable[str]:
    if share >= _POPULATED:
        yield POPULATE
    if share >= _HUGE:
        yield HUGE
