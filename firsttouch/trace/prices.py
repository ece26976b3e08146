# SPDX-License-Identifier: GPL-2.0
"""What faults cost in time, as a survey of the host measured it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.figures import Middle
from firsttouch.lab.results import FILE_NAME as RESULTS
from firsttouch.lab.results import timings_in
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.run import PRICES_FILE
from firsttouch.trace.kinds import NAMES, Kind
from firsttouch.trace.remedies import HEAP, KEEP, MTHP_64, SHARED, THP
from firsttouch.trace.sites import Remedy, Trace

# A survey's names of architectures.
_ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm64"}
_HUGE = {THP: "2m", HEAP: "2m", MTHP_64: "64k"}


def price(trace: Trace, directory: Path) -> Trace:
    """Return a trace with the prices of a survey of its kernel in `directory`, if one is there."""
    for file in (directory / RESULTS, directory / PRICES_FILE):
        if "host" in timings_in(file):
            survey = read_survey(file)
            host = survey.host.architecture, survey.host.kernel
            if host == (_ARCHITECTURES[trace.machine], trace.kernel):
                return _surveyed(trace, examine(survey), str(file))
    return trace


def _surveyed(trace: Trace, findings: Findings, source: str) -> Trace:
    store, both = _busy(findings, "store"), _busy(findings, "load-store")
    read = _busy(findings, "read")
    each = {Kind.FIRST_WRITE: store, Kind.AGAIN: store, Kind.STACK: store, Kind.ZERO_PAGE: read}
    # Of memory that is there already: the first process also pays for clearing it.
    each[Kind.SHARED_MEMORY] = _busy(findings, "shared")
    each[Kind.SECOND] = both.minus(read) if both and read else None
    known = [
        (trace.fault_kinds.get(NAMES[kind], 0), figure.median)
        for kind, figure in each.items()
        if figure and figure.median > 0
    ]
    remedies = tuple(
        replace(remedy, ns=_saved(remedy, findings, trace.page_size)) for remedy in trace.remedies
    )
    return replace(
        trace,
        priced=sum(faults for faults, _ in known),
        ns=sum(faults * ns for faults, ns in known),
        basis=source,
        remedies=remedies,
    )


def _busy(findings: Findings, kind: str, page: str = "base") -> Middle | None:
    """Return the processor time of a first touch, in ns a page."""
    touch = findings.touch(kind, page)
    return touch.busy.middle if touch and touch.busy else None


def _saved(remedy: Remedy, findings: Findings, page_size: int) -> float | None:
    """Return the ns that a remedy saves; None if the survey has no basis for it.

    A huge page is cleared as a whole.
    """
    store = _busy(findings, "store")
    if store is None:
        return None
    if remedy.name == SHARED:
        shared = _busy(findings, "shared")
        return remedy.saved * shared.median if shared else None
    if remedy.name == KEEP:
        return remedy.saved * store.median
    name = _HUGE.get(remedy.name)
    huge = findings.touch("store", name) if name else None
    if huge is None or huge.busy is None:
        return None
    brought = remedy.saved + remedy.memory / page_size
    return remedy.saved * store.median - brought * huge.busy.median * page_size / huge.page_size
