# SPDX-License-Identifier: GPL-2.0
"""The guest's device tree: QEMU's own, with an overlay of the machine's caches and the disk.

Bindings: Devicetree Specification v0.4, 3.8 and 3.9 (CPU and cache nodes);
Documentation/devicetree/bindings/pmem/pmem-region.txt of the kernel.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

from firsttouch.building.host_tools import DTC
from firsttouch.catalog.machines import Cache, Machine
from firsttouch.processes import output
from firsttouch.vm.guest import KASLR_SEED


@functools.lru_cache(maxsize=1024)
def device_tree(
    qemu: tuple[str, ...],
    machine: Machine,
    cpus: int,
    disk: tuple[int, int] | None,
    seed: int = KASLR_SEED,
) -> bytes:
    """Return the device tree blob for a guest started by `qemu`.

    `qemu` is the command line without kernel and disk; it must contain ``-M``.
    `cpus` is the number of CPUs in it. `disk` is the guest physical address and
    the size, in bytes, of a RAM-backed disk. `seed` is for KASLR and, hashed, for the
    kernel's random numbers. Raises HostError if QEMU or the device tree compiler is
    missing or fails.
    """
    # Names without a path, because a comma in a path would end QEMU's option.
    with tempfile.TemporaryDirectory(prefix="firsttouch-tree-") as folder:
        command = list(qemu)
        command[command.index("-M") + 1] += ",dumpdtb=base"
        output(command, cwd=Path(folder))
        Path(folder, "source").write_text(overlay_source(machine, cpus, disk, seed))
        # No -@, because the overlay gives all targets by path.
        compile_overlay = [DTC, "-q", "-I", "dts", "-O", "dtb", "-o", "overlay", "source"]
        output(compile_overlay, cwd=Path(folder))
        output(["fdtoverlay", "-i", "base", "-o", "tree", "overlay"], cwd=Path(folder))
        return Path(folder, "tree").read_bytes()


def overlay_source(
    machine: Machine, cpus: int, disk: tuple[int, int] | None, seed: int = KASLR_SEED
) -> str:
    """Return the overlay's source: cache properties of each CPU, cache nodes, seeds, the disk."""
    lines = ["/dts-v1/;", "/plugin/;"]
    nodes: list[str] = []
    for number, kind in enumerate(machine.kinds_of(cpus)):
        l3 = ["next-level-cache = <&l3>;"] if machine.l3 else []
        below = l3
        if kind.l2:
            below = [f"next-level-cache = <&cpu{number}_l2>;"]
            nodes += _cache_node(f"cpu{number}_l2", f"cpu{number}-l2-cache", 2, kind.l2, l3)
        # State both the L1D and the L1I: if one is missing, the kernel counts no
        # leaf for level 1, and the L2 is lost too.
        l1 = [*_geometry("d-", kind.l1d), *_geometry("i-", kind.l1i)]
        lines += _target(f"/cpus/cpu@{number}", [*l1, *below])
    if machine.l3:
        nodes += _cache_node("l3", "l3-cache", 3, machine.l3, ())
    if nodes:
        lines += _target("/cpus", nodes)
    # A kernel without a seed hashes all its entropy for each number that it needs, such as for
    # the offset of the stack in each system call: some 10,000 instructions. A machine that has
    # run for minutes has a seed. The kernel takes 256 bits as enough.
    random = f"rng-seed = [{hashlib.sha256(seed.to_bytes(8)).hexdigest()}];"
    lines += _target("/chosen", [f"kaslr-seed = {_cells(seed)};", random])
    if disk:
        region = ['\tcompatible = "pmem-region";', f"\treg = {_cells(*disk)};", "};"]
        lines += _target("/", [f"pmem@{disk[0]:x} {{", *region])
    return "\n".join(lines) + "\n"


def _target(path: str, body: list[str]) -> list[str]:
    name = path.strip("/").replace("/", "-").replace("@", "-") or "root"
    return [
        f'/ {{ fragment-{name} {{ target-path = "{path}"; __overlay__ {{',
        *(f"\t{line}" for line in body),
        "}; }; };",
    ]


def _geometry(prefix: str, cache: Cache) -> list[str]:
    return [
        f"{prefix}cache-size = <{cache.size}>;",
        f"{prefix}cache-line-size = <{cache.line}>;",
        f"{prefix}cache-sets = <{cache.sets}>;",
    ]


def _cache_node(label: str, node: str, level: int, cache: Cache, below: Iterable[str]) -> list[str]:
    properties = ['compatible = "cache";', f"cache-level = <{level}>;", "cache-unified;",
                  *_geometry("", cache), *below]  # fmt: skip
    return [f"{label}: {node} {{", *(f"\t{line}" for line in properties), "};"]


def _cells(*values: int) -> str:
    """Return values of 64 bits, each as two cells."""
    return f"<{' '.join(f'{value >> 32:#x} {value & 0xFFFFFFFF:#x}' for value in values)}>"
