# SPDX-License-Identifier: GPL-2.0
"""Metrics of a result, from what ftbench printed and the PMU's counts by region; and cases.

A case is one combination of parameters of an experiment, with its arms side by side. pmu/README.md
explains each count of the PMU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from firsttouch.catalog.arms import BASE
from firsttouch.catalog.contract import HIDDEN
from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.lab.results import TRACE, Result
from firsttouch.quantities import parse_size
from firsttouch.tables import Fields, Json
from firsttouch.trace.sites import Trace, parse_trace
from firsttouch.trace.spaces import ANONYMOUS
from firsttouch.vm.guest import Counts

# Cache counts are valid if the model saw at least this many accesses for each access that it did
# not see: that may be a miss, and with LRU cause another. An old QEMU always hides a few at the
# kernel's ticks.
_SEEN_PER_UNSEEN = 10_000
_HIDDEN = "QEMU did not show the addresses of all accesses"
_WHOLE_TICKS = (
    "QEMU runs one CPU at a time, for a whole tick: no CPU waits for a lock that another holds"
)


@dataclass(frozen=True)
class Measurement:
    """The figures of one result: metrics by name, and why others are not available.

    `misses` are the cache misses of the accesses that the model saw, by the
    name of their metric, also where these are too few for the metric; it did
    not see `unseen` accesses. `timeline` has each fault, if the experiment asked for
    samples: nanoseconds since the first touch began, and the base page.
    """

    result: Result
    metrics: Mapping[str, float]
    missing: Mapping[str, str]
    timeline: Sequence[tuple[int, int]] = ()
    misses: Mapping[str, float] = field(default_factory=dict)
    unseen: int = 0


def measure(result: Result, experiment: Experiment) -> Measurement:
    """Return the figures of `result`; UserError if its lines are not ftbench's."""
    if not result.lines:
        raise Fields("a result", {}).error("lines", "is empty: its command printed nothing.")
    line = Fields(f"the result of {result.cell.title}", result.lines[-1])
    metrics = line.table("metrics").values_of(float)
    missing = line.table("unavailable").values_of(str)
    misses: Counter[str] = Counter()
    unseen = 0
    if result.counts is not None:
        for region in result.counts.regions:
            table = Fields(line.file, region, "region")
            counted = _count(table)
            if cached := _caches(table):
                hidden = _hidden(table, result.counts)
                misses.update({name: cached[name] for name in cached if name.endswith("_misses")})
                unseen += hidden
                if hidden * _SEEN_PER_UNSEEN <= cached["l1d_accesses"]:
                    counted |= cached
                else:
                    missing.update(dict.fromkeys(cached, _HIDDEN))
            for name, value in counted.items():
                metrics[name] = metrics.get(name, 0) + value
    _combine(metrics, missing, result.cell.cpus)
    for each in result.lines:
        if TRACE in each:
            metrics |= _recorded(parse_trace(Fields(line.file, each).table(TRACE)))
    for metric in experiment.metrics:
        if metric.name not in metrics and metric.name not in missing:
            missing[metric.name] = _why_not(metric.name, metrics, missing)
    return Measurement(result, metrics, missing, _timeline(line), misses, unseen)


def _combine(metrics: dict[str, float], missing: dict[str, str], cpus: int) -> None:
    allocated = [count for name, count in metrics.items() if name.startswith("pgalloc_")]
    if allocated:
        metrics["pages_allocated"] = sum(allocated)
    if "tlbi_broadcast" in metrics:
        metrics["tlbi_answers"] = metrics["tlbi_broadcast"] * (cpus - 1)
    if "aborts" in metrics and "page_faults" in metrics:
        retries = metrics["aborts"] - metrics["page_faults"]
        if retries < 0:
            missing["fault_retries"] = "the kernel took faults of its own, without an exception"
        else:
            metrics["fault_retries"] = retries


def _recorded(trace: Trace) -> dict[str, float]:
    atomic, exclusive = (trace.doubles_of(kind=kind) for kind in ("atomic", "load-exclusive"))
    return {
        "faults": trace.faults,
        "doubles": trace.doubles,
        "doubles_atomic": atomic,
        "doubles_exclusive": exclusive,
        "doubles_apart": trace.doubles - atomic - exclusive,
        "doubles_in_files": trace.doubles - trace.doubles_of(memory=ANONYMOUS),
        # By a kernel with vm.write_intent.
        "removed_by_rmw": trace.doubles_of(kind="atomic", memory=ANONYMOUS),
        "faults_shared": trace.fault_kinds.get("shared", 0),
        "resident": trace.resident,
    }


def _why_not(metric: str, metrics: Mapping[str, float], missing: Mapping[str, str]) -> str:
    if metric in HIDDEN:
        return _WHOLE_TICKS
    if not metrics and missing:
        # The CPU lacks the instruction, or the kernel the page size: all metrics
        # are missing for that reason.
        return next(iter(missing.values()))
    return "neither ftbench nor the PMU plugin reported it"


def _timeline(line: Fields) -> tuple[tuple[int, int], ...]:
    return tuple(
        (int(entry[0]), int(entry[1]))
        for entry in line.take("timeline", list, [])
        if isinstance(entry, list) and len(entry) == 3
    )


def _count(region: Fields) -> dict[str, int]:
    user, kernel = _modes(region)

    def both(name: str) -> int:
        return user.take(name, int) + kernel.take(name, int)

    tlbi, broadcast = (region.table("tlbi").take(name, int) for name in ("total", "broadcast"))
    return {
        "instructions_user": user.take("instructions", int),
        "instructions_kernel": kernel.take("instructions", int),
        "tlbi": tlbi,
        "tlbi_broadcast": broadcast,
        "tlbi_local": tlbi - broadcast,
        "dsb": both("dsb"),
        "isb": both("isb"),
        "ipi": both("ipi"),
        "aborts": both("exceptions_taken_sync") - both("svc"),
    }


def _caches(region: Fields) -> dict[str, int]:
    modes = _modes(region)
    return {
        f"{level}_{what}": sum(mode.table(level).take(what, int) for mode in modes)
        for level in ("l1d", "l2")
        for what in ("accesses", "misses")
        if modes[-1].has(level)
    }


def _hidden(region: Fields, counts: Counts) -> int:
    """Return the accesses that the caches did not see, DC ZVA instructions among them."""
    modelled = "dc_zva_lines" not in counts.not_modelled
    names = ("dc_zva_unplaced" if modelled else "dc_zva", "untranslated_accesses")
    return sum(mode.take(name, int) for name in names for mode in _modes(region))


def _modes(region: Fields) -> tuple[Fields, Fields]:
    return region.table("user"), region.table("kernel")


# The size of a page where a cell asks for none, and of a base page in every guest.
BASE_PAGE = "4k"


@dataclass(frozen=True, order=True)
class Platform:
    """Where cells ran: a kernel release on a machine of the catalogue, in a setting or in none."""

    release: str
    machine: str
    setting: str = ""

    def __str__(self) -> str:
        return f"{self.release} on {self.machine}{self.setting and f', {self.setting}'}"


@dataclass(frozen=True)
class Case:
    """One combination of parameters of an experiment on a platform; a measurement for each arm.

    All of them ran in the same `layout`.
    """

    platform: Platform
    experiment: Experiment
    params: Params
    arms: Mapping[str, Measurement]
    layout: int = 0

    def value(self, arm: str, metric: str) -> float | None:
        return self.arms[arm].metrics.get(metric) if arm in self.arms else None

    def values(self, metric: str) -> dict[str, float]:
        values = {arm: self.value(arm, metric) for arm in self.arms}
        return {arm: value for arm, value in values.items() if value is not None}

    def pair(self) -> tuple[str, str] | None:
        """Return the two arms whose change is reported, the base first; None for fewer than two.

        They are stock and the arm that the experiment compares. If that arm is
        missing, the last arm takes its place; if stock is missing, the first
        arm does. Arms have the catalogue's order.
        """
        arms = list(self.arms)
        if BASE in arms and self.experiment.compare in arms and self.experiment.compare != BASE:
            return BASE, self.experiment.compare
        others = [arm for arm in arms if arm != BASE]
        if BASE in arms and others:
            return BASE, others[-1]
        return (others[0], others[-1]) if len(others) > 1 else None

    def command(self, arm: str) -> str:
        return self.arms[arm].result.provenance.command

    def document(self) -> dict[str, Json]:
        return {
            "release": self.platform.release,
            "machine": self.platform.machine,
            "experiment": self.experiment.name,
            "params": dict(self.params),
        }

    def number(self, name: str) -> int:
        """Return the value of a whole-number parameter; 0 if it is missing or not a number."""
        value = self.params.get(name, 0)
        return value if isinstance(value, int) else 0

    def pages(self, of: Value | None = None) -> float | None:
        """Return how many pages are touched, of size `of` or the size in ``page``.

        Returns None without a ``size``.
        """
        try:
            size = parse_size(of or self.params.get("page", BASE_PAGE))
            return self.number("size") / size or None
        except ValueError:
            return None

    def per_page(self, arm: str, metric: str) -> float | None:
        value, pages = self.value(arm, metric), self.pages()
        return None if value is None or pages is None else value / pages
