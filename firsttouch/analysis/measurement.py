# SPDX-License-Identifier: GPL-2.0
"""Metrics derived from a result: from what ftbench printed, and the PMU's counts by region.

pmu/README.md explains each count of the PMU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firsttouch.catalog.contract import HIDDEN
from firsttouch.catalog.experiments import Experiment
from firsttouch.finder.found import APART, ATOMIC, EXCLUSIVE, LOAD_STORE
from firsttouch.finder.sites import RMW, Trace
from firsttouch.finder.spaces import ANONYMOUS
from firsttouch.lab.results import Counts, Result
from firsttouch.lab.traces import trace_of
from firsttouch.tables import Table

# Cache counts are valid if the model saw at least this many accesses for each
# access that it did not see.
_SEEN_PER_UNSEEN = 10_000
_WHOLE_TICKS = (
    "QEMU runs one CPU at a time, for a whole tick: no CPU waits for a lock that another holds"
)


@dataclass(frozen=True)
class FaultSample:
    """One page fault: nanoseconds since the first touch began, base page, read or write."""

    time: int
    page: int
    write: bool


@dataclass(frozen=True)
class Timeline:
    """Each fault, if the experiment asked for samples; `absent` says why there are none."""

    samples: tuple[FaultSample, ...] = ()
    lost: int = 0
    absent: str = ""


@dataclass(frozen=True)
class Measurement:
    """The figures of one result: metrics by name, and why others are not available."""

    result: Result
    metrics: Mapping[str, float]
    missing: Mapping[str, str]
    timeline: Timeline = field(default_factory=Timeline)


def measure(result: Result, experiment: Experiment) -> Measurement:
    """Return the figures of `result`; UserError if its lines are not ftbench's."""
    if not result.lines:
        raise Table("a result", {}).error("lines", "is empty: its command printed nothing.")
    line = Table(f"the result of {result.cell.title}", result.lines[-1])
    metrics = line.table("metrics").numbers()
    missing = line.table("unavailable").values_of(str)
    if result.counts is not None:
        for region in result.counts.regions:
            counted, lost = _count(Table(line.file, region, "region"), result.counts)
            for name, value in counted.items():
                metrics[name] = metrics.get(name, 0) + value
            missing.update(lost)
    _combine(metrics, missing, result.cell.cpus)
    if trace := trace_of(result):
        metrics |= _recorded(trace)
    for metric in experiment.metrics:
        if metric.name not in metrics and metric.name not in missing:
            missing[metric.name] = _why_not(metric.name, metrics, missing)
    return Measurement(result, metrics, missing, _timeline(line))


def _combine(metrics: dict[str, float], missing: dict[str, str], cpus: int) -> None:
    """Add the metrics of COMBINED, or why one is missing."""
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
    """Return the metrics of RECORDED."""
    return {
        "faults": trace.faults,
        "doubles": trace.doubles,
        "doubles_atomic": trace.of_kind(ATOMIC),
        "doubles_exclusive": trace.of_kind(EXCLUSIVE),
        "doubles_load_store": trace.of_kind(LOAD_STORE),
        "doubles_apart": trace.of_kind(APART),
        "doubles_in_files": trace.doubles - trace.of_memory(ANONYMOUS),
        "removed_by_rmw": trace.removable(RMW),
        "resident": trace.resident,
    }


def _why_not(metric: str, metrics: Mapping[str, float], missing: Mapping[str, str]) -> str:
    """Return why the guest did not report `metric`."""
    if metric in HIDDEN:
        return _WHOLE_TICKS
    if not metrics and missing:
        # The CPU lacks the instruction, or the kernel the page size: all metrics
        # are missing for that reason.
        return next(iter(missing.values()))
    return f"neither ftbench nor the PMU plugin reported {metric}"


def _timeline(line: Table) -> Timeline:
    samples = line.take("timeline", list, [])
    return Timeline(
        tuple(
            FaultSample(int(entry[0]), int(entry[1]), bool(entry[2]))
            for entry in samples
            if isinstance(entry, list) and len(entry) == 3
        ),
        line.take("timeline_lost", int, 0),
        line.take("timeline_absent", str, ""),
    )


def _count(region: Table, counts: Counts) -> tuple[dict[str, int], dict[str, str]]:
    """Return the metrics of one region, and why the others are not available.

    An old QEMU always hides a few accesses at the kernel's ticks. Cache counts
    that leave out more than one access in 10,000 are not used.
    """
    modes = [region.table("user"), region.table("kernel")]
    user, kernel = modes

    def both(name: str) -> int:
        return sum(mode.take(name, int) for mode in modes)

    metrics = {
        "instructions_user": user.take("instructions", int),
        "instructions_kernel": kernel.take("instructions", int),
        "tlbi": region.table("tlbi").take("total", int),
        "dsb": both("dsb"),
        "isb": both("isb"),
    }
    # Raw results that are older than these counts lack them.
    if kernel.has("ipi"):
        broadcast = region.table("tlbi").take("broadcast", int)
        metrics |= {
            "tlbi_broadcast": broadcast,
            "tlbi_local": metrics["tlbi"] - broadcast,
            "ipi": both("ipi"),
            "aborts": both("exceptions_taken_sync") - both("svc"),
        }
    levels = [level for level in ("l1d", "l2") if kernel.has(level)]
    if not levels:
        return metrics, {}
    cached = {
        f"{level}_{what}": sum(mode.table(level).take(what, int) for mode in modes)
        for level in levels
        for what in ("accesses", "misses")
    }
    modelled = "dc_zva_lines" not in counts.not_modelled
    unplaced = both("dc_zva_unplaced" if modelled else "dc_zva")
    lost = both("untranslated_accesses")
    # A hidden access may be a miss that was not counted and, with LRU, cause another miss.
    if (unplaced + lost) * _SEEN_PER_UNSEEN <= cached["l1d_accesses"]:
        return {**metrics, **cached}, {}
    why = (
        f"QEMU did not show the addresses of {unplaced:,} DC ZVA instructions"
        if unplaced
        else f"QEMU did not show the address of {lost:,} accesses"
    )
    return metrics, dict.fromkeys(cached, why)
