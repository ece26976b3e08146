# SPDX-License-Identifier: GPL-2.0
"""Statistics of the cache experiments: knees, spreads over hot colours, zero-page footprints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from firsttouch.analysis.cases import Case, Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Params, Value

# Lines fit into a set if at most this share of their reads misses: 1 %. Timer ticks of
# Debian's kernel make a set of lines that fits miss once in some hundred accesses.
FITTING = 0.01
MISSES = ("l1d_misses", "l2_misses")
# The stride of a dense zero-scan, in bytes: one line.
_DENSE = 64
# The arms that have as many zero pages as a cache level has colours.
_ARMS_OF = {"l1d": ("color", "color-alone"), "l2": ("color-l2",)}


def knee(values: Mapping[int, float], limit: float) -> int | None:
    """Return the largest N at which the value is at most `limit`; None if there is none."""
    return max((n for n, value in values.items() if value <= limit), default=None)


def running(dataset: Dataset, platform: Platform, benchmark: str) -> list[Case]:
    """Return the cases on a platform whose experiments run `benchmark` of ftbench."""
    return [
        case
        for case in dataset.cases
        if case.platform == platform and case.experiment.runs == benchmark
    ]


def alike(cases: Iterable[Case], name: str) -> list[tuple[Params, list[Case]]]:
    """Return groups of cases that differ only in parameter `name`, each with the other values."""
    groups: dict[tuple[tuple[str, Value], ...], list[Case]] = {}
    for case in cases:
        rest = tuple((key, value) for key, value in case.params.items() if key != name)
        groups.setdefault(rest, []).append(case)
    return [(dict(rest), members) for rest, members in groups.items()]


def per_round(case: Case, metric: str) -> dict[str, float]:
    """Return `metric` per round of the case for each arm that measured it."""
    rounds = case.number("rounds") or 1
    return {arm: value / rounds for arm, value in case.values(metric).items()}


@dataclass(frozen=True)
class Curve:
    """L1D misses per read, by arm and by N, the number of lines that are read in turn.

    `cases` differ only in N; `rest` has their other parameters.
    """

    rest: Params
    cases: Sequence[Case]
    arms: Mapping[str, Mapping[int, float]]


def conflict_curves(cases: Iterable[Case]) -> list[Curve]:
    """Return a curve for each combination of the parameters other than N."""
    usable = [
        case
        for case in cases
        if case.number("n") > 0 and case.number("rounds") > 0 and case.values("l1d_misses")
    ]
    curves = []
    for rest, members in alike(usable, "n"):
        members.sort(key=lambda case: case.number("n"))
        arms: dict[str, dict[int, float]] = {}
        for case in members:
            for arm, misses in per_round(case, "l1d_misses").items():
                arms.setdefault(arm, {})[case.number("n")] = misses / case.number("n")
        curves.append(Curve(rest, members, arms))
    return curves


@dataclass(frozen=True)
class Spread:
    """Misses per round over the colours of the hot lines; `measured` of `colors` have a figure."""

    best: float
    mean: float
    worst: float
    measured: int
    colors: int

    @property
    def whole(self) -> bool:
        """Whether every colour was measured; a missing one might be the worst."""
        return self.measured == self.colors


@dataclass(frozen=True)
class Sweep:
    """Cases of ``zero-conflict`` that differ only in the colour of the hot lines.

    `level` is the cache in which the hot lines fill a set. `rest` has the other
    parameters.
    """

    level: str
    rest: Params
    cases: Sequence[Case]

    @property
    def metric(self) -> str:
        """The metric that counts the misses in this level."""
        return f"{self.level}_misses"

    @property
    def colors(self) -> int:
        """Number of colours that the hot lines can have."""
        return 1 + max(case.number("hot_color") for case in self.cases)

    def series(self, metric: str) -> dict[str, dict[int, float]]:
        """Return misses per round by arm and by hot colour, in order of colour."""
        series: dict[str, dict[int, float]] = {}
        for case in self.cases:
            for arm, misses in per_round(case, metric).items():
                series.setdefault(arm, {})[case.number("hot_color")] = misses
        return series

    def spreads(self, metric: str) -> dict[str, Spread]:
        """Return the spread over hot colours for each arm."""
        return {
            arm: Spread(
                min(points.values()), fmean(points.values()), max(points.values()),
                len(points), self.colors,
            )
            for arm, points in self.series(metric).items()
        }  # fmt: skip


def sweeps(cases: Iterable[Case]) -> list[Sweep]:
    """Return the sweeps over hot colours; those of the L2 first, then by falling rounds."""
    usable = [
        case
        for case in cases
        if isinstance(case.params.get("hot_color"), int) and case.number("rounds") > 0
    ]
    measured = []
    for rest, members in alike(usable, "hot_color"):
        members.sort(key=lambda case: case.number("hot_color"))
        sweep = Sweep(str(rest.get("level", "")), rest, members)
        if any(case.values(sweep.metric) for case in members):
            measured.append(sweep)
    return sorted(
        measured, key=lambda sweep: (sweep.level != "l2", -sweep.cases[0].number("rounds"))
    )


@dataclass(frozen=True)
class Footprint:
    """Misses per round of reading zero pages beside a working set, by arm; sizes in bytes."""

    stride: int
    working_set: int
    metric: str
    arms: Mapping[str, float]


def footprints(cases: Iterable[Case]) -> list[Footprint]:
    """Return the misses of ``zero-scan`` for each case and cache level."""
    return [
        Footprint(case.number("stride"), case.number("working_set"), metric, arms)
        for case in cases
        if {"stride", "working_set"} <= case.params.keys()
        for metric in MISSES
        if (arms := per_round(case, metric))
    ]


@dataclass(frozen=True)
class ColoredCache:
    """The effect of colours on one cache, in misses per round of ``zero-conflict``.

    `stock` has one zero page, `colored` one zero page per colour. `beside` has
    the misses of a dense ``zero-scan`` beside a working set that just fits, for
    stock and colored.
    """

    platform: Platform
    level: str
    colors: int
    stock: Spread
    colored: Spread
    beside: tuple[float, float]


def colored_caches(dataset: Dataset) -> list[ColoredCache]:
    """Return the effect of colours on each cache for which all figures were measured."""
    caches_measured = []
    for platform in dataset.platforms():
        machine = dataset.catalog.machines.get(platform.machine)
        if machine is None:
            continue
        scans = footprints(running(dataset, platform, "zero-scan"))
        caches = {"l1d": machine.cpus[0].l1d, "l2": machine.cpus[0].l2}
        seen: set[str] = set()
        for sweep in sweeps(running(dataset, platform, "zero-conflict")):
            cache = caches.get(sweep.level)
            if cache is None or sweep.level in seen:
                continue
            spread = sweep.spreads(sweep.metric)
            arm = next((name for name in _ARMS_OF[sweep.level] if name in spread), None)
            if arm is None:
                continue
            scan = next(
                (
                    scan.arms
                    for scan in scans
                    if (scan.stride, scan.working_set, scan.metric)
                    == (_DENSE, cache.size, sweep.metric)
                ),
                {},
            )
            if all(a in scan and a in spread and spread[a].whole for a in (BASE, arm)):
                seen.add(sweep.level)
                caches_measured.append(
                    ColoredCache(
                        platform, sweep.level, cache.colors, spread[BASE], spread[arm],
                        (scan[BASE], scan[arm]),
                    )
                )  # fmt: skip
    return sorted(caches_measured, key=lambda line: (line.platform, line.level))
