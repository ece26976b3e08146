# SPDX-License-Identifier: GPL-2.0
"""Faults per page, for each kind of first touch and page size."""

from __future__ import annotations

from firsttouch.quantities import format_size, parse_size
from firsttouch.analysis.dataset import BASE_ARM, Case, Dataset, Setting
from firsttouch.output.html.dumbbells import Group, Row, draw_dumbbells
from firsttouch.output.html.figure import Figure, cell_lines, pictures, telling_cells
from firsttouch.output.labels import page_label, ratio_label

_METRIC = "page_faults"


def faults_figure(dataset: Dataset, setting: Setting, name: str) -> Figure | None:
    """Return the picture of faults per page in a setting; None if nothing measured them."""
    cases = [
        case
        for case in dataset.of(setting, "populate")
        if {"by", "page", "size"} <= case.params.keys()
    ]
    if not any(case.values(_METRIC) for case in cases):
        return None
    arms = _arms(cases)
    groups = _in_groups(cases, arms)
    alternative = "; ".join(
        f"{group.heading}: "
        + ", ".join(
            f"{row.label} "
            + " ".join(f"{arm} {ratio_label(value)}" for arm, value in row.values.items())
            for row in group.rows
        )
        for group in groups
    )
    wide, narrow = pictures(
        name,
        f"Page faults per page touched, {setting}",
        f"{' and '.join(arms)} side by side. {alternative}.",
        lambda width: draw_dumbbells(width, groups, arms, "page faults per page"),
    )
    return Figure(
        str(setting),
        "Page faults per page of the size that was asked for, by what touched it first. "
        "The fewest possible is 1; madvise (MADV_POPULATE_WRITE) is the floor to compare with.",
        wide,
        narrow,
        telling_cells(cases, arms, _METRIC, "faults"),
        cell_lines(cases, arms, _METRIC, "faults"),
    )


def _arms(cases: list[Case]) -> list[str]:
    """Return stock and the arm it is compared with; all there are if one of them is missing."""
    compared = [BASE_ARM, cases[0].experiment.compare]
    present = {arm: None for case in cases for arm in case.arms}
    return compared if set(compared) <= present.keys() else list(present)


def faults_per_page(case: Case, arm: str) -> float | None:
    """Return the faults that a page of the size asked for took; None if not measured."""
    faults = case.value(arm, _METRIC)
    if faults is None:
        return None
    pages = int(case.params["size"]) / parse_size(case.params["page"])
    return faults / pages


def _in_groups(cases: list[Case], arms: list[str]) -> list[Group]:
    """Return a group for each page size (and mapping size, where there are several)."""
    several = len({case.params["size"] for case in cases}) > 1
    threads = len({case.params.get("threads") for case in cases}) > 1
    rows: dict[str, list[Row]] = {}
    for case in cases:
        heading = f"{page_label(str(case.params['page']))} pages"
        if several:
            heading += f", {format_size(int(case.params['size']))} mapped"
        if threads:
            heading += f", {case.params.get('threads')} threads"
        values = {arm: faults_per_page(case, arm) for arm in arms}
        known = {arm: value for arm, value in values.items() if value is not None}
        rows.setdefault(heading, []).append(Row(str(case.params["by"]), known))
    return [Group(heading, tuple(members)) for heading, members in rows.items()]
