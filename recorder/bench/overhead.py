#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the recorder costs: the time of a command with it against the time without.

    recorder/bench/overhead.py FTRECORD [ROUNDS] -- COMMAND...

Runs the command in turn without the recorder, with it, and with it and chains of
calls. Prints the median over the rounds of each pair's quotient with its
quartiles, and the quotient of the best times, to which other load only adds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds(command: list[str]) -> float:
    """Return the time that a command takes, with its output thrown away."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> int:
    """Measure in rounds, so that a change of the host's speed is in all of a round."""
    at = sys.argv.index("--") if "--" in sys.argv else 0
    if at not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    recorder, command = sys.argv[1], sys.argv[at + 1 :]
    rounds = int(sys.argv[2]) if at == 3 else 15
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "trace.data")  # noqa: PTH118
        ways = {
            "alone": command,
            "recorded": [recorder, "-o", file, "--", *command],
            "with chains": [recorder, "-c", "-o", file, "--", *command],
        }
        seconds(command)
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, words in ways.items():
                taken[way].append(seconds(words))
    print(f"alone: {statistics.median(taken['alone']):.3f} s, median of {rounds}")
    for way in list(ways)[1:]:
        change = [100 * (b / a - 1) for a, b in zip(taken["alone"], taken[way], strict=True)]
        low, middle, high = statistics.quantiles(change, n=4)
        best = 100 * (min(taken[way]) / min(taken["alone"]) - 1)
        print(f"{way}: {middle:+.1f} % ({low:+.1f} to {high:+.1f}), best {best:+.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
