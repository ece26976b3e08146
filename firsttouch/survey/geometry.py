# SPDX-License-Identifier: GPL-2.0
"""Caches as measured: their ways, from the time per read, and what a set conflict costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.analysis.cache_statistics import knee
from firsttouch.survey.host import LEVELS, Geometry, Host
from firsttouch.survey.samples import Figure, Line, Samples
from firsttouch.survey.tasks import conflict_name, strides

# A miss takes at least three times as long as a hit. With random replacement
# most reads just behind the knee still hit: the mean rises by about half.
_RISE = 1.3

# The least ns per read, by the number of lines read in turn.
Curve = Mapping[int, float]


@dataclass(frozen=True)
class CacheFinding:
    """One cache: its geometry in sysfs (`told`), and what time per read shows (`measured`).

    `curves` has a curve for each stride in bytes; without any, `unavailable`
    says why. `within` is ns per read of as many lines of one set as fit,
    `beyond` of one line more than there are ways, `twice` of twice as many.
    """

    level: str
    told: Geometry | None
    measured: Geometry | None
    curves: Mapping[int, Curve]
    agreement: str
    unavailable: str
    within: Figure | None
    beyond: Figure | None
    twice: Figure | None

    @property
    def used(self) -> Geometry | None:
        """The geometry that the other experiments use: sysfs's if there is one."""
        return self.told or self.measured


def ns_per_read(line: Line) -> float:
    """Return the processor time of one read in ns."""
    return line.busy_ns / line.metrics["reads"]


def curve(samples: Samples, stride: int) -> Curve:
    """Return the least ns per read by number of lines: noise only ever adds time."""
    found: dict[int, float] = {}
    n = 1
    while (least := samples.least(conflict_name(stride, n), ns_per_read)) is not None:
        found[n] = least
        n += 1
    return found


def ways_shown(times: Curve, hit: float | None = None) -> int | None:
    """Return the knee of a curve, the most lines that still fit; None if time never rises.

    `hit` is the time of a read that hits, in ns: by default the shortest of
    all. Noise makes a point too slow and never too fast, so slow points below
    the last fast one do not count, and one slow point at the end is no rise.
    """
    if not times:
        return None
    last = knee(times, _RISE * (min(times.values()) if hit is None else hit))
    return last if last is not None and last <= max(times) - 2 else None


def find_geometry(
    level: str, curves: Mapping[int, Curve], hit: float | None = None
) -> Geometry | None:
    """Return the geometry that the curves of several strides show.

    A stride of a way's size or a multiple puts all lines into one set; half
    of that spreads them over two sets and shows twice the ways.
    """
    shown = {stride: ways_shown(times, hit) for stride, times in curves.items()}
    found = {stride: ways for stride, ways in shown.items() if ways}
    if not found:
        return None
    ways = min(found.values())
    return Geometry(level, ways, min(stride for stride in found if found[stride] == ways))


def examine_caches(host: Host, samples: Samples, *, virtual_time: bool) -> list[CacheFinding]:
    """Return what the set-conflict tasks show of each cache.

    In `virtual_time` all instructions take the same time and no cache shows.
    """
    findings: list[CacheFinding] = []
    # A hit in this cache is timed with lines that miss in the one before.
    before: Geometry | None = None
    blind = "the guest's clock counts instructions, in which no cache shows" if virtual_time else ""
    for level in LEVELS:
        tried = strides(level, host)
        curves = {stride: points for stride in tried if (points := curve(samples, stride))}
        reported = host.geometry(level)
        measured = find_geometry(level, curves, _hit(samples, before) if before else None)
        used = reported or measured
        unavailable = "" if curves else blind or samples.reason(conflict_name(tried[0], 1))
        findings.append(
            CacheFinding(
                level,
                reported,
                measured,
                curves,
                _agreement(reported, measured, unavailable, host),
                unavailable,
                *(_times(samples, used, before) if used else (None, None, None)),
            )
        )
        before = used
    return findings


def _hit(samples: Samples, before: Geometry) -> float | None:
    """Return the time of a read that misses in the cache `before` and hits in the next."""
    times = curve(samples, before.way_size)
    return min((time for n, time in times.items() if n > before.ways), default=None)


def _times(
    samples: Samples, used: Geometry, before: Geometry | None
) -> tuple[Figure | None, Figure | None, Figure | None]:
    """Return `within`, `beyond` and `twice` of a CacheFinding."""

    def time(geometry: Geometry, n: int) -> Figure | None:
        return samples.figure(conflict_name(geometry.way_size, n), ns_per_read)

    # As many lines as `beyond` reads, all in one set of the cache before: they hit in this one.
    within = time(before, used.ways + 1) if before else time(used, used.ways)
    return within, time(used, used.ways + 1), time(used, 2 * used.ways)


def _agreement(
    reported: Geometry | None, measured: Geometry | None, unavailable: str, host: Host
) -> str:
    if unavailable:
        return f"not measured: {unavailable}"
    if measured is None:
        sentence = "the time of a read does not rise with the lines of one set"
        if host.virtual and reported and reported.way_size > host.page_size:
            # Only within a page are the guest's and the host's address bits the same.
            sentence += ", since this virtual machine's physical addresses are not the host's"
        return sentence
    rise = f"the time of a read rises behind {measured.ways} lines of one set"
    if reported is None:
        return f"{rise}, which shows {measured}"
    if reported == measured:
        return f"{rise}, which agrees"
    return f"{rise}, which shows {measured} and does not agree"
