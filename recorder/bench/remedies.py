#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a trace predicts of the remedies that it names, and what they do.

remedies.py RECORDER [NAME...], as root, prints a row in Markdown for each remedy of the programs
of remedies.toml that can be applied: by a variable, or by a setting of the host, which is set
for the run. Both runs have random addresses: each is done three times, and the median counts.
The faults with a remedy are the kernel's own count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from statistics import median_low

from firsttouch.trace.advice import Advice, advise, with_remedy
from firsttouch.trace.reading import read_recording
from firsttouch.trace.sites import Trace

_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
_TIMES = range(3)
_ECHO = "echo always >"


def traced(recorder: Path, command: str, environment: Mapping[str, str]) -> Trace:
    subprocess.run(
        [recorder, "-o", "data", "--", "sh", "-c", f"exec {command}"],
        env={**os.environ, **environment}, check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return read_recording(Path("data")).trace


def counted(command: str, environment: Mapping[str, str]) -> int:
    """Return the page faults of a command after exec, as perf-stat(1) counts them.

    A run in which the kernel found no memory for a huge page is repeated.
    """
    before = -1
    while before != (before := fallbacks()):
        done = subprocess.run(
            ["perf", "stat", "-x,", "-epage-faults", "sh", "-c", f"exec {command}"],
            env={**os.environ, **environment}, check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    return int(done.stderr.splitlines()[-1].partition(",")[0])


def fallbacks() -> int:
    """Return how often the kernel has found no memory for a huge page."""
    lines = map(str.split, Path("/proc/vmstat").read_text().splitlines())
    return sum(int(count) for name, count in lines if name == "thp_fault_fallback")


def measured(command: str, advice: Advice) -> int:
    """Return the faults with a remedy."""
    if advice.environment:
        variables = with_remedy(advice.environment, os.environ)
        return median_low(counted(command, variables) for _ in _TIMES)
    setting = Path(advice.how.removeprefix(_ECHO))
    before = setting.read_text().partition("[")[2].partition("]")[0]
    setting.write_text("always")
    try:
        return median_low(counted(command, {}) for _ in _TIMES)
    finally:
        setting.write_text(before)


def compare(recorder: Path, name: str, command: str) -> None:
    """Print the remedies of a program."""
    bases = [traced(recorder, command, {}) for _ in _TIMES]
    for advice in advise(bases[0]):
        if not advice.environment and not advice.how.startswith(_ECHO):
            continue
        left = [
            (base.faults - max(each.saved, each.most), base.faults - each.saved)
            for base in bases
            for each in base.remedies
            if each.name == advice.remedy.name
        ]
        least, most = (median_low(each) for each in zip(*left, strict=True))
        after = measured(command, advice)
        near = min(max(after, least), most)
        predicted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        faults = median_low(base.faults for base in bases)
        off = f"{100 * (after / near - 1):+.1f} %"
        row = name, advice.what, f"{faults:,}", predicted, f"{after:,}", off
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> int:
    recorder, *names = sys.argv[1:]
    program = Path(recorder).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in _DECLARED["files"].items():
            Path(name).write_text(text)
        programs = _DECLARED["programs"]
        wanted = {name: programs[name] for name in names or programs}
        for made, command in _DECLARED["make"].items():
            if any(made in words for words in wanted.values()):
                subprocess.run(command, shell=True, check=True)
        for name, command in wanted.items():
            compare(program, name, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
