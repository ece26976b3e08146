# SPDX-License-Identifier: GPL-2.0
"""What a survey reads from the kernel's files, on hosts of several kinds."""

from __future__ import annotations

import pytest

from firsttouch.catalog.processors import processor_name
from firsttouch.errors import UserError
from firsttouch.survey.host import Cache, Geometry, Host, read_host
from firsttouch.tables import Json

_CPU = "/sys/devices/system/cpu"
_THP = "/sys/kernel/mm/transparent_hugepage"
_N1 = """processor\t: {0}
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
_A55 = _N1.replace("0xd0c", "0xd05")


def _cache(index: int, level: int, kind: str, **values: str) -> dict[str, str]:
    base = f"{_CPU}/cpu0/cache/index{index}"
    return {f"{base}/level": f"{level}\n", f"{base}/type": f"{kind}\n"} | {
        f"{base}/{name}": f"{value}\n" for name, value in values.items()
    }


def _read(files: dict[str, str], page_size: int = 4096) -> Host:
    printed: dict[str, Json] = {
        "schema": 1,
        "page_size": page_size,
        "memory_available": 1 << 30,
        "files": files,
    }
    return read_host(printed, 0)


def test_an_arm64_server() -> None:
    host = _read(
        {
            "/proc/version": "Linux version 6.12.9-arm64 (somebody@somewhere) #1 SMP\n",
            "/proc/cpuinfo": _N1.format(0) + "\n" + _N1.format(1),
            "/proc/loadavg": "0.52 0.58 0.59 1/467 12345\n",
            "/proc/sys/kernel/perf_event_paranoid": "2\n",
            f"{_CPU}/online": "0-1,4\n",
            **_cache(
                0, 1, "Data", size="64K", ways_of_associativity="4",
                coherency_line_size="64", number_of_sets="256",
            ),
            **_cache(1, 1, "Instruction", size="64K"),
            **_cache(2, 2, "Unified", size="1024K", ways_of_associativity="8"),
            f"{_CPU}/cpu0/cpufreq/scaling_governor": "schedutil\n",
            "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
            "/sys/class/dmi/id/product_name": "m6g.metal\n",
            f"{_THP}/enabled": "always [madvise] never\n",
            f"{_THP}/hpage_pmd_size": "2097152\n",
            f"{_THP}/hugepages-2048kB/enabled": "always [inherit] madvise never\n",
            "/proc/sys/vm/write_intent": "1\n",
            "/sys/kernel/mm/fault_ahead_kb": "64\n",
            f"{_THP}/hugepages-64kB/enabled": "always inherit madvise [never]\n",
        }
    )  # fmt: skip
    assert host.architecture == "arm64"
    assert host.processor == "Arm Neoverse N1"
    assert (host.cpus, host.kernel, host.memory) == (3, "6.12.9-arm64", 1 << 30)
    assert host.caches == (
        Cache("l1d", 65536, 4, 64, 256),
        Cache("l2", 1 << 20, 8, None, None),
    )
    assert host.cache("l1d") == host.caches[0]
    assert host.caches[0].way_size == 16384
    assert host.geometries == [Geometry("l1d", 4, 16384), Geometry("l2", 8, 131072)]
    assert host.pmd_size == 2 << 20
    assert host.thp == {"enabled": "madvise", "hpage_pmd_size": "2097152"}
    assert host.mthp == {65536: "never", 2 << 20: "inherit"}
    assert (host.governor, host.load, host.perf_event_paranoid) == ("schedutil", 0.52, 2)
    assert (host.write_intent, host.fault_ahead) == ("1", 65536)
    assert host.virtual is False


@pytest.mark.parametrize(
    ("files", "virtual"),
    [
        ({"/sys/class/dmi/id/sys_vendor": "Amazon EC2",
          "/sys/class/dmi/id/product_name": "c7g.large"}, True),
        ({"/sys/class/dmi/id/sys_vendor": "Amazon EC2",
          "/sys/class/dmi/id/product_name": "c7g.metal"}, False),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU",
          "/sys/class/dmi/id/product_name": "KVM Virtual Machine"}, True),
        ({"/sys/firmware/devicetree/base/compatible": "linux,dummy-virt"}, True),
        ({"/sys/firmware/devicetree/base/compatible": "raspberrypi,5-model-b"}, False),
        ({}, None),
    ],
)  # fmt: skip
def test_virtual_or_not(files: dict[str, str], virtual: bool | None) -> None:
    assert _read({"/proc/cpuinfo": _N1.format(0), **files}).virtual is virtual


@pytest.mark.parametrize(("flags", "virtual"), [("fpu vme hypervisor", True), ("fpu vme", False)])
def test_on_x86_cpuid_says_whether_it_is_virtual(flags: str, virtual: bool) -> None:
    host = _read({"/proc/cpuinfo": f"processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: {flags}\n"})
    assert host.architecture == "x86-64"
    assert host.processor == "Some CPU"
    assert host.virtual is virtual


def test_a_kernel_without_any_of_the_files() -> None:
    host = _read({}, 65536)
    assert host.page_size == 65536
    assert host.caches == ()
    assert (host.thp, host.mthp, host.pmd_size) == ({}, {}, None)
    assert (host.governor, host.load, host.perf_event_paranoid) == (None, None, None)
    assert (host.write_intent, host.fault_ahead) == (None, None)


def test_sizes_without_ways() -> None:
    """Apple's device trees give sizes only; the kernel then shows ways of 0."""
    host = _read(_cache(0, 1, "Data", size="128K", ways_of_associativity="0"))
    assert host.caches == (Cache("l1d", 128 << 10, None, None, None),)
    assert host.caches[0].way_size is None
    assert host.geometries == []


def test_the_cpu_that_is_measured_is_named() -> None:
    cpuinfo = _A55.format(0) + "\n" + _N1.format(4)
    assert processor_name(cpuinfo, 0) == "Arm Cortex-A55"
    assert processor_name(cpuinfo, 4) == "Arm Neoverse N1"
    assert processor_name(_N1.format(0).replace("0xd0c", "0xfff"), 0) == "Arm part 0xfff"
    assert processor_name(_N1.format(0).replace("0x41", "0x99"), 0) == "implementer 0x99 part 0xd0c"
    assert processor_name("", 0) == "unknown CPU"


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        ({}, "page_size is missing"),
        ({"page_size": 4096, "memory_available": "1 GiB"}, "memory_available is '1 GiB'"),
        ({"files": {"/proc/version": 6}}, "files./proc/version is 6"),
    ],
)
def test_another_line_than_that_of_files_is_refused(printed: dict[str, Json], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        read_host(printed, 0)
