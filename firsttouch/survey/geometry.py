# SPDX-License-Identifier: GPL-2.0
"""Measured caches: the ways, from the time per read, and the cost of a set conflict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from firsttouch.analysis.cache_statistics import knee
from firsttouch.survey.host import LEVELS, Geometry, Host
from firsttouch.survey.samples import Figure, Line, Samples
from firsttouch.survey.tasks import conflict_name, most_lines, strides

# A miss takes at least three times as long as a hit. With random replacement
# most reads just above the knee still hit, so that the mean rises by about half.
_RISE = 1.3
# All lines miss where the time has risen by this share of the whole rise.
_RISEN = 0.75

# The smallest ns per read, by the number of lines read in turn.
Curve = Mapping[int, float]


@dataclass(frozen=True)
class Knee:
    """Where a curve rises: `fit` is the most lines that hit, `missing` the fewest that miss.

    With a number of lines between the two, some reads miss. A cache with random
    replacement, or one that another thread of the core uses, has no sharp knee.
    """

    fit: int
    missing: int

    def allows(self, ways: int) -> bool:
        """Tell whether a set of `ways` lines has this knee."""
        return self.fit <= ways < self.missing

    @property
    def ways(self) -> int:
        """The most likely number of ways: the smallest even one, since few caches have an odd one.

        If the knee allows no even number, it is `fit`.
        """
        even = self.fit + self.fit % 2
        return even if self.allows(even) else self.fit


@dataclass(frozen=True)
class CacheFinding:
    """One cache: its geometry in sysfs (`reported`), and that from times of reads (`measured`).

    `curves` has a curve for each stride in bytes. If the curve of the way size
    is not complete, `unavailable` says why. The other figures are ns per read of
    lines of one set: `within` for as many lines as fit, `beyond` for the fewest
    that miss, `twice` for two times the ways. `lines` has the numbers of lines
    of `within` and `beyond`.
    """

    level: str
    reported: Geometry | None
    measured: Geometry | None
    curves: Mapping[int, Curve]
    agreement: str
    unavailable: str
    within: Figure | None
    beyond: Figure | None
    twice: Figure | None
    lines: tuple[int, int] | None = None

    @property
    def used(self) -> Geometry | None:
        """The geometry that the other experiments use: that of sysfs, or else the measured one."""
        return self.reported or self.measured


@dataclass(frozen=True)
class _Before:
    """The level above the cache that is examined: its knees by stride, and its times in ns.

    `hit` is the time of a read that hits in this level. `miss` is the time of a
    read that misses in it and hits in the next. Both are for lines that are one
    way size apart.
    """

    geometry: Geometry
    knees: Mapping[int, Knee]
    hit: float
    miss: float

    def hit_in_next(self, times: Curve, stride: int) -> float:
        """Return the time of a read that hits in the next cache, on a curve of `stride`.

        Large strides have other costs, such as TLB misses. Those are the time
        above `hit` while the lines still fit into this cache.
        """
        fit = self.knees[stride].fit if stride in self.knees else self.geometry.ways - 1
        return self.miss + max(times.get(fit, self.hit) - self.hit, 0.0)


def ns_per_read(line: Line) -> float:
    """Return the processor time of one read in ns."""
    return line.busy_ns / line.metrics["reads"]


def curve(samples: Samples, stride: int) -> Curve:
    """Return the smallest ns per read by number of lines, because noise only adds time."""
    times: dict[int, float] = {}
    n = 1
    while (least := samples.least(conflict_name(stride, n), ns_per_read)) is not None:
        times[n] = least
        n += 1
    return times


def find_knee(times: Curve, hit: float | None = None) -> Knee | None:
    """Return where a curve rises; None if it does not.

    `hit` is the time of a read that hits, in ns; by default it is the shortest
    of all times. Noise makes points slower, never faster. So slow points below
    the last fast one are ignored, and one slow point at the end is not a rise.
    """
    if not times:
        return None
    fast = min(times.values()) if hit is None else hit
    fit = knee(times, _RISE * fast)
    if fit is None or fit > max(times) - 2:
        return None
    slow = median(time for n, time in times.items() if n > fit)
    risen = fast + _RISEN * (slow - fast)
    return Knee(fit, min(n for n, time in times.items() if n > fit and time >= risen))


def find_geometry(
    level: str, knees: Mapping[int, Knee], reported: Geometry | None
) -> Geometry | None:
    """Return the geometry from the knees of several strides; `reported` if all knees allow it.

    A stride of the way size, or a multiple, puts all lines into one set. Half
    of the way size spreads them over two sets and shows twice the ways.
    """
    if not knees:
        return None
    if reported and max(knees) >= reported.way_size:
        expected = {stride: reported.ways * max(reported.way_size // stride, 1) for stride in knees}
        if all(knees[stride].allows(expected[stride]) for stride in knees):
            return reported
    ways = min(knee.ways for knee in knees.values())
    return Geometry(level, ways, min(s for s, knee in knees.items() if knee.ways == ways))


def examine_caches(host: Host, samples: Samples, *, virtual_time: bool) -> list[CacheFinding]:
    """Return the findings of the set-conflict tasks on each cache.

    In `virtual_time` all instructions take the same time, so that caches have
    no effect on it.
    """
    findings: list[CacheFinding] = []
    # The time of a hit in this cache is that of lines that miss in the level above.
    before: _Before | None = None
    blind = "the guest's clock counts instructions, not the time of caches" if virtual_time else ""
    for level in LEVELS:
        tried = strides(level, host)
        curves = {stride: points for stride in tried if (points := curve(samples, stride))}
        # The end of a curve shows whether the rise is real, so incomplete curves are not used.
        whole = {s: points for s, points in curves.items() if len(points) == most_lines(s, host)}
        knees = {
            stride: knee
            for stride, times in whole.items()
            if (knee := find_knee(times, before.hit_in_next(times, stride) if before else None))
        }
        reported = host.geometry(level)
        needed = reported.way_size if reported else min(tried)
        missing = conflict_name(needed, len(curves.get(needed, {})) + 1)
        unavailable = "" if needed in whole else blind or samples.reason(missing)
        measured = None if unavailable else find_geometry(level, knees, reported)
        finding = CacheFinding(
            level, reported, measured, curves,
            _agreement(reported, measured, knees, unavailable, host), unavailable,
            None, None, None,
        )  # fmt: skip
        if finding.used:
            finding = _timed(finding, finding.used, knees, samples, before)
        findings.append(finding)
        before = _before(finding, knees)
    return findings


def _before(finding: CacheFinding, knees: Mapping[int, Knee]) -> _Before | None:
    """Return the times and knees of this cache for the examination of the next."""
    used = finding.used
    times = finding.curves.get(used.way_size, {}) if used else {}
    if not used or not times:
        return None
    missing = knees[used.way_size].missing if used.way_size in knees else used.ways + 1
    beyond = [time for n, time in times.items() if n >= missing]
    return _Before(used, knees, min(times.values()), median(beyond)) if beyond else None


def _timed(
    finding: CacheFinding,
    used: Geometry,
    knees: Mapping[int, Knee],
    samples: Samples,
    before: _Before | None,
) -> CacheFinding:
    """Return the finding with its times, at the edges of the knee if there is one."""
    shown = knees.get(used.way_size)
    fit, missing = (shown.fit, shown.missing) if shown else (used.ways, used.ways + 1)

    def time(geometry: Geometry, n: int) -> Figure | None:
        return samples.figure(conflict_name(geometry.way_size, n), ns_per_read)

    within = time(used, fit)
    if before and fit <= before.geometry.ways:
        # So few lines hit in the level above. Lines that conflict there hit in this cache.
        within = time(before.geometry, missing)
    return replace(
        finding,
        within=within,
        beyond=time(used, missing),
        twice=time(used, 2 * used.ways),
        lines=(fit, missing),
    )


def _agreement(
    reported: Geometry | None,
    measured: Geometry | None,
    knees: Mapping[int, Knee],
    unavailable: str,
    host: Host,
) -> str:
    if unavailable:
        return f"not measured: {unavailable}"
    if measured is None:
        sentence = "the time of a read does not rise with the lines of one set"
        if host.virtual and reported and reported.way_size > host.page_size:
            # Guest and host addresses have the same bits only within a page.
            sentence += ", because this virtual machine's physical addresses are not the host's"
        return sentence
    rise = f"the time of a read rises after {measured.ways} lines of one set"
    if reported is None:
        return f"{rise}, which shows {measured}"
    if reported == measured:
        shown = knees.get(measured.way_size, Knee(measured.ways, measured.ways + 1))
        if (shown.fit, shown.missing) != (measured.ways, measured.ways + 1):
            rise = f"the time of a read rises from {shown.fit} to {shown.missing} lines of one set"
        return f"{rise}, which agrees with sysfs"
    return f"{rise}, which shows {measured} and does not agree with sysfs"
