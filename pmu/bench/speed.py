#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the modelled PMU costs: processor time of a guest that streams through memory.

speed.py QEMU DIR ROUNDS, where DIR holds libftpmu.so, libcallback.so, stream.elf,
hits.elf and idle.elf. Compares with QEMU's own cache.c, and with a callback that does nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from contrib import build_contrib_cache
from processor_time import processor_seconds, quoted, ratio, rounds

from firsttouch.errors import FirsttouchError
from firsttouch.progress import Reporter

L1I, CACHES = "l1i=64K:4:64:lru", "l1d=64K:4:64:lru,l2=1M:8:64:lru"
# The same caches in the words of cache.c, which always models an L1I and an L1D.
THEIRS = (
    "icachesize=65536,iassoc=4,iblksize=64,dcachesize=65536,dassoc=4,dblksize=64,"
    "l2cachesize=1048576,l2assoc=8,l2blksize=64,evict=lru"
)
NONE, CALLBACK, MODEL, ALL, CONTRIB = (
    "no plugin", "the callback alone", "L1D and L2", "L1I, L1D and L2", "cache.c",
)  # fmt: skip


def main() -> int:
    """Print one line per variant, and the two ratios."""
    qemu, folder, times = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "counts.json"
        ours = f"file={quoted(folder / 'libftpmu.so')},out={quoted(out)}"
        variants = {
            NONE: None,
            CALLBACK: f"file={quoted(folder / 'libcallback.so')}",
            "counting": ours,
            MODEL: f"{ours},{CACHES}",
            ALL: f"{ours},{L1I},{CACHES}",
        }
        try:
            contrib = build_contrib_cache(Path(scratch), Reporter())
            variants[CONTRIB] = f"file={quoted(contrib)},{THEIRS}"
        except FirsttouchError as error:
            print(f"Without QEMU's own cache.c: {error}", file=sys.stderr)

        def run(program: str, plugin: str | None) -> float:
            return processor_seconds(
                [
                    *(qemu, "-M", "virt", "-cpu", "neoverse-n1", "-m", "512M", "-nographic"),
                    *("-nodefaults", "-kernel", str(folder / program)),
                    *(("-plugin", plugin) if plugin else ()),
                ]
            )

        def busy(plugin: str | None, program: str = "stream.elf") -> Callable[[], float]:
            return lambda: run(program, plugin) - run("idle.elf", plugin)

        run("stream.elf", variants["counting"])
        kernel = json.loads(out.read_text())["regions"][0]["kernel"]
        found = rounds({name: busy(plugin) for name, plugin in variants.items()}, times)
        hits = rounds({name: busy(variants[name], "hits.elf") for name in (CALLBACK, MODEL)}, times)
    accesses, instructions = kernel["loads"], kernel["instructions"]
    print(f"{accesses:,} reads in {instructions:,} instructions; medians of {times} rounds")
    print(f"{'':28}{'s':>8}{'ns/access':>12}{'of no plugin':>14}")
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        nanoseconds = middle / accesses * 1e9
        print(f"{name:28}{middle:8.3f}{nanoseconds:12.2f}{ratio(found, name, NONE):13.2f}x")
    if CONTRIB in found:
        print(f"cache.c takes {ratio(found, CONTRIB, ALL):.1f} times as long as {ALL} here")
    print(f"{MODEL} takes {ratio(found, MODEL, CALLBACK):.2f} times as long as {CALLBACK}")
    # One read in eight is the first of its line, and misses in both caches.
    hit = _more(hits) / accesses
    miss = (_more(found) - hit * accesses * 7 / 8) / (accesses / 8)
    price = f"{hit * 1e9:.1f} ns for a hit, {miss * 1e9:.1f} ns for a miss in both caches"
    print(f"That is bounded by the model, which adds to the callback {price}")
    return 0


def _more(found: Mapping[str, Sequence[float]]) -> float:
    """Return the seconds that the model takes more than a callback that does nothing."""
    return statistics.median(found[MODEL]) - statistics.median(found[CALLBACK])


if __name__ == "__main__":
    sys.exit(main())
