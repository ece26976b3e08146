#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How many faults have a caller of the program's own, by frame pointers and by .eh_frame.

callers.py RECORDER [NAME...] records the programs of callers.toml that are installed, and prints
a table in Markdown: of the faults that are not in files, the share behind which the chain has a
function that is not of the C and C++ libraries, the dynamic linker or an allocator.
"""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from firsttouch.trace.doubles import Finder
from firsttouch.trace.events import Call, Fault
from firsttouch.trace.kinds import Kind
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.reading import is_runtime
from firsttouch.trace.records import Recording
from firsttouch.trace.spaces import NAMED
from firsttouch.trace.unwinding import Unwinder

_PROGRAMS = Path(__file__).with_suffix(".toml")


class FramePointers(Unwinder):
    """Takes the chain that the kernel found."""

    def chain(self, _process: Process, event: Fault | Call) -> tuple[int, ...]:
        """Return it."""
        return event.chain


def shares(data: Path) -> tuple[int, float, float]:
    """Return the faults that are not in files, and the share with a caller: before and after."""
    found = []
    for unwinder in (FramePointers, Unwinder):
        recording, files = Recording(data), MappedFiles(Path("/"))
        finder = Finder(recording, files)
        finder.unwinder = unwinder(recording.machine, files)
        totals = finder.run()
        faults = called = 0
        for stack in totals.stacks.values():
            if stack.places[0] not in NAMED:
                count = sum(stack.kinds) - stack.kinds[Kind.FILE] - stack.kinds[Kind.PRIVATE]
                faults += count
                called += count if not all(map(is_runtime, stack.places[1:])) else 0
        found.append(called / max(faults, 1))
    return faults, found[0], found[1]


def main() -> int:
    """Print the table, and the median of its columns."""
    recorder, *names = sys.argv[1:]
    rows = []
    print("| program | faults | frame pointers | .eh_frame |\n|---|---:|---:|---:|")
    for name, command in tomllib.loads(_PROGRAMS.read_text())["programs"].items():
        words = shlex.split(command)
        if (names and name not in names) or not shutil.which(words[0]):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            data = Path(scratch, "trace.data")
            subprocess.run(
                [recorder, "-c", "-o", data, "--", *words], check=True, cwd=scratch,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            rows.append(shares(data))
        faults, before, after = rows[-1]
        print(f"| {name} | {faults:,} | {before:.1%} | {after:.1%} |", flush=True)
    medians = (f"{statistics.median(column):.1%}" for column in list(zip(*rows, strict=True))[1:])
    print(f"| median of {len(rows)} | | {' | '.join(medians)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
