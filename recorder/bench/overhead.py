#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the recorder costs: a command with it against the command alone.

    recorder/bench/overhead.py FTRECORD [ROUNDS] -- COMMAND...

Runs the command in turn alone, with the kernel's events that nobody reads (unread.c),
recorded, and recorded with chains of calls.
Prints the median over the rounds of each pair's quotient, with its quartiles, of
two figures: the time on processors, of the command and the recorder together,
which other load on the host changes little; and the time on the wall.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Taken:
    """Seconds that a command took: on processors, with its children, and on the wall."""

    processor: float
    wall: float


FIGURES = {
    "processor": lambda taken: taken.processor,
    "wall clock": lambda taken: taken.wall,
}


def run(command: Sequence[str | Path]) -> Taken:
    """Run a command, with its output thrown away."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken(used.ru_utime + used.ru_stime, wall)


def main() -> int:
    """Measure in rounds, so that a change of the host's speed is in all of a round."""
    at = sys.argv.index("--") if "--" in sys.argv else 0
    if at not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    recorder, command = sys.argv[1], sys.argv[at + 1 :]
    rounds = int(sys.argv[2]) if at == 3 else 15
    with tempfile.TemporaryDirectory() as folder:
        file, unread = Path(folder, "trace.data"), Path(folder, "unread")
        source = Path(__file__).with_name("unread.c")
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-o", unread, source], check=True)
        ways: dict[str, Sequence[str | Path]] = {
            "alone": command,
            "unread": [unread, *command],
            "recorded": [recorder, "-o", file, "--", *command],
            "with chains": [recorder, "-c", "-o", file, "--", *command],
        }
        run(command)
        taken: dict[str, list[Taken]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, words in ways.items():
                taken[way].append(run(words))
    for name, figure in FIGURES.items():
        alone = [figure(one) for one in taken["alone"]]
        print(f"{name}, alone: {statistics.median(alone):.3f} s, median of {rounds}")
        for way in list(ways)[1:]:
            pairs = zip(alone, map(figure, taken[way]), strict=True)
            low, middle, high = statistics.quantiles((100 * (b / a - 1) for a, b in pairs), n=4)
            print(f"{name}, {way}: {middle:+.1f} % ({low:+.1f} to {high:+.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
