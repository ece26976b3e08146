# SPDX-License-Identifier: GPL-2.0
"""Advice that follows from a survey, for programs and for the kernel; each with its figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.survey.findings import Findings, TouchFinding
from firsttouch.survey.formats import GIB, one_page, per_gib
from firsttouch.survey.host import WRITE_INTENT
from firsttouch.survey.samples import Figure, differ
from firsttouch.survey.tasks import FLOOR, kind_name

_ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"
# Policies by which shared memory gets huge pages though no program asks for them.
_SHARED = ("always", "within_size", "force")
# How OpenJDK touches its heap for -XX:+AlwaysPreTouch: 21 and 25 on arm64 by
# load-exclusives, on x86-64 by LOCK XADD; 17 by stores. The first that was measured counts.
_PRETOUCH = ("ldxr", "ldadd", "store")
_HUGE = ("store", "ldadd", FLOOR)
# More page faults than these in 2 MiB: the huge page was split.
_SPLIT = 100


@dataclass(frozen=True)
class Sentence:
    """One conclusion; `about` is the question that it answers, in a word or two."""

    about: str
    text: str


@dataclass(frozen=True)
class HugePages:
    """First touches in huge pages (`huge`) and in base pages (`small`)."""

    huge: TouchFinding
    small: TouchFinding
    huge_time: Figure
    small_time: Figure

    @property
    def huge_faults(self) -> int:
        """Page faults per GiB in huge pages."""
        return _faults_per_gib(self.huge)

    @property
    def small_faults(self) -> int:
        """Page faults per GiB in base pages."""
        return _faults_per_gib(self.small)

    @property
    def help(self) -> bool:
        """Whether huge pages take fewer faults, and no more time that shows."""
        slower = self.huge_per_byte.median > self.small_per_byte.median
        return self.huge_faults < self.small_faults and not (
            slower and differ(self.huge_per_byte, self.small_per_byte)
        )

    @property
    def faster(self) -> bool:
        """Whether huge pages take less time, by more than the noise."""
        return self.help and differ(self.huge_per_byte, self.small_per_byte)

    @property
    def huge_per_byte(self) -> Figure:
        """Time of a byte in huge pages, in ns."""
        return self.huge_time.times(1 / self.huge.page_size)

    @property
    def small_per_byte(self) -> Figure:
        """Time of a byte in base pages, in ns."""
        return self.small_time.times(1 / self.small.page_size)


def huge_pages(findings: Findings, *kinds: str) -> HugePages | None:
    """Return what huge pages change for the first of `kinds` that was measured.

    It makes no difference by which kind a huge page is touched, as long as it
    stays whole: that of which the time is most certain stands for all.
    """
    small = next((touch for kind in kinds if (touch := findings.touch(kind))), None)
    whole = [
        (touch, touch.busy)
        for kind in _HUGE
        if (touch := findings.touch(kind, "2m")) and touch.busy and (touch.faults or 0) < _SPLIT
    ]
    if not (whole and small and small.busy):
        return None
    huge, time = min(whole, key=lambda found: found[1].uncertainty)
    return HugePages(huge, small, time, small.busy)


def _faults_per_gib(touch: TouchFinding) -> int:
    return round((touch.faults or 0) * GIB / touch.page_size)


def advise(findings: Findings) -> list[Sentence]:
    """Return what the user of the host can do today."""
    return [
        *(Sentence("today", text) for text in _populate_advice(findings)),
        Sentence("today", _thp_advice(findings)),
        Sentence("JVM", _jvm_advice(findings)),
        *_postgresql_advice(findings),
        *_store_advice(findings),
        *(Sentence("today", text) for text in _series_advice(findings)),
    ]


def _populate_advice(findings: Findings) -> Iterator[str]:
    floor, store = findings.touch(FLOOR), findings.touch("store")
    worst = next(iter(findings.doubled), None)
    if worst and floor and worst.busy and floor.busy:
        yield (
            "Populate by madvise(MADV_POPULATE_WRITE) (Linux 5.14), or by plain stores, before "
            f"atomics touch the memory: {_per_gib(floor, floor.busy, findings)} per GiB in place "
            f"of {_per_gib(worst, worst.busy, findings)}."
        )
    elif floor and store and floor.busy and store.busy and floor.busy.median < store.busy.median:
        yield (
            "To populate memory ahead of use, madvise(MADV_POPULATE_WRITE) is the cheapest way: "
            f"{_per_gib(floor, floor.busy, findings)} per GiB in place of a store's "
            f"{_per_gib(store, store.busy, findings)}."
        )


def _series_advice(findings: Findings) -> Iterator[str]:
    host = findings.host
    if findings.doubled and host.write_intent:
        yield (
            f"This kernel has write-intent faults, in mode {host.write_intent}: as root, "
            f"`echo exclusive > {WRITE_INTENT}` ends the double fault."
        )
    elif findings.doubled:
        yield (
            "The kernel series ends the double fault: `firsttouch kernel series` writes "
            "it, docs/on-real-hardware.md tells how to build and install it."
        )
    elif host.architecture != "arm64":
        yield "The kernel series is for arm64: it would change nothing on this host."


def _thp_advice(findings: Findings) -> str:
    enabled = findings.host.thp.get("enabled")
    if enabled is None:
        return "This kernel has no transparent huge pages: each base page is a fault of its own."
    if enabled == "never":
        return (
            f"Transparent huge pages are off: as root, `echo madvise > {_ENABLED}` lets programs "
            "ask for them."
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
    if _atomics_split(findings):
        text += "; but not if atomics touch it first"
    return f"{text}."


def _atomics_split(findings: Findings) -> bool:
    atomic = findings.touch("ldadd", "2m")
    return bool(atomic and atomic.faults and atomic.faults > _SPLIT)


def _jvm_advice(findings: Findings) -> str:
    enabled = findings.host.thp.get("enabled")
    twice = findings.touch("ldxr") in findings.doubled
    touched = "A JVM with -XX:+AlwaysPreTouch takes " + (
        "two faults a page here (OpenJDK 21 and 25 touch the heap by load-exclusives)"
        if twice
        else "one fault a page here"
    )
    if enabled is None:
        return f"{touched}; this kernel has no huge pages to change that."
    if enabled == "never":
        return (
            f"{touched}, and -XX:+UseTransparentHugePages changes nothing while {_ENABLED} is "
            "never: set that to madvise first."
        )
    found = huge_pages(findings, *_PRETOUCH)
    if not found:
        return f"{touched}; what huge pages change was not measured: {_no_huge(findings)}."
    if not found.help:
        return f"{touched}, and huge pages make that no cheaper: {_compare(found, findings)}."
    if enabled == "always" and not _atomics_split(findings):
        return (
            "A JVM gets huge pages here without -XX:+UseTransparentHugePages, since "
            f"{_ENABLED} is always: {_compare(found, findings)}."
        )
    return (
        f"{touched}: add -XX:+UseTransparentHugePages, with which it touches the heap in huge "
        f"pages: {_compare(found, findings)}."
    )


def _no_huge(findings: Findings) -> str:
    """Say why there is no figure of huge pages, or of base pages."""
    reasons = (t.unavailable for t in findings.touches if t.kind == "store" and t.unavailable)
    return next(reasons, "no first touch of 2 MiB was run")


def _compare(found: HugePages, findings: Findings) -> str:
    """Say what a GiB takes in huge pages and in base pages."""
    text = (
        f"a GiB takes {found.huge_faults:,} page faults and "
        f"{_per_gib(found.huge, found.huge_time, findings)} in huge pages "
        f"({kind_name(found.huge.kind, findings.host)}), {found.small_faults:,} and "
        f"{_per_gib(found.small, found.small_time, findings)} in base pages "
        f"({kind_name(found.small.kind, findings.host)})"
    )
    return (
        text
        if found.faster or not found.help
        else f"{text}; the times differ by no more than the noise"
    )


def _postgresql_advice(findings: Findings) -> Iterator[Sentence]:
    host, found = findings.host, huge_pages(findings, "store")
    shared = host.thp.get("shmem_enabled")
    if not found or not found.help or shared is None:
        return
    rests = f"In private memory {_compare(found, findings)}."
    if shared in _SHARED:
        yield Sentence(
            "PostgreSQL",
            f"shared_buffers can get huge pages without a setting of PostgreSQL, since "
            f"shmem_enabled is {shared}. {rests}",
        )
        return
    reserved = "" if host.nr_hugepages is None else f"; {host.nr_hugepages:,} are reserved now"
    yield Sentence(
        "PostgreSQL",
        f"shared_buffers gets no transparent huge pages, since shmem_enabled is {shared}. Leave "
        "huge_pages at try and reserve huge pages: as root, `sysctl vm.nr_hugepages=N` with the N "
        f"that `postgres -C shared_memory_size_in_huge_pages` prints{reserved}. {rests}",
    )


def _store_advice(findings: Findings) -> Iterator[Sentence]:
    enabled, found = findings.host.thp.get("enabled"), huge_pages(findings, "store")
    if not found or enabled not in ("always", "madvise"):
        return
    setting = (
        f"as root, `echo madvise > {_ENABLED}`, which is always now"
        if enabled == "always"
        else f"leave {_ENABLED} at madvise, as it is"
    )
    virtual_time = findings.virtual_time
    yield Sentence(
        "memory stores",
        f"Stores in memory that fork to save, such as Redis: {setting}. A request waits for "
        f"the fault that it takes: {one_page(found.huge_time, virtual_time=virtual_time)} for a "
        f"huge page, {one_page(found.small_time, virtual_time=virtual_time)} for a base page.",
    )


def _per_gib(touch: TouchFinding, time: Figure, findings: Findings) -> str:
    return per_gib(time, touch.page_size, virtual_time=findings.virtual_time)
