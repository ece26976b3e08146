# SPDX-License-Identifier: GPL-2.0
"""Statistics of the cache experiments: spreads over hot colours, and what colours change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Case, Platform
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Params, Value

MISSES = ("l1d_misses", "l2_misses")
# The stride of a dense zero-scan, in bytes: one line.
_DENSE = 64
# The arms that have as many zero pages as a cache level has colours.
_ARMS_OF = {"l1d": ("color", "color-alone"), "l2": ("color-l2",)}


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
        return f"{self.level}_misses"

    @property
    def colors(self) -> int:
        return 1 + max(case.number("hot_color") for case in self.cases)

    def series(self, metric: str) -> dict[str, dict[int, float]]:
        """Return misses per round by arm and by hot colour, in order of colour."""
        series: dict[str, dict[int, float]] = {}
        for case in self.cases:
            for arm, misses in per_round(case, metric).items():
                series.setdefault(arm, {})[case.number("hot_color")] = misses
        return series

    def spreads(self, metric: str) -> dict[str, Spread]:
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
    found: dict[tuple[Platform, str], ColoredCache] = {}
    for platform in dataset.platforms():
        machine = dataset.catalog.machines.get(platform.machine)
        if machine is None:
            continue
        scans = running(dataset, platform, "zero-scan")
        caches = {"l1d": machine.cpus[0].l1d, "l2": machine.cpus[0].l2}
        for sweep in sweeps(running(dataset, platform, "zero-conflict")):
            cache, spread = caches.get(sweep.level), sweep.spreads(sweep.metric)
            arm = next((name for name in _ARMS_OF.get(sweep.level, ()) if name in spread), None)
            if cache is None or arm is None or (platform, sweep.level) in found:
                continue
            beside: dict[str, float] = {}
            for scan in scans:
                if (scan.params.get("stride"), scan.params.get("working_set")) == (
                    _DENSE, cache.size
                ):  # fmt: skip
                    beside = beside or per_round(scan, sweep.metric)
            if all(a in beside and a in spread and spread[a].whole for a in (BASE, arm)):
                found[platform, sweep.level] = ColoredCache(
                    platform, sweep.level, cache.colors, spread[BASE], spread[arm],
                    (beside[BASE], beside[arm]),
                )  # fmt: skip
    return [found[key] for key in sorted(found)]
