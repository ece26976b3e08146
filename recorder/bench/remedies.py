#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a trace predicts of the remedies that it names, and what they do.

remedies.py RECORDER [NAME...], as root, prints a row in Markdown for each remedy of the programs
of remedies.toml that can be applied: by a variable, or by a setting of the host, which is set
for the run. Both runs have random addresses: each is done three times, and the median counts.
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


def measured(recorder: Path, command: str, advice: Advice) -> int:
    """Return the faults with a remedy."""
    if advice.environment:
        variables = with_remedy(advice.environment, os.environ)
        return median_low(traced(recorder, command, variables).faults for _ in _TIMES)
    setting = Path(advice.how.removeprefix(_ECHO))
    before = setting.read_text().partition("[")[2].partition("]")[0]
    setting.write_text("always")
    try:
        return median_low(traced(recorder, command, {}).faults for _ in _TIMES)
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
        after = measured(recorder, command, advice)
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
        for command in _DECLARED["make"].values():
            subprocess.run(command, shell=True, check=True)
        for name, command in _DECLARED["programs"].items():
            if not names or name in names:
                compare(program, name, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
