# SPDX-License-Identifier: GPL-2.0
"""The CPUs of this host: their name by lscpu(1), their caches and kinds by sysfs.

Source: the kernel's Documentation/ABI/testing/sysfs-devices-system-cpu. `system` is
the host's root directory.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from firsttouch.catalog.machines import Cache
from firsttouch.errors import UserError
from firsttouch.tables import Fields, parse_json

ROOT = Path("/")
CPUS = "sys/devices/system/cpu"


@functools.cache
def lscpu() -> Mapping[str, str]:
    """Return the fields of `lscpu -J` for this host; none if it cannot run."""
    try:
        done = subprocess.run(
            ["lscpu", "-J"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
            check=True,
        )
        return lscpu_fields(done.stdout)
    except (OSError, subprocess.CalledProcessError, UserError):
        return {}


def lscpu_fields(printed: str) -> dict[str, str]:
    """Return the fields in lscpu's JSON, flat since 2.34 or nested since 2.38.

    CPUs of several kinds have a field several times: its values are joined.
    """
    values: dict[str, list[str]] = {}
    for name, value in _flat(parse_json(printed, "lscpu -J").tables("lscpu")):
        values.setdefault(name, []).append(value)
    return {name: " + ".join(dict.fromkeys(several)) for name, several in values.items()}


def _flat(entries: Iterable[Fields]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        yield entry.take("field", str).removesuffix(":"), entry.optional("data", str) or ""
        yield from _flat(entry.tables("children"))


def processor_name() -> str:
    """Return the model of this host's CPUs, such as ``Neoverse-N1``."""
    return lscpu().get("Model name") or "unknown CPU"


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
            cores.setdefault(siblings(cpu, system) or str(cpu), cpu)
    return list(cores.values())


def siblings(cpu: int, system: Path) -> str:
    """Return the list of CPUs on the core of `cpu`; empty if it is unknown."""
    return text(system / CPUS / f"cpu{cpu}/topology/thread_siblings_list")


def read_caches(cpu: int, system: Path = ROOT) -> dict[tuple[str, str], Cache]:
    """Return the caches of `cpu` by level and type, such as ``1`` and ``Data``.

    A cache is left out if firmware or sysfs lacks its size, line or number of sets.
    """
    caches: dict[tuple[str, str], Cache] = {}
    for folder in sorted((system / CPUS / f"cpu{cpu}/cache").glob("index*")):
        words = [text(folder / name) for name in (
            "size", "ways_of_associativity", "coherency_line_size", "number_of_sets",
        )]  # fmt: skip
        size, ways, line, sets = (int(word.removesuffix("K") or 0) for word in words)
        size <<= 10
        if size and line and sets:
            cache = Cache(size, ways or size // line // sets, "sysfs", line)
            caches[text(folder / "level"), text(folder / "type")] = cache
    return caches


def text(file: Path) -> str:
    """Return the contents of a file of the kernel; empty if it is not there."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
