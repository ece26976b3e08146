# SPDX-License-Identifier: GPL-2.0
"""What a survey's hardware counters counted, per page or per read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.survey.host import Host
from firsttouch.survey.samples import Figure, Line, Samples, figure
from firsttouch.survey.tasks import COUNTER_SETS, counted_name

_COUNTERS = {
    "core": ("cycles_user", "cycles_kernel", "instructions_user", "instructions_kernel"),
    "cache": ("l1d_loads", "l1d_load_misses", "llc_loads", "llc_load_misses"),
    "tlb": ("dtlb_loads", "dtlb_load_misses"),
}
# The works that counters measure: touches of two kinds, reads that fit and reads that conflict.
COUNTED = ("store", "ldadd", "hits", "conflict")


@dataclass(frozen=True)
class CounterFinding:
    """One hardware counter: a figure per page or per read for each work, or why it has none."""

    name: str
    figures: Mapping[str, Figure]
    unavailable: str


def counter_findings(host: Host, samples: Samples) -> tuple[CounterFinding, ...]:
    """Return a finding for each hardware counter that a survey asks for."""
    return tuple(
        _counter(counters, name, host, samples)
        for counters in COUNTER_SETS
        for name in _COUNTERS[counters]
    )


def _counter(counters: str, name: str, host: Host, samples: Samples) -> CounterFinding:
    figures: dict[str, Figure] = {}
    reason = ""
    for work in COUNTED:
        task = counted_name(counters, work)
        lines = samples.lines(task)
        counted = figure(
            _per_unit(name, line, host.page_size) for line in lines if name in line.metrics
        )
        if counted:
            figures[work] = counted
        elif samples.has(task) and not reason:
            reasons = (line.unavailable[name] for line in lines if name in line.unavailable)
            reason = next(reasons, samples.reason(task))
    reason = reason or samples.reason(counted_name(counters, COUNTED[0]))
    return CounterFinding(name, figures, "" if figures else reason)


def _per_unit(name: str, line: Line, page_size: int) -> float:
    """Return a count per base page touched, or per read."""
    if "reads" in line.metrics:
        return line.metrics[name] / line.metrics["reads"]
    return line.metrics[name] * page_size / line.number("size")
