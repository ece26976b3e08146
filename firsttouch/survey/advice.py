# SPDX-License-Identifier: GPL-2.0
"""Advice that follows from a survey: how to populate memory, huge pages, JVMs, the series."""

from __future__ import annotations

from firsttouch.survey.findings import Findings, TouchFinding
from firsttouch.survey.formats import per_gib
from firsttouch.survey.host import WRITE_INTENT
from firsttouch.survey.samples import Figure
from firsttouch.survey.tasks import FLOOR


def advise(findings: Findings) -> list[str]:
    """Return what the user of the host can do today, in sentences."""
    return [
        *_populate_advice(findings),
        _thp_advice(findings),
        _jvm_advice(findings),
        *_series_advice(findings),
    ]


def _populate_advice(findings: Findings) -> list[str]:
    floor, store = findings.touch(FLOOR), findings.touch("store")
    worst = next(iter(findings.doubled), None)
    if worst and floor and worst.busy and floor.busy:
        return [
            "Populate by madvise(MADV_POPULATE_WRITE) (Linux 5.14), or by plain stores, before "
            f"atomics touch the memory: {_per_gib(floor, floor.busy, findings)} per GiB in place "
            f"of {_per_gib(worst, worst.busy, findings)}."
        ]
    if floor and store and floor.busy and store.busy and floor.busy.median < store.busy.median:
        return [
            "To populate memory ahead of use, madvise(MADV_POPULATE_WRITE) is the cheapest way: "
            f"{_per_gib(floor, floor.busy, findings)} per GiB in place of a store's "
            f"{_per_gib(store, store.busy, findings)}."
        ]
    return []


def _series_advice(findings: Findings) -> list[str]:
    host = findings.host
    if findings.doubled and host.write_intent:
        return [
            f"This kernel has write-intent faults, in mode {host.write_intent}: as root, "
            f"`echo exclusive > {WRITE_INTENT}` ends the double fault."
        ]
    if findings.doubled:
        return [
            "The kernel series ends the double fault: `firsttouch kernel series` writes "
            "it, docs/on-real-hardware.md tells how to build and install it."
        ]
    if host.architecture != "arm64":
        return ["The kernel series is for arm64: it would change nothing on this machine."]
    return []


def _thp_advice(findings: Findings) -> str:
    enabled = findings.host.thp.get("enabled")
    if enabled is None:
        return "This kernel has no transparent huge pages: each base page is a fault of its own."
    if enabled == "never":
        return (
            "Transparent huge pages are off: as root, `echo madvise > "
            "/sys/kernel/mm/transparent_hugepage/enabled` lets programs ask for them."
        )
    huge, small = findings.touch(FLOOR, "2m"), findings.touch(FLOOR)
    text = "Transparent huge pages are " + (
        "on for all memory" if enabled == "always" else "available by madvise(MADV_HUGEPAGE)"
    )
    if huge and small and huge.busy and small.busy:
        text += (
            f": populating a GiB in them takes {_per_gib(huge, huge.busy, findings)}, "
            f"in base pages {_per_gib(small, small.busy, findings)}"
        )
    atomic = findings.touch("ldadd", "2m")
    if atomic and atomic.faults and atomic.faults > 100:
        text += "; but not if atomics touch it first"
    return f"{text}."


def _jvm_advice(findings: Findings) -> str:
    exclusive = findings.touch("ldxr")
    if exclusive in findings.doubled:
        return (
            "A JVM with -XX:+AlwaysPreTouch takes two faults a page here (OpenJDK 21 and 25 touch "
            "the heap by load-exclusives): add -XX:+UseTransparentHugePages, with which it uses "
            "MADV_POPULATE_WRITE."
        )
    return "A JVM's -XX:+AlwaysPreTouch takes one fault a page here: no flag need change."


def _per_gib(touch: TouchFinding, time: Figure, findings: Findings) -> str:
    return per_gib(time.median, touch.page_size, virtual_time=findings.virtual_time)
