# SPDX-License-Identifier: GPL-2.0
"""This host as the machine of guests under KVM: may they run, what disturbs them.

Source: the kernel's Documentation/ABI/testing/sysfs-class-thermal. `system` is the host's
root directory.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.catalog.architectures import (
    DEFAULT_ARCHITECTURE,
    architecture_names,
    load_architecture,
)
from firsttouch.catalog.machines import CpuKind, Machine
from firsttouch.errors import HostError
from firsttouch.vm.cpus import CPUS, ROOT, processor_name, read_caches, siblings, text

# Load of others from which on a run is disturbed: a tenth of a CPU.
_LOAD = 0.1
# A clock this much below the run's fastest counts as lower.
_SLOWER = 0.97


def check_kvm(
    architecture: str = DEFAULT_ARCHITECTURE, system: Path = ROOT, machine: str = ""
) -> None:
    """Raise HostError if this host's KVM cannot run guests of `architecture` for this user."""
    machine = machine or platform.machine()
    device = system / "dev/kvm"
    if machine != load_architecture(architecture).machine:
        words = "".join(
            f"give --arch {name}, "
            for name in architecture_names()
            if load_architecture(name).machine == machine
        )
        raise HostError(
            f"this host is {machine}, and KVM runs guests of its host's architecture alone: "
            f"{words}run --time on an {architecture} host, or leave it out, which counts on any "
            "host."
        )
    if not device.exists():
        raise HostError(
            "/dev/kvm is missing: take a machine that boots Linux as a hypervisor may (EL2, "
            "VT-x or AMD-V), such as a board, a workstation or a cloud's bare metal; a virtual "
            "machine mostly has no KVM."
        )
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        raise HostError(
            "you may not open /dev/kvm: run `sudo usermod -aG kvm $USER`, log in again, and "
            "repeat the command."
        ) from None
    except OSError as error:
        raise HostError(
            f"/dev/kvm cannot be opened ({error.strerror}): `dmesg | grep kvm` says why."
        ) from None


def host_machine(
    cpu: int, system: Path = ROOT, architecture: str = DEFAULT_ARCHITECTURE
) -> Machine:
    """Return this host with the caches that sysfs tells of `cpu`, none if it leaves one out."""
    caches = read_caches(cpu, system)
    l1d, l1i = caches.get(("1", "Data")), caches.get(("1", "Instruction"))
    kinds = () if not l1d or not l1i else (CpuKind(1, l1d, l1i, caches.get(("2", "Unified"))),)
    l3 = caches.get(("3", "Unified")) if kinds else None
    return Machine("host", processor_name(), "host", None, kinds, l3, architecture=architecture)


@dataclass(frozen=True)
class Condition:
    """What the host told of itself at one time, of the CPUs that vCPUs are pinned to.

    `load` is the number of runnable tasks in the last minute. `khz` is the lowest
    clock, 0 if it is unknown. `held` tells of throttling: states of cooling devices
    for CPUs, or the bits that a Raspberry Pi's firmware sets; 0 is none.
    """

    load: float
    khz: int
    governor: str
    held: int


def condition(cpus: Iterable[int], system: Path = ROOT) -> Condition:
    """Return what the host tells now."""
    clocks, governors, held = [], set(), 0
    for cpu in cpus:
        folder = system / CPUS / f"cpu{cpu}/cpufreq"
        clocks.append(int(text(folder / "scaling_cur_freq") or 0))
        governors.add(text(folder / "scaling_governor"))
    for device in (system / "sys/class/thermal").glob("cooling_device*"):
        if "cpufreq" in text(device / "type"):
            held += int(text(device / "cur_state") or 0)
    for file in (system / "sys/devices/platform").glob("soc*/*firmware/get_throttled"):
        # The lower bits are of now, the upper of any time since boot.
        held |= int(text(file) or "0", 16) & 0xF
    load = text(system / "proc/loadavg").split()
    return Condition(
        float(load[0]) if load else 0.0, min(clocks), "/".join(sorted(governors)), held
    )


def disturbances(
    before: Condition, during: Sequence[Condition], cpus: Sequence[int], system: Path = ROOT
) -> list[str]:
    """Return a sentence for each thing that may have disturbed the times of a run on `cpus`."""
    said = []
    names = ", ".join(map(str, cpus))
    if before.governor not in ("", "performance"):
        said.append(
            f"The governor of CPU {names} is {before.governor}: `performance` keeps one clock."
        )
    if before.load > _LOAD:
        said.append(f"Other work ran before: a load of {before.load:.2f}.")
    if busy := [boot.load for boot in during if boot.load > len(cpus) + 1]:
        said.append(f"Other work ran during the run: a load of up to {max(busy):.2f}.")
    if held := sum(boot.held > 0 for boot in during):
        said.append(f"The machine throttled its CPUs at {held} of {len(during)} boots: cool it.")
    fastest = max((boot.khz for boot in during), default=0)
    if slower := sum(0 < boot.khz < _SLOWER * fastest for boot in during):
        said.append(f"The clock was below its {fastest:,} kHz at {slower} of {len(during)} boots.")
    if shared := [cpu for cpu in cpus if re.search(r"[,-]", siblings(cpu, system))]:
        said.append(f"SMT is on: CPU {shared[0]} shares its core with another.")
    return said


def pin_vcpus(qemu: int, cpus: Sequence[int]) -> bool:
    """Pin each vCPU thread of QEMU's process to one of `cpus`, its other threads elsewhere.

    Returns whether all were there; QEMU makes them after it has populated memory.
    """
    with contextlib.suppress(OSError):
        tasks = {int(task.name): text(task / "comm") for task in _tasks(qemu)}
        vcpus = {
            task: int(match[1])
            for task, name in tasks.items()
            if (match := re.fullmatch(r"CPU (\d+)/\w+", name))
        }
        if len(vcpus) < len(cpus):
            return False
        others = os.sched_getaffinity(0) - set(cpus)
        for task in tasks:
            where = {cpus[vcpus[task]]} if task in vcpus else others
            if where:
                os.sched_setaffinity(task, where)
        return True
    return False


def _tasks(process: int) -> Iterable[Path]:
    return Path(f"/proc/{process}/task").iterdir()
