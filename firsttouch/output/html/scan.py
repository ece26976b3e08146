# SPDX-License-Identifier: GPL-2.0
"""zero-scan: what the zero pages of several colours take of the cache."""

from __future__ import annotations

from firsttouch.quantities import format_size
from firsttouch.analysis.dataset import Case, Dataset, Setting, arm_order
from firsttouch.output.html.dumbbells import Group, Row, draw_dumbbells
from firsttouch.output.html.figure import Figure, cell_lines, pictures, telling_cells
from firsttouch.output.labels import ratio_label

_METRICS = {"l1d_misses": "L1D misses", "l2_misses": "L2 misses"}


def scan_figures(dataset: Dataset, setting: Setting, name: str) -> list[Figure]:
    """Return misses per round of reading zeroes beside a working set, a figure for each level."""
    cases = [
        case
        for case in dataset.of(setting, "zero-scan")
        if {"stride", "working_set"} <= case.params.keys()
    ]
    return [
        _figure(measured, metric, words, f"{name}-{metric}")
        for metric, words in _METRICS.items()
        if (measured := [case for case in cases if case.values(metric)])
    ]


def _figure(cases: list[Case], metric: str, words: str, name: str) -> Figure:
    setting = cases[0].setting
    arms = sorted({arm for case in cases for arm in case.values(metric)}, key=arm_order)
    rows: dict[str, list[Row]] = {}
    for case in cases:
        rounds = int(case.params.get("rounds", 1))
        values = {arm: value / rounds for arm, value in case.values(metric).items()}
        stride = f"every {format_size(int(case.params['stride']))}"
        rows.setdefault(_beside(case), []).append(Row(stride, values))
    groups = [Group(heading, tuple(members)) for heading, members in rows.items()]
    described = "; ".join(
        f"{group.heading}, {row.label}: "
        + " ".join(f"{arm} {ratio_label(value)}" for arm, value in row.values.items())
        for group in groups
        for row in group.rows
    )
    wide, narrow = pictures(
        name,
        f"{words} per round of reading zero pages, {setting}",
        f"{described}.",
        lambda width: draw_dumbbells(width, groups, arms, f"{words} per round"),
    )
    return Figure(
        f"{words}, {setting}",
        f"{words} per round of reading memory that was never written, densely or page by page, "
        "alone and beside a working set. More on the right of stock is the price of the colours.",
        wide,
        narrow,
        telling_cells(cases, arms, metric, "misses"),
        cell_lines(cases, arms, metric, "misses"),
    )


def _beside(case: Case) -> str:
    size = int(case.params["working_set"])
    return f"beside a working set of {format_size(size)}" if size else "zero pages alone"
