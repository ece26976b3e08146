# SPDX-License-Identifier: GPL-2.0
"""Advice from the findings of a survey, for programs and for the kernel, with figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.survey.findings import Findings, TouchFinding
from firsttouch.survey.formats import GIB, one_page, per_gib
from firsttouch.survey.host import FAULT_AHEAD, REMEDY
from firsttouch.survey.samples import Figure, differ
from firsttouch.survey.tasks import FLOOR, kind_name

_ENABLED = "/sys/kernel/mm/transparent_hugepage/enabled"
# Policies that give huge pages to shared memory although no program asks for them.
_SHARED = ("always", "within_size", "force")
# How OpenJDK touches its heap for -XX:+AlwaysPreTouch: 21 and 25 by load-exclusives
# on arm64 and by LOCK XADD on x86-64, 17 by stores. The first measured one counts.
_PRETOUCH = ("ldxr", "ldadd", "store")
_HUGE = ("store", "ldadd", FLOOR)
# With more page faults than these in 2 MiB, the huge page was split.
_SPLIT = 100


@dataclass(frozen=True)
class Sentence:
    """One conclusion; `about` is its subject, in a word or two."""

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
        """Whether huge pages take fewer faults, and not more time, beyond the noise."""
        slower = self.huge_per_byte.median > self.small_per_byte.median
        return self.huge_faults < self.small_faults and not (
            slower and differ(self.huge_per_byte, self.small_per_byte)
        )

    @property
    def faster(self) -> bool:
        """Whether huge pages also take less time, beyond the noise."""
        return self.help and differ(self.huge_per_byte, self.small_per_byte)

    @property
    def huge_per_byte(self) -> Figure:
        """Time per byte in huge pages, in ns."""
        return self.huge_time.times(1 / self.huge.page_size)

    @property
    def small_per_byte(self) -> Figure:
        """Time per byte in base pages, in ns."""
        return self.small_time.times(1 / self.small.page_size)


def huge_pages(findings: Findings, *kinds: str) -> HugePages | None:
    """Return the effect of huge pages on the first of `kinds` that was measured.

    The kind of access does not matter for a huge page that is not split, so the
    kind with the most certain time stands for all.
    """
    small = next((touch for kind in kinds if (touch := findings.touch(kind))), None)
    whole = [
        (touch, touch.busy)
        for kind in _HUGE
        if (touch := findings.touch(kind, "2m")) and touch.busy and (touch.faults or 0) < _SPLIT
    ]
    if not (whole and small and small.busy):
        return None
    huge, time = min(whole, key=lambda pair: pair[1].uncertainty)
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
    if host.fault_ahead == 0:
        yield (
            f"This kernel has fault-ahead, switched off: as root, `echo 64 > {FAULT_AHEAD}` lets "
            "writes to fresh memory that come in order take one fault for five pages."
        )
    if findings.doubled and host.write_intent:
        yield (
            f"This kernel has write-intent faults, in mode {host.write_intent}: as root, "
            f"{REMEDY} ends the double fault."
        )
    elif findings.doubled:
        yield (
            "The kernel series ends the double fault: `firsttouch kernel package` builds a Debian "
            "package with it, and docs/on-real-hardware.md says how to install and remove it."
        )
    elif host.architecture != "arm64":
        yield "The kernel series is for arm64: it would change nothing on this host."


def _thp_advice(findings: Findings) -> str:
    enabled = findings.host.thp.get("enabled")
    if enabled is None:
        return "This kernel has no transparent huge pages: each base page takes its own fault."
    if enabled == "never":
        return (
            f"Transparent huge pages are off: as root, `echo madvise > {_ENABLED}` lets programs "
            "ask for them."
        )
    huge, small = findings.touch(FLOOR, "2m"), findings.touch(FLOOR)
    text = "Transparent huge pages are " + (
        "on for all memory"
        if enabled == "always"
        else "available by madvise(MADV_HUGEPAGE), and to the heap of a program that has "
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35)"
    )
    if huge and small and huge.busy and small.busy:
        text += (
            f": populating a GiB in them takes {_per_gib(huge, huge.busy, findings)}, "
            f"in base pages {_per_gib(small, small.busy, findings)}"
        )
    if _atomics_split(findings):
        text += "; but atomics that touch a huge page first split it"
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
        return f"{touched}; this kernel has no huge pages that could help."
    if enabled == "never":
        return (
            f"{touched}, and -XX:+UseTransparentHugePages changes nothing while {_ENABLED} is "
            "never: set that to madvise first."
        )
    huge = huge_pages(findings, *_PRETOUCH)
    if not huge:
        return f"{touched}; the effect of huge pages was not measured: {_no_huge(findings)}."
    if not huge.help:
        return f"{touched}, and huge pages do not make it cheaper: {_compare(huge, findings)}."
    if enabled == "always" and not _atomics_split(findings):
        return (
            "A JVM gets huge pages here without -XX:+UseTransparentHugePages, because "
            f"{_ENABLED} is always: {_compare(huge, findings)}."
        )
    return (
        f"{touched}: add -XX:+UseTransparentHugePages, so that the heap gets huge pages: "
        f"{_compare(huge, findings)}."
    )


def _no_huge(findings: Findings) -> str:
    """Return why there is no figure for huge pages, or for base pages."""
    reasons = (t.unavailable for t in findings.touches if t.kind == "store" and t.unavailable)
    return next(reasons, "no first touch of 2 MiB ran")


def _compare(huge: HugePages, findings: Findings) -> str:
    """Return the cost of a GiB in huge pages and in base pages, in words."""
    text = (
        f"a GiB takes {huge.huge_faults:,} page faults and "
        f"{_per_gib(huge.huge, huge.huge_time, findings)} in huge pages "
        f"({kind_name(huge.huge.kind, findings.host)}), {huge.small_faults:,} and "
        f"{_per_gib(huge.small, huge.small_time, findings)} in base pages "
        f"({kind_name(huge.small.kind, findings.host)})"
    )
    return (
        text
        if huge.faster or not huge.help
        else f"{text}; the times differ by no more than the noise"
    )


def _postgresql_advice(findings: Findings) -> Iterator[Sentence]:
    host, huge = findings.host, huge_pages(findings, "store")
    shared = host.thp.get("shmem_enabled")
    if not huge or not huge.help or shared is None:
        return
    rests = f"In private memory {_compare(huge, findings)}."
    if shared in _SHARED:
        yield Sentence(
            "PostgreSQL",
            f"shared_buffers can get huge pages without a setting of PostgreSQL, because "
            f"shmem_enabled is {shared}. {rests}",
        )
        return
    reserved = "" if host.nr_hugepages is None else f"; {host.nr_hugepages:,} are reserved now"
    yield Sentence(
        "PostgreSQL",
        f"shared_buffers gets no transparent huge pages, because shmem_enabled is {shared}. Leave "
        "huge_pages at try and reserve huge pages: as root, `sysctl vm.nr_hugepages=N` with the N "
        f"that `postgres -C shared_memory_size_in_huge_pages` prints{reserved}. {rests}",
    )


def _store_advice(findings: Findings) -> Iterator[Sentence]:
    enabled, huge = findings.host.thp.get("enabled"), huge_pages(findings, "store")
    if not huge or enabled not in ("always", "madvise"):
        return
    setting = (
        f"as root, `echo madvise > {_ENABLED}`, which is now set to always"
        if enabled == "always"
        else f"leave {_ENABLED} set to madvise"
    )
    virtual_time = findings.virtual_time
    yield Sentence(
        "memory stores",
        f"For stores in memory that fork to save, such as Redis: {setting}. A request that "
        f"faults waits {one_page(huge.huge_time, virtual_time=virtual_time)} for a "
        f"huge page, {one_page(huge.small_time, virtual_time=virtual_time)} for a base page.",
    )


def _per_gib(touch: TouchFinding, time: Figure, findings: Findings) -> str:
    return per_gib(time, touch.page_size, virtual_time=findings.virtual_time)
