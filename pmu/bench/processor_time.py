# SPDX-License-Identifier: GPL-2.0
"""Processor time of commands, in pairs: what else the host does changes both."""

from __future__ import annotations

import resource
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def processor_seconds(command: Sequence[str]) -> float:
    """Run `command`; return its user time, which is the command's alone, unlike real time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(
        command, check=True, timeout=600, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def rounds(runs: Mapping[str, Callable[[], float]], number: int) -> dict[str, list[float]]:
    """Call each of `runs` in turn, `number` times; return the seconds of each, round by round."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(number):
        for name, run in runs.items():
            found[name].append(run())
    return found


def ratio(found: Mapping[str, Sequence[float]], of: str, to: str) -> float:
    """Return the median over the rounds of the time of `of` divided by that of `to`."""
    return statistics.median(a / b for a, b in zip(found[of], found[to], strict=True))


def quoted(path: Path) -> str:
    """Return `path` as a value in one of QEMU's options, which a comma would end."""
    return str(path).replace(",", ",,")
