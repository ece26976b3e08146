# SPDX-License-Identifier: GPL-2.0
"""What a run prints at its end: the matrix of kernels, and the tests that are left out."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest


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
