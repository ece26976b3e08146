# SPDX-License-Identifier: GPL-2.0
"""Caches as measured: the knee of set-conflict by time per read, and what a conflict costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.quantities import format_size
from firsttouch.survey.host import Facts
from firsttouch.survey.tasks import LEVELS, Geometry, conflict_name, strides, told
from firsttouch.survey.samples import Figure, Line, Samples, busy_ns

# A read that misses takes at least three times as long as one that hits.
# Random replacement spares most reads just behind the knee, which leaves
# about half as much again on the average.
_RISE = 1.3

Curve = Mapping[int, float]


@dataclass(frozen=True)
class CacheFinding:
    """One cache: what the kernel tells of it and what time per read shows.

    `curves` has, by stride in bytes, the least ns per read for each number of
    places. `used` is the geometry that the other experiments went by.
    `within` is ns per read of places that still fit, `beyond` and `twice` of
    one place more than there are ways and of twice as many. `unavailable` says why there
    are no curves.
    """

    level: str
    told: Geometry | None
    measured: Geometry | None
    curves: dict[int, dict[int, float]]
    agreement: str
    unavailable: str
    within: Figure | None
    beyond: Figure | None
    twice: Figure | None

    @property
    def used(self) -> Geometry | None:
        """The kernel's word where there is one, else what was measured."""
        return self.told or self.measured


def ns_per_read(line: Line) -> float:
    """Return the processor time of one read in ns."""
    return busy_ns(line) / float(line["metrics"]["reads"])


def curve(samples: Samples, stride: int) -> dict[int, float]:
    """Return the least ns per read by number of places: noise only ever adds time."""
    found: dict[int, float] = {}
    n = 1
    while (least := samples.least(conflict_name(stride, n), ns_per_read)) is not None:
        found[n] = least
        n += 1
    return found


def knee(times: Curve, hit: float | None = None) -> int | None:
    """Return the greatest number of places that still fit: the ways; None if time never rises.

    `hit` is how long a read takes that the cache still serves, in ns: by
    default the shortest time of all. A disturbed point shows too long a time
    and never too short a one: what counts is the last point that did not rise.
    """
    if not times:
        return None
    limit = _RISE * (min(times.values()) if hit is None else hit)
    low = [n for n, time in times.items() if time <= limit]
    # One point above, at the end of the curve, may be a disturbed one.
    return max(low) if low and max(low) <= max(times) - 2 else None


def find_geometry(
    level: str, curves: Mapping[int, Curve], hit: float | None = None
) -> Geometry | None:
    """Return the geometry that the curves of several strides show.

    A stride of a way's size or a multiple puts all places into one set; half
    of that spreads them over two sets and shows twice the ways.
    """
    knees = {stride: knee(times, hit) for stride, times in sorted(curves.items())}
    seen = {stride: ways for stride, ways in knees.items() if ways}
    if not seen:
        return None
    ways = min(seen.values())
    way_size = min(stride for stride, found in seen.items() if found == ways)
    return Geometry(level, ways, way_size)


def _hit(samples: Samples, before: Geometry) -> float | None:
    """Return how long a read takes that misses in the cache `before` and hits in the next."""
    times = curve(samples, before.way_size)
    return min((time for n, time in times.items() if n > before.ways), default=None)


def examine_caches(facts: Facts, samples: Samples, *, virtual_time: bool) -> list[CacheFinding]:
    """Return what the set-conflict tasks show of each cache.

    In `virtual_time` every instruction takes as long as every other.
    """
    claims = {geometry.level: geometry for geometry in told(facts)}
    findings: list[CacheFinding] = []
    # What misses in the cache before and hits in this one: the places that
    # fill one set of the former.
    before: Geometry | None = None
    blind = "the guest's clock counts instructions, in which no cache shows" if virtual_time else ""
    for level in LEVELS:
        curves = {
            stride: points for stride in strides(level, facts) if (points := curve(samples, stride))
        }
        hit = _hit(samples, before) if before else None
        claim = claims.get(level)
        measured = find_geometry(level, curves, hit)
        used = claim or measured
        unavailable = "" if curves else blind or _reason(level, facts, samples)
        times: list[Figure | None] = [None, None, None]
        if used:
            fits = (before, used.ways + 1) if before else (used, used.ways)
            times = [
                samples.figure(conflict_name(geometry.way_size, n), ns_per_read)
                for geometry, n in (fits, (used, used.ways + 1), (used, 2 * used.ways))
            ]
        agreement = _agreement(claim, measured, unavailable, facts)
        findings.append(
            CacheFinding(level, claim, measured, curves, agreement, unavailable, *times)
        )
        before = used
    return findings


def _reason(level: str, facts: Facts, samples: Samples) -> str:
    return samples.reason(conflict_name(strides(level, facts)[0], 1))


def describe(geometry: Geometry) -> str:
    """Return a geometry in words: ``8 ways of 4 KiB``."""
    return f"{geometry.ways} ways of {format_size(geometry.way_size)}"


def _agreement(
    claim: Geometry | None, measured: Geometry | None, unavailable: str, facts: Facts
) -> str:
    if unavailable:
        return f"not measured: {unavailable}"
    if measured is None:
        sentence = "the time of a read does not rise with the lines of one set"
        if facts.virtual and claim and claim.way_size > facts.page_size:
            # Below a page's size the addresses of guest and host agree.
            sentence += ", since this virtual machine's physical addresses are not the host's"
        return sentence
    knee = f"the time of a read rises behind {measured.ways} lines of one set"
    if claim is None:
        return f"{knee}, which shows {describe(measured)}"
    if claim == measured:
        return f"{knee}, which agrees"
    return f"{knee}, which shows {describe(measured)} and does not agree"
