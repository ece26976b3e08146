# SPDX-License-Identifier: GPL-2.0
"""What a run prints at its end: the layers that ran, their time, and the matrix of kernels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from firsttouch.quantities import format_duration

_MARKED = ("regress", "kernel", "long")
_LAYERS = ("fast", "long", "kernel", "regress")
# Seconds; files that took less are summed up.
_WORTH_A_LINE = 5.0


def layer_of(report: pytest.TestReport) -> str:
    """Return the layer of the test that `report` is of."""
    return next((name for name in _MARKED if name in report.keywords), "fast")


def times(reports: Sequence[pytest.TestReport]) -> list[str]:
    """Return what tests took by layer and by file, as lines; that of all workers is added up."""
    count: Counter[str] = Counter()
    layers: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        layer, file = layer_of(report), report.nodeid.split("::")[0]
        count[layer] += report.when == "call" and report.passed
        layers[layer] += report.duration
        files[file] += report.duration
    lines = [
        "passed by layer: "
        + ", ".join(f"{name} {count[name]} ({format_duration(layers[name])})" for name in _LAYERS)
    ]
    short = sum(took for took in files.values() if took < _WORTH_A_LINE)
    lines += [
        f"{format_duration(took):>12}  {file}"
        for file, took in sorted(files.items(), key=lambda entry: -entry[1])
        if took >= _WORTH_A_LINE
    ]
    return [*lines, f"{format_duration(short):>12}  all other files"]


def matrix(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return the outcome of the kernel's tests by configuration, as a table in Markdown."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for report in reports:
        properties: dict[str, Any] = dict(report.user_properties)
        if "matrix" in properties:
            release, kernel, tests = properties["matrix"]
            row = rows.setdefault((release, kernel, tests), Counter())
            row[report.outcome] += 1
            row.update(properties.get("cases", {}))
    if not rows:
        return []
    kinds = ("passed", "skipped", "failed on both", "failed")
    head = ("release", "kernel", "tests", "guests", *kinds)
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for (release, kernel, tests), row in sorted(rows.items()):
        guests = f"{row['passed']} passed" + (f", {row['failed']} FAILED" if row["failed"] else "")
        counts = (f"{row[f'case {kind}']:,}" for kind in kinds)
        lines.append(" | ".join((release, kernel, tests, guests, *counts)))
    return [f"| {line} |" for line in lines]


def left_out(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return the kernel's own tests that are not run, each with the reason."""
    reasons = {
        name: reason
        for report in reports
        for key, names in report.user_properties
        if key == "left_out" and isinstance(names, list)
        for name, reason in names
    }
    return [f"left out: {name}: {why}" for name, why in reasons.items()]
