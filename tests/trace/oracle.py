# SPDX-License-Identifier: GPL-2.0
"""What the kernel's exception tracepoints say of the faults that the recorder recorded, too.

    python -m tests.trace.oracle [--user] -- COMMAND...

The error code of x86-64 tells a read from a write, and a page that is mapped from
one that is not. A double is a read of a missing page, then a write to it while it
is mapped, by one process. Needs root and perf.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.programs import build_recorder
from firsttouch.finder.doubles import find
from firsttouch.finder.events import Fault
from firsttouch.finder.records import open_recording
from firsttouch.progress import Reporter

NOBODY = 65534
_EVENTS = "exceptions:page_fault_user,exceptions:page_fault_kernel"
# Bits of the error code.
_MAPPED, _WRITE, _USER, _FETCH = 1, 2, 4, 16
_LINE = re.compile(
    r"^\s*(?P<comm>.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s+exceptions:page_fault_\w+: +"
    r"address=(?P<address>\w+) ip=\w+ error_code=(?P<code>\w+)"
)
_USER_SPACE = 1 << 47
_PAGE = 12


@dataclass(frozen=True)
class Reported:
    """A page fault as the tracepoint has it."""

    pid: int
    tid: int
    address: int
    code: int


@dataclass(frozen=True)
class Verdict:
    """Doubles of a program: how many there were, and how many the recorder's trace tells.

    `missed` are not told, `false` are told and were none. Beside them stand those
    that docs/trace.md explains: `kernel` were missed because the kernel itself
    read the page, which only root may see; `huge` are writes to a huge zero page
    that was read elsewhere.
    """

    faults: int
    unmatched: int
    true: int
    told: int
    missed: int
    false: int
    kernel: int
    huge: int


def judge(command: Sequence[str | Path], folder: Path, *, user: bool) -> Verdict:
    """Record a command both ways at once; `user`: the recorder and the command are nobody's."""
    trace, reference = folder / "trace.data", folder / "perf.data"
    recorder = folder / "ftrecord"
    recorder.write_bytes(build_recorder(Reporter()).read_bytes())
    recorder.chmod(0o755)
    rights = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if user else []
    subprocess.run(
        ["perf", "record", "-q", "-m", "64M", "-e", _EVENTS, "-o", reference, "--",
         *rights, recorder, "-o", trace, "--", *command],
        check=False, stdout=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    exceptions = list(_exceptions(reference))
    recording = open_recording(trace)
    found = find(recording)
    faults = [event for event in open_recording(trace).events() if isinstance(event, Fault)]
    seen = [one for one in exceptions if not user or one.code & _USER]
    unmatched = Counter((one.tid, one.address) for one in seen)
    unmatched.subtract((fault.tid, fault.address) for fault in faults)
    true, kernel = _doubles(exceptions)
    told: Counter[tuple[int, int]] = Counter()
    huge: Counter[tuple[int, int]] = Counter()
    for fault, double in zip(faults, found.faults.double, strict=True):
        if double:
            key = fault.pid, fault.address >> _PAGE
            (huge if (fault.mapped or 0) >= 2 << 20 else told)[key] += 1
    missed = true - told
    hidden = kernel & missed if user else Counter()
    return Verdict(
        len(seen),
        sum(map(abs, unmatched.values())),
        true.total(),
        told.total() + huge.total(),
        (missed - hidden).total(),
        (told - true).total(),
        hidden.total(),
        (huge - true).total(),
    )


def _exceptions(file: Path) -> Iterator[Reported]:
    """Yield the faults of the traced program alone, in the order of time."""
    with subprocess.Popen(
        ["perf", "script", "-i", file, "-F", "comm,pid,tid,event,trace"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
    ) as script:  # fmt: skip
        assert script.stdout is not None
        for line in script.stdout:
            match = _LINE.match(line)
            if not match:
                continue
            address = int(match["address"], 16)
            if match["comm"] in ("ftrecord", "setpriv", "perf", "perf-exec"):
                continue
            if address < _USER_SPACE:
                yield Reported(
                    int(match["pid"]), int(match["tid"]), address, int(match["code"], 16)
                )


def _doubles(
    exceptions: Sequence[Reported],
) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Return all doubles by process and page, and those of them that the kernel had a part in."""
    read: dict[tuple[int, int], Reported] = {}
    doubles: Counter[tuple[int, int]] = Counter()
    kernel: Counter[tuple[int, int]] = Counter()
    for one in exceptions:
        key = one.pid, one.address >> _PAGE
        if one.code & _MAPPED:
            first = read.pop(key, None) if one.code & _WRITE else None
            if first:
                doubles[key] += 1
                kernel[key] += not (one.code & first.code & _USER)
        elif one.code & (_WRITE | _FETCH):
            read.pop(key, None)
        else:
            read[key] = one
    return doubles, kernel


def main() -> int:
    """Judge a command and print the verdict."""
    at = sys.argv.index("--")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        print(judge(sys.argv[at + 1 :], folder, user="--user" in sys.argv[:at]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
