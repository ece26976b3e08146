# SPDX-License-Identifier: GPL-2.0
"""This host: what sysfs and lscpu say of it, and as the machine of guests under KVM."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from firsttouch.errors import HostError
from firsttouch.vm.host import (
    Condition,
    HostCache,
    check_kvm,
    choose_cpus,
    condition,
    host_machine,
    lscpu,
    pin_vcpus,
    read_host,
)


def _write(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def _cpu(number: int, capacity: int, siblings: str = "") -> dict[str, object]:
    folder = f"sys/devices/system/cpu/cpu{number}"
    return {
        f"{folder}/cpu_capacity": capacity,
        f"{folder}/topology/thread_siblings_list": siblings or number,
        f"{folder}/cpufreq/scaling_governor": "ondemand",
        f"{folder}/cpufreq/scaling_cur_freq": 1_500_000 + number,
    }


def _cache(index: int, level: int, kind: str, size: int, ways: int) -> dict[str, object]:
    folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
    return {
        f"{folder}/level": level,
        f"{folder}/type": kind,
        f"{folder}/size": f"{size}K",
        f"{folder}/ways_of_associativity": ways,
        f"{folder}/coherency_line_size": 64,
        f"{folder}/number_of_sets": (size << 10) // ways // 64,
    }


def test_policies_caches_and_features_are_read(tmp_path: Path) -> None:
    thp, l2 = "sys/kernel/mm/transparent_hugepage", "sys/devices/system/cpu/cpu0/cache/index2"
    _write(tmp_path, {
        **_cpu(0, 1024), **_cache(0, 1, "Data", 64, 4),
        # Apple's device trees give sizes only; the kernel then shows ways of 0.
        f"{l2}/level": 2, f"{l2}/type": "Unified", f"{l2}/size": "128K",
        f"{l2}/ways_of_associativity": 0,
        f"{thp}/enabled": "always [madvise] never",
        f"{thp}/hpage_pmd_size": 2 << 20,
        f"{thp}/hugepages-2048kB/enabled": "always [inherit] madvise never",
        f"{thp}/hugepages-64kB/enabled": "always inherit madvise [inorder] never",
        "proc/sys/vm/write_intent": 1,
    })  # fmt: skip
    host = read_host([0], tmp_path)
    assert host.caches == (HostCache("l1d", 65536, 4, 64),)
    assert host.caches[0].way_size == 16384
    assert host.thp == {"enabled": "madvise", "hpage_pmd_size": "2097152"}
    assert list(host.mthp.items()) == [("64", "inorder"), ("2048", "inherit")]
    assert (host.before.governor, host.write_intent) == ("ondemand", "1")
    assert host.maps(2 << 20) and host.maps(65536) and not host.maps(131072)


def test_a_kernel_without_any_of_the_files(tmp_path: Path) -> None:
    host = read_host([0], tmp_path)
    assert (host.caches, host.thp, host.mthp) == ((), {}, {})
    assert (host.before.governor, host.write_intent) == ("", None)
    assert not host.maps(2 << 20)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("Vendor ID:  ARM\n  Model name:  Neoverse-N1\n    Model:  1\n", "Neoverse-N1"),
        ("  Model name:  Cortex-A55\n  Model name:  Cortex-A76\n", "Cortex-A55 + Cortex-A76"),
        ("Vendor ID:  ARM\n", "unknown CPU"),
    ],
)
def test_the_model_of_each_kind_of_cpu_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, name: str
) -> None:
    monkeypatch.setattr("firsttouch.vm.host.output", lambda *_, **__: printed)
    monkeypatch.setattr("firsttouch.vm.host.lscpu", lscpu.__wrapped__)
    assert read_host([0], tmp_path).processor == name


def test_a_host_without_lscpu_has_an_unknown_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("firsttouch.vm.host.lscpu", lscpu.__wrapped__)
    assert read_host([0], tmp_path).processor != "unknown CPU"
    monkeypatch.setenv("PATH", "/nowhere")
    assert read_host([0], tmp_path).processor == "unknown CPU"


def test_each_host_without_kvm_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"this host is x86_64, .*: give it by --arch, or leave"):
        check_kvm("arm64", tmp_path, "x86_64")
    with pytest.raises(HostError, match="/dev/kvm is missing: take a machine that boots"):
        check_kvm("arm64", tmp_path, "aarch64")
    (tmp_path / "dev/kvm").mkdir(parents=True)
    with pytest.raises(HostError, match="cannot be opened"):
        check_kvm("arm64", tmp_path, "aarch64")
    (tmp_path / "dev/kvm").rmdir()
    (tmp_path / "dev/kvm").touch()
    check_kvm("arm64", tmp_path, "aarch64")


def test_vcpus_get_the_largest_cpus_one_a_core_and_cpu_0_last(tmp_path: Path) -> None:
    small = {**_cpu(0, 400), **_cpu(1, 400)}
    large = {**_cpu(2, 1024, "2-3"), **_cpu(3, 1024, "2-3"), **_cpu(4, 1024), **_cpu(5, 1024)}
    _write(tmp_path, {**small, **large})
    assert choose_cpus(range(6), tmp_path) == [5, 4, 3]
    assert choose_cpus([0, 1], tmp_path) == [1, 0]


def test_a_guest_gets_the_caches_of_the_host(tmp_path: Path) -> None:
    caches = {
        **_cache(0, 1, "Data", 64, 4),
        **_cache(1, 1, "Instruction", 64, 4),
        **_cache(2, 2, "Unified", 512, 8),
    }
    _write(tmp_path, caches)
    (kind,) = host_machine(0, tmp_path).cpus
    assert (kind.l1d.size, kind.l1d.ways, kind.l1d.sets) == (64 << 10, 4, 256)
    assert kind.l2
    assert kind.l2.colors == 16
    # A board whose firmware leaves the sets out has no caches, not wrong ones.
    (tmp_path / "sys/devices/system/cpu/cpu0/cache/index0/number_of_sets").unlink()
    assert host_machine(0, tmp_path).cpus == ()


def test_the_condition_of_a_host_is_of_its_pinned_cpus(tmp_path: Path) -> None:
    _write(tmp_path, {**_cpu(2, 1024, "2-3"), "proc/loadavg": "1.25 0.5 0.1 2/345 678"})
    assert condition([2], tmp_path) == Condition(1.25, 1_500_002, "ondemand")


def test_each_vcpu_is_pinned_and_the_rest_of_qemu_is_elsewhere() -> None:
    """QEMU itself: its vCPU thread is there before a kernel is."""
    allowed = os.sched_getaffinity(0)
    last = max(allowed)
    command = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-S", "-nodefaults",
               "-display", "none", "-name", "test,debug-threads=on"]  # fmt: skip
    with subprocess.Popen(command) as qemu:
        try:
            end = time.monotonic() + 60
            while not pin_vcpus(qemu.pid, [last]):
                assert time.monotonic() < end
                time.sleep(0.05)
            where = {
                (task / "comm").read_text().strip(): os.sched_getaffinity(int(task.name))
                for task in Path(f"/proc/{qemu.pid}/task").iterdir()
            }
        finally:
            qemu.kill()
    vcpus = {name for name in where if name.startswith("CPU 0/")}
    assert [where[name] for name in vcpus] == [{last}]
    others = allowed - {last} or allowed
    assert all(cpus == others for name, cpus in where.items() if name not in vcpus)
