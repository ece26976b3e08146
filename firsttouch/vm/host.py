# SPDX-License-Identifier: GPL-2.0
"""The host as its kernel and lscpu(1) describe it: part of the results that are measured on it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.vm.cpus import ROOT, lscpu, processor_name, read_caches, text
from firsttouch.vm.kvm import Condition, condition

# The caches whose set conflicts are measured.
LEVELS = ("l1d", "l2")
# The series adds this file; linux/Documentation/arch/arm64 describes it.
WRITE_INTENT = "/proc/sys/vm/write_intent"
_THP = "sys/kernel/mm/transparent_hugepage"
_ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm64"}
_NAMES = {("1", "Data"): "l1d", ("2", "Unified"): "l2", ("3", "Unified"): "l3"}


@dataclass(frozen=True)
class HostCache:
    """A data or unified cache: `level` is ``l1d``, ``l2`` or ``l3``; sizes in bytes."""

    level: str
    size: int
    ways: int
    line: int

    @property
    def way_size(self) -> int:
        """Lines that are this number of bytes apart share a set."""
        return self.size // self.ways


@dataclass(frozen=True)
class Host:
    """A host as results have it, without anything that identifies it; sizes in bytes.

    `cpus` are those that are measured, out of `online`, and `before` is their condition
    then. `thp` has the policies of huge pages by file name, `mthp` those of each size in
    KiB. `write_intent` is the mode of write-intent faults; None without the series.
    """

    architecture: str
    processor: str
    kernel: str
    cpus: tuple[str, ...]
    before: Condition
    online: int
    page_size: int
    caches: tuple[HostCache, ...]
    thp: Mapping[str, str]
    mthp: Mapping[str, str]
    virtual: bool
    write_intent: str | None = None

    def cache(self, level: str) -> HostCache | None:
        """Return the cache called `level`; None if sysfs does not describe it."""
        return next((cache for cache in self.caches if cache.level == level), None)

    @property
    def fault_ahead(self) -> int:
        """The size of the largest folio that memory written in order gets; 0 if none does."""
        sizes = (int(size) << 10 for size, policy in self.mthp.items() if policy == "inorder")
        return max(sizes, default=0)

    def maps(self, size: int) -> bool:
        """Whether the kernel can map anonymous memory in pages of `size` bytes."""
        whole = self.thp.get("hpage_pmd_size") == str(size)
        return size == self.page_size or whole or str(size >> 10) in self.mthp


def read_host(cpus: Iterable[int], system: Path = ROOT) -> Host:
    """Return this host, to be measured on `cpus`; the caches are those of the first."""
    cpus = tuple(cpus)
    known = read_caches(cpus[0], system)
    caches = tuple(
        HostCache(name, cache.size, cache.ways, cache.line)
        for key, name in _NAMES.items()
        if (cache := known.get(key))
    )
    thp = {
        file.name: _chosen(text(file))
        for file in sorted((system / _THP).glob("*"))
        if file.is_file() and text(file)
    }
    mthp = {
        file.parent.name.removeprefix("hugepages-").removesuffix("kB"): _chosen(text(file))
        for file in (system / _THP).glob("hugepages-*kB/enabled")
    }
    return Host(
        architecture=_ARCHITECTURES[platform.machine()],
        processor=processor_name(),
        kernel=platform.release(),
        cpus=tuple(map(str, cpus)),
        before=condition(cpus, system),
        online=os.cpu_count() or 1,
        page_size=os.sysconf("SC_PAGESIZE"),
        caches=caches,
        thp=thp,
        mthp=dict(sorted(mthp.items(), key=lambda item: int(item[0]))),
        virtual="Hypervisor vendor" in lscpu(),
        write_intent=text(system / WRITE_INTENT[1:]) or None,
    )


def _chosen(policies: str) -> str:
    """Return the word in brackets of ``always [madvise] never``."""
    match = re.search(r"\[(.*?)\]", policies)
    return match[1] if match else policies
