# SPDX-License-Identifier: GPL-2.0
"""What a trace predicts of a remedy, next to what a second run with it counts.

The programs are those of experiments/doubles.toml and predicted.toml. All run without huge
pages; a remedy that can be applied from outside is applied to a second run.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from docs.evidence.draw.sets import EVIDENCE
from docs.evidence.draw.tables import document
from firsttouch.building.apt import unpack
from firsttouch.building.programs import HOST_RECORDER, complete_root
from firsttouch.catalog.experiments import Packages, load_experiment
from firsttouch.errors import HostError
from firsttouch.files import write_atomically
from firsttouch.progress import Reporter
from firsttouch.tables import parse_json, read, read_toml
from firsttouch.trace.advice import LEAST, assignments
from firsttouch.trace.allocators import allocator
from firsttouch.trace.reading import read_recording
from firsttouch.trace.remedies import KEEP, THP
from firsttouch.trace.sites import Remedy, Trace
from firsttouch.views.tables import Table, markdown

FILE = EVIDENCE / "predicted-programs.json.xz"
# Seconds; the longest takes a hundredth of it on an idle host.
_PATIENCE = 600
_POLICY = "always"
_ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# A prediction is near if this share of it, at most, is off, and has no row if it is closer still.
NEAR, _EXACT = 0.1, 0.03


@dataclass(frozen=True)
class Prediction:
    """Of a remedy for a program of so many faults: how many stay."""

    program: str
    faults: int
    remedy: str
    predicted: int
    measured: int

    @property
    def off(self) -> float:
        return self.measured / self.predicted - 1


def measure() -> None:
    """Trace each program without and with its remedies, and store what both counted."""
    experiment = load_experiment("doubles")
    assert experiment.root is not None
    if f"[{_POLICY}]" not in _ENABLED.read_text():
        raise HostError(f"huge pages are one of the remedies: echo {_POLICY} >{_ENABLED}")
    declared = read_toml(EVIDENCE / "predicted.toml")
    names = (*experiment.root.names, *declared.strings("packages"))
    scripts = {**experiment.scripts, **declared.table("scripts").values_of(str)}
    declared.done()
    reporter, predictions = Reporter(), []
    with program_root(replace(experiment.root, names=names), reporter) as root:
        compiler = ["gcc", "-O2", "-Wall", "-Werror", "-o"]
        made = [root / "usr/bin/predicted", EVIDENCE / "predicted.c"]
        subprocess.run([*compiler, *made], check=True)
        for name, lines in scripts.items():
            reporter.say(f"Tracing {name}")
            # A second run would find what Python compiled in the first.
            script = f"export PYTHONDONTWRITEBYTECODE=1\n{lines}"
            trace = trace_script(name, script, root, reporter)
            for remedy, variables in _remedies(trace):
                changed = f"export {assignments(variables)}\n{script}" if variables else script
                after = trace_script(name, changed, root, reporter, huge=not variables)
                predicted = trace.faults - remedy.saved
                counts = trace.faults, remedy.name, predicted, after.faults
                predictions.append(Prediction(name, *counts))
    text = json.dumps({"predictions": [asdict(each) for each in predictions]}, indent=1)
    write_atomically(FILE, lzma.compress(text.encode(), preset=9))


@contextmanager
def program_root(packages: Packages, reporter: Reporter) -> Iterator[Path]:
    """Yield a root directory with packages, for this host."""
    if os.geteuid() or platform.machine() != "x86_64":
        raise HostError("programs get their own root directory: run it as root, on x86-64.")
    unpacked = unpack(replace(packages, architecture="amd64"), reporter)
    with tempfile.TemporaryDirectory(prefix="firsttouch-root-") as scratch:
        # A copy, since programs may write to it.
        root = Path(scratch, "root")
        subprocess.run(["cp", "-a", unpacked, root], check=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            if not (root / name).exists():
                (root / name).symlink_to(f"usr/{name}")
        complete_root(root)
        yield root


def trace_script(
    name: str, script: str, root: Path, reporter: Reporter, *, huge: bool = False
) -> Trace:
    """Return the trace of a script, without huge pages unless `huge` leaves them to the host."""
    data, file = root.with_name("data"), root.with_name("script")
    file.write_text(script)
    subprocess.run(
        ["setarch", "-R", HOST_RECORDER.obtain(reporter), *([] if huge else ["-b"]),
         "-r", root, "-o", data, "-f", file],
        stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_PATIENCE,
    )  # fmt: skip
    trace = read_recording(data, root).trace
    if trace.status or trace.lost:
        raise HostError(
            f"{name}: status {trace.status:#x}, {trace.lost} faults lost: see its script."
        )
    return trace


def _remedies(trace: Trace) -> Iterator[tuple[Remedy, Mapping[str, str]]]:
    """Yield the remedies worth trying, and the variables that apply them: none for huge pages."""
    used = allocator(trace.allocator)
    for remedy in trace.remedies:
        keeps = used.environment if used and remedy.name == KEEP else {}
        if remedy.saved >= LEAST * trace.faults and (keeps or remedy.name == THP):
            yield remedy, keeps


def read_predicted() -> list[Prediction]:
    table = parse_json(lzma.decompress(FILE.read_bytes()).decode(), FILE)
    return [read(entry, Prediction) for entry in table.tables("predictions")]


def draw() -> str:
    rows = sorted(read_predicted(), key=lambda row: -abs(row.off))
    near = sum(abs(row.off) <= NEAR for row in rows)
    far = [row for row in rows if abs(row.off) > _EXACT]
    lines = []
    for row in far:
        numbers = (f"{count:,}" for count in (row.faults, row.predicted, row.measured))
        lines.append([row.program, row.remedy, *numbers, f"{100 * row.off:+.1f} %"])
    heads = ["program", "remedy", "faults", "predicted", "measured", "off"]
    said = (
        f"Programs of Debian 13, traced on x86-64 as root: {near} of {len(rows)} predictions "
        f"are at most {NEAR * 100:.0f} % off. The {len(rows) - len(far)} that are at most "
        f"{_EXACT * 100:.0f} % off have no row."
    )
    table = markdown(Table("", heads, lines, names=2))
    return document("predicted-programs", ".", ["", said, "", *table])
