# SPDX-License-Identifier: GPL-2.0
"""This host: its CPUs, caches and policies of memory, and whether guests of KVM can be timed on it.

Sources: lscpu(1), and Documentation/ABI/testing/sysfs-devices-system-cpu of the kernel. `system` is
the host's root directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.catalog.machines import Cache, CpuKind, Machine
from firsttouch.errors import HostError
from firsttouch.processes import output

ROOT = Path("/")
CPUS = "sys/devices/system/cpu"


@functools.cache
def lscpu(field: str) -> str:
    """Return what lscpu has of a field, once for each kind of CPU; empty if it has nothing."""
    try:
        printed = output(["lscpu"], env={"LC_ALL": "C"})
    except HostError:
        return ""
    return " + ".join(dict.fromkeys(re.findall(rf"^ *{field}: *(.+)$", printed, re.M)))


def choose_cpus(allowed: Collection[int], system: Path = ROOT) -> list[int]:
    """Return CPUs of one kind, that of the largest capacity: one a core, the best first.

    CPU 0 comes last, because it has most interrupts.
    """

    def kind(cpu: int) -> tuple[int, str]:
        capacity = text(system / CPUS / f"cpu{cpu}/cpu_capacity")
        return int(capacity or 0), text(system / CPUS / f"cpu{cpu}/regs/identification/midr_el1")

    largest = max(kind(cpu) for cpu in allowed)
    cores: dict[str, int] = {}
    for cpu in sorted(allowed, reverse=True):
        if kind(cpu) == largest:
            core = text(system / CPUS / f"cpu{cpu}/topology/thread_siblings_list")
            cores.setdefault(core or str(cpu), cpu)
    return list(cores.values())


_CACHES = {
    ("1", "Data"): "l1d", ("1", "Instruction"): "l1i", ("2", "Unified"): "l2",
    ("3", "Unified"): "l3",
}  # fmt: skip


def read_caches(cpu: int, system: Path = ROOT) -> dict[str, Cache]:
    """Return the caches of `cpu` by name, but for those of which sysfs lacks size, line or sets."""
    caches = {}
    for folder in sorted((system / CPUS / f"cpu{cpu}/cache").glob("index*")):
        words = [text(folder / name) for name in (
            "size", "ways_of_associativity", "coherency_line_size", "number_of_sets",
        )]  # fmt: skip
        size, ways, line, sets = (int(word.removesuffix("K") or 0) for word in words)
        size <<= 10
        name = _CACHES.get((text(folder / "level"), text(folder / "type")))
        if name and size and line and sets:
            caches[name] = Cache(size, ways or size // line // sets, "sysfs", line)
    return caches


def text(file: Path) -> str:
    """Return the contents of a file of the kernel; empty if it is not there."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def check_kvm(
    architecture: str = DEFAULT_ARCHITECTURE, system: Path = ROOT, machine: str = ""
) -> None:
    """Raise HostError if this host's KVM cannot run guests of `architecture` for this user."""
    machine = machine or platform.machine()
    if machine != load_architecture(architecture).machine:
        raise HostError(
            f"this host is {machine}, and KVM runs only guests of its host's architecture: give "
            "it by --arch, or leave out --time, which counts on any host."
        )
    device = system / "dev/kvm"
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        raise HostError(
            "/dev/kvm is missing: take a machine that boots Linux as a hypervisor may, such as a "
            "board, a workstation or a cloud's bare metal; a virtual machine mostly has no KVM."
        ) from None
    except OSError as error:
        raise HostError(
            f"/dev/kvm cannot be opened ({error.strerror}): run `sudo usermod -aG kvm $USER` and "
            "log in again, or look at what `dmesg | grep kvm` says."
        ) from None


def host_machine(
    cpu: int, system: Path = ROOT, architecture: str = DEFAULT_ARCHITECTURE
) -> Machine:
    """Return this host with the caches of `cpu`; none if sysfs leaves one out."""
    caches = read_caches(cpu, system)
    l1d, l1i = caches.get("l1d"), caches.get("l1i")
    kinds = () if not l1d or not l1i else (CpuKind(1, l1d, l1i, caches.get("l2")),)
    l3 = caches.get("l3") if kinds else None
    return Machine("host", "this host", "host", None, kinds, l3, architecture=architecture)


@dataclass(frozen=True)
class Condition:
    """What decides this host's speed at one time, for the CPUs that vCPUs are pinned to.

    `load` is the number of runnable tasks in the last minute, `khz` the lowest clock, 0 if it is
    unknown.
    """

    load: float
    khz: int
    governor: str


def condition(cpus: Iterable[int], system: Path = ROOT) -> Condition:
    folders = [system / CPUS / f"cpu{cpu}/cpufreq" for cpu in cpus]
    clocks = [int(text(folder / "scaling_cur_freq") or 0) for folder in folders]
    governors = {text(folder / "scaling_governor") for folder in folders}
    load = text(system / "proc/loadavg").split() or ["0"]
    return Condition(float(load[0]), min(clocks), "/".join(sorted(governors)))


def pin_vcpus(qemu: int, cpus: Sequence[int]) -> bool:
    """Pin each vCPU thread of QEMU's process to one of `cpus`, its other threads elsewhere.

    Returns whether all were there; QEMU makes them after it has populated memory.
    """
    with contextlib.suppress(OSError):
        others = os.sched_getaffinity(0) - set(cpus)
        where = {}
        for task in Path(f"/proc/{qemu}/task").iterdir():
            vcpu = re.fullmatch(r"CPU (\d+)/\w+", text(task / "comm"))
            where[int(task.name)] = {cpus[int(vcpu[1])]} if vcpu else others
        if sum(allowed is not others for allowed in where.values()) < len(cpus):
            return False
        for number, allowed in where.items():
            if allowed:
                os.sched_setaffinity(number, allowed)
        return True
    return False


# The caches whose set conflicts are measured.
LEVELS = ("l1d", "l2")
# The series adds this file; linux/Documentation/arch/arm64 describes it.
WRITE_INTENT = "/proc/sys/vm/write_intent"
_THP = "sys/kernel/mm/transparent_hugepage"
ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm64"}


@dataclass(frozen=True)
class HostCache:
    """A data or unified cache, as results have it; sizes in bytes."""

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

    `cpus` are those that are measured, out of `online`. `thp` has the policies of huge pages by
    file name, `mthp` those of each size in KiB. `write_intent` is None without the series.
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
        return next((cache for cache in self.caches if cache.level == level), None)

    def maps(self, size: int) -> bool:
        """Whether the kernel can map anonymous memory in pages of `size` bytes."""
        whole = self.thp.get("hpage_pmd_size") == str(size)
        return size == self.page_size or whole or str(size >> 10) in self.mthp


def read_host(cpus: Iterable[int], system: Path = ROOT) -> Host:
    """Return this host, to be measured on `cpus`; the caches are those of the first."""
    cpus = tuple(cpus)
    caches = tuple(
        HostCache(name, cache.size, cache.ways, cache.line)
        for name, cache in read_caches(cpus[0], system).items()
        if name != "l1i"
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
        architecture=ARCHITECTURES[platform.machine()],
        processor=lscpu("Model name") or "unknown CPU",
        kernel=platform.release(),
        cpus=tuple(map(str, cpus)),
        before=condition(cpus, system),
        online=os.cpu_count() or 1,
        page_size=os.sysconf("SC_PAGESIZE"),
        caches=caches,
        thp=thp,
        mthp=dict(sorted(mthp.items(), key=lambda item: int(item[0]))),
        virtual=bool(lscpu("Hypervisor vendor")),
        write_intent=text(system / WRITE_INTENT[1:]) or None,
    )


def _chosen(policies: str) -> str:
    """Return the word in brackets of ``always [madvise] never``."""
    match = re.search(r"\[(.*?)\]", policies)
    return match[1] if match else policies
