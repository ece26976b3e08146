#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What profiles cost: processor time of a cell of the laboratory with them and without, in pairs.

profile.py DIR ROUNDS, where DIR holds libftpmu.so. Builds the stock kernel if the store lacks it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from processor_time import processor_seconds, quoted, ratio, rounds

CELL = (
    *("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "256M"),
    *("--arm", "stock"),
)
CACHES = {"counting": "", "L1I, L1D and L2": ",l1i=64K:4:64:lru,l1d=64K:4:64:lru,l2=1M:8:64:lru"}


def main() -> int:
    """Print the ratio with caches and without."""
    plugin, times = Path(sys.argv[1]).resolve() / "libftpmu.so", int(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        shown = subprocess.run(
            [sys.executable, "-m", "firsttouch", "lab", *CELL, "--show-qemu", "--out", scratch],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout  # fmt: skip
        command = shlex.split(shown)
        symbols = Path(command[command.index("-kernel") + 1]).with_name("System.map")
        out = quoted(Path(scratch) / "counts.json")

        def run(options: str) -> float:
            changed = list(command)
            changed[command.index("-plugin") + 1] = f"file={quoted(plugin)},out={out}{options}"
            return processor_seconds(changed)

        for name, caches in CACHES.items():
            profile = f"{caches},profile={quoted(symbols)}"
            runs = {"without": lambda c=caches: run(c), "with": lambda p=profile: run(p)}
            found = rounds(runs, times)
            without, profiled = (min(found[one]) for one in ("without", "with"))
            print(
                f"{name}: {without:.2f} s without a profile, {profiled:.2f} s with one, "
                f"{ratio(found, 'with', 'without'):.2f} times as long (median of {times} pairs)"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
