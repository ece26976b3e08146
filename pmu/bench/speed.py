#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the modelled PMU costs: host time per access of a guest that streams through memory.

speed.py QEMU DIR, where DIR holds libftpmu.so, stream.elf and idle.elf.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

CACHES = "l1d=64K:4:64:lru,l2=1M:8:64:lru"
VARIANTS = (
    ("no plugin", None),
    ("counting", ""),
    ("counting, L1D and L2", f",{CACHES}"),
    ("counting, L1I, L1D and L2", f",l1i=64K:4:64:lru,{CACHES}"),
)
# The best of several: what else the host does only adds.
RUNS = 3


def cpu_seconds(qemu: str, program: Path, plugin: str | None) -> float:
    """Return the processor time of one run of `program`; unlike real time, it is ours alone."""
    command = [
        *(qemu, "-M", "virt", "-cpu", "neoverse-n1", "-m", "512M", "-nographic", "-nodefaults"),
        *("-kernel", str(program)),
        *(("-plugin", plugin) if plugin else ()),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, timeout=300)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def quoted(path: Path) -> str:
    """Return `path` as a value in one of QEMU's options, which a comma would end."""
    return str(path).replace(",", ",,")


def main() -> int:
    """Print one line per variant."""
    qemu, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "counts.json"
        plugin = f"file={quoted(folder / 'libftpmu.so')},out={quoted(out)}"
        cpu_seconds(qemu, folder / "stream.elf", plugin)
        kernel = json.loads(out.read_text())["regions"][0]["kernel"]
        accesses, instructions = kernel["loads"], kernel["instructions"]
        print(f"{accesses:,} reads in {instructions:,} instructions, best of {RUNS} runs")
        print(f"{'':28}{'s':>8}{'ns/access':>12}{'of no plugin':>14}")
        base = 0.0
        for name, options in VARIANTS:
            asked = None if options is None else plugin + options
            idle = min(cpu_seconds(qemu, folder / "idle.elf", asked) for _ in range(RUNS))
            busy = min(cpu_seconds(qemu, folder / "stream.elf", asked) for _ in range(RUNS))
            seconds = busy - idle
            base = base or seconds
            print(f"{name:28}{seconds:8.3f}{seconds / accesses * 1e9:12.2f}{seconds / base:13.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
