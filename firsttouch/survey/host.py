# SPDX-License-Identifier: GPL-2.0
"""The host as its kernel describes it, from the files that `ftbench --files` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.catalog.processors import is_arm64, processor_name
from firsttouch.quantities import format_size
from firsttouch.tables import Json, Table

# The caches that the survey measures.
LEVELS = ("l1d", "l2")
# The series adds it; linux/Documentation/arch/arm64 describes it.
WRITE_INTENT = "/proc/sys/vm/write_intent"
FAULT_AHEAD = "/sys/kernel/mm/fault_ahead_kb"
# What ends the double fault there.
REMEDY = f"`echo 1 > {WRITE_INTENT}`"
_THP = "/sys/kernel/mm/transparent_hugepage/"
_RESERVED = "/proc/sys/vm/nr_hugepages"
_GOVERNOR = "cpufreq/scaling_governor"
# Names in the firmware of virtual machines. arm64 has no register that shows one.
_VIRTUAL = re.compile(r"KVM|QEMU|Virtual|VMware|Compute Engine|dummy-virt|Bochs", re.IGNORECASE)


@dataclass(frozen=True)
class Geometry:
    """The ways of a cache and the bytes of one way."""

    level: str
    ways: int
    way_size: int

    def colors(self, page_size: int) -> int:
        """Return the number of colours of pages of `page_size` bytes."""
        return max(self.way_size // page_size, 1)

    def __str__(self) -> str:
        """``8 ways of 4 KiB``."""
        return f"{self.ways} ways of {format_size(self.way_size)}"


@dataclass(frozen=True)
class Cache:
    """A data or unified cache in sysfs; sizes in bytes, None for what sysfs leaves out."""

    level: str
    size: int | None
    ways: int | None
    line: int | None
    sets: int | None

    @property
    def way_size(self) -> int | None:
        """Bytes in one way."""
        return self.size // self.ways if self.size and self.ways else None

    @property
    def geometry(self) -> Geometry | None:
        """The geometry; None if sysfs does not have the ways."""
        if not self.ways or not self.way_size:
            return None
        return Geometry(self.level, self.ways, self.way_size)


@dataclass(frozen=True)
class Host:
    """The host of the survey, as its kernel describes it; sizes in bytes.

    `cpu` is the CPU that the tasks run on. `memory` is the available memory, within
    the limit of a container. `thp` has the THP policies by file name, `mthp` the
    policy of each mTHP size. `write_intent` is the mode of write-intent faults, as
    the kernel prints it; None without the series. `fault_ahead` is the size in bytes
    of the largest folio that fault-ahead maps, 0 if it is off; None without it.
    `virtual` tells whether it is a
    virtual machine; None if neither the CPU nor the firmware shows it.
    `nr_hugepages` is the number of huge pages reserved for hugetlb.
    """

    architecture: str
    processor: str
    cpu: int
    cpus: int
    kernel: str
    page_size: int
    memory: int
    caches: tuple[Cache, ...]
    thp: Mapping[str, str]
    mthp: Mapping[int, str]
    write_intent: str | None
    virtual: bool | None
    governor: str | None
    load: float | None
    perf_event_paranoid: int | None
    nr_hugepages: int | None = None
    fault_ahead: int | None = None

    def cache(self, level: str) -> Cache | None:
        """Return the cache called `level`: ``l1d``, ``l2``, ``l3``."""
        return next((cache for cache in self.caches if cache.level == level), None)

    def geometry(self, level: str) -> Geometry | None:
        """Return the geometry of the cache called `level`; None if sysfs has none."""
        cache = self.cache(level)
        return cache.geometry if cache else None

    @property
    def geometries(self) -> list[Geometry]:
        """The geometries in sysfs of the caches that the survey measures."""
        return [geometry for level in LEVELS if (geometry := self.geometry(level))]

    @property
    def pmd_size(self) -> int | None:
        """Bytes that a PMD maps; None if the kernel has no THP."""
        size = self.thp.get("hpage_pmd_size")
        return int(size) if size else None


def host_files(cpu: int) -> tuple[str, ...]:
    """Return the patterns of the files that `read_host` reads for CPU number `cpu`."""
    device = f"/sys/devices/system/cpu/cpu{cpu}"
    return (
        "/proc/version",
        "/proc/cpuinfo",
        "/proc/loadavg",
        "/proc/sys/kernel/perf_event_paranoid",
        _RESERVED,
        "/sys/devices/system/cpu/online",
        f"{device}/cache/index*/*",
        f"{device}/{_GOVERNOR}",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
        "/sys/firmware/devicetree/base/compatible",
        f"{_THP}*",
        WRITE_INTENT,
        FAULT_AHEAD,
        f"{_THP}hugepages-*/enabled",
        f"{_THP}hugepages-*/shmem_enabled",
    )


def read_host(printed: Mapping[str, Json], cpu: int) -> Host:
    """Return the host from the line that `ftbench --files` printed for `host_files(cpu)`.

    Raises UserError if the line has another form.
    """
    table = Table("ftbench --files", printed)
    files = {path: text.strip() for path, text in table.table("files").values_of(str).items()}
    cpuinfo = files.get("/proc/cpuinfo", "")
    arm64 = is_arm64(cpuinfo)
    version = re.match(r"Linux version (\S+)", files.get("/proc/version", ""))
    load = files.get("/proc/loadavg", "").split()
    paranoid = files.get("/proc/sys/kernel/perf_event_paranoid")
    return Host(
        architecture="arm64" if arm64 else "x86-64",
        processor=processor_name(cpuinfo, cpu),
        cpu=cpu,
        cpus=_count(files.get("/sys/devices/system/cpu/online", "0")),
        kernel=version[1] if version else "unknown",
        page_size=table.take("page_size", int),
        memory=table.take("memory_available", int),
        caches=_caches(files, cpu),
        thp=_thp(files),
        mthp=_mthp(files),
        write_intent=files.get(WRITE_INTENT),
        fault_ahead=int(files[FAULT_AHEAD]) * 1024 if FAULT_AHEAD in files else None,
        virtual=_is_virtual(files, cpuinfo, arm64),
        governor=files.get(f"/sys/devices/system/cpu/cpu{cpu}/{_GOVERNOR}"),
        load=float(load[0]) if load else None,
        perf_event_paranoid=int(paranoid) if paranoid else None,
        nr_hugepages=int(files[_RESERVED]) if _RESERVED in files else None,
    )


def _count(ranges: str) -> int:
    """Return the number of CPUs in a list such as ``0-3,8``."""
    count = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _caches(files: Mapping[str, str], cpu: int) -> tuple[Cache, ...]:
    """Return the data and unified caches that sysfs lists, by level."""
    base = f"/sys/devices/system/cpu/cpu{cpu}/cache/index"
    caches = []
    for index in range(10):
        entry = {
            path.rpartition("/")[2]: text
            for path, text in files.items()
            if path.startswith(f"{base}{index}/")
        }
        if "level" not in entry or entry.get("type") == "Instruction":
            continue
        level = entry["level"]
        caches.append(
            Cache(
                "l1d" if level == "1" else f"l{level}",
                _bytes(entry.get("size")),
                _number(entry.get("ways_of_associativity")),
                _number(entry.get("coherency_line_size")),
                _number(entry.get("number_of_sets")),
            )
        )
    return tuple(sorted(caches, key=lambda cache: cache.level))


def _number(text: str | None) -> int | None:
    """Return a number; None if sysfs has no such file, or a 0 in it, which means unknown."""
    return int(text) or None if text and text.isdigit() else None


def _bytes(text: str | None) -> int | None:
    if text and text.endswith("K"):
        size = _number(text[:-1])
        return size * 1024 if size else None
    return _number(text)


def _chosen(text: str) -> str:
    """Return the word in brackets of ``always [madvise] never``."""
    match = re.search(r"\[(.*?)\]", text)
    return match[1] if match else text


def _thp(files: Mapping[str, str]) -> dict[str, str]:
    return {
        path.removeprefix(_THP): _chosen(text)
        for path, text in files.items()
        if path.startswith(_THP) and "/" not in path.removeprefix(_THP)
    }


def _mthp(files: Mapping[str, str]) -> dict[int, str]:
    sizes = {}
    for path, text in files.items():
        match = re.fullmatch(rf"{_THP}hugepages-(\d+)kB/enabled", path)
        if match:
            sizes[int(match[1]) * 1024] = _chosen(text)
    return dict(sorted(sizes.items()))


def _is_virtual(files: Mapping[str, str], cpuinfo: str, arm64: bool) -> bool | None:
    if not arm64:
        # CPUID's hypervisor bit.
        return bool(re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M))
    vendor = files.get("/sys/class/dmi/id/sys_vendor", "")
    product = files.get("/sys/class/dmi/id/product_name", "")
    tree = files.get("/sys/firmware/devicetree/base/compatible", "")
    if vendor == "Amazon EC2":
        return not product.endswith(".metal")
    if _VIRTUAL.search(f"{vendor} {product} {tree}"):
        return True
    # Any other name is that of a real board.
    return False if product or tree else None
