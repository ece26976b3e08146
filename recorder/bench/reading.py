#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What it takes to read a recording: processor time and memory of the report of many faults.

reading.py RECORDER COMMAND... records a command, makes a file of FAULTS faults (in the
environment, 100 million) of copies of its rounds, in TMPDIR, and reads that.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from firsttouch.trace.reading import read_recording, write_results
from firsttouch.trace.records import Recording

_FAULTS = int(os.environ.get("FAULTS", "100_000_000"))


def main() -> int:
    """Print seconds, microseconds for a fault, and the most memory."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        once, many = folder / "once.data", folder / "trace.data"
        subprocess.run([sys.argv[1], "-o", once, "--", *sys.argv[2:]], check=True)
        recorded = read_recording(once).trace.faults
        data = once.read_bytes()
        # All records of each copy follow, with their times: what counts is their number.
        with many.open("wb") as file:
            file.write(data)
            for _ in range(_FAULTS // recorded - 1):
                file.write(data[len(b"FTTRACE3") :])
        size = many.stat().st_size
        assert Recording(many).page_size
        started, clock = time.process_time(), time.monotonic()
        read = read_recording(many)
        write_results(read, folder / "out")
        seconds, passed = time.process_time() - started, time.monotonic() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    faults = read.trace.faults
    print(f"{faults:,} faults in a file of {size / 1e9:.1f} GB: {seconds:.0f} s of processor time")
    print(f"({seconds / faults * 1e6:.2f} us a fault; {passed:.0f} s passed), {memory:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
