# SPDX-License-Identifier: GPL-2.0
"""Faults per page, for each kind of first touch and page size."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.output.html.figure import Figure, cell_lines, pictures, telling_cells
from firsttouch.output.labels import page_label
from firsttouch.quantities import format_size

_METRIC = "page_faults"


def faults_per_page(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return the figure of faults per page; none if no case measured them."""
    cases = [case for case in cases if {"by", "page"} <= case.params.keys() and case.pages()]
    if not any(case.values(_METRIC) for case in cases):
        return []
    arms = _arms(dataset, cases)
    groups = _in_groups(cases, arms)
    platform = cases[0].platform
    wide, narrow = pictures(
        name,
        f"Page faults per page touched, {platform}",
        f"{' and '.join(arms)} side by side. {describe(groups)}.",
        lambda width: draw_dumbbells(
            width, groups, symbols(dataset.catalog, arms), "page faults per page"
        ),
    )
    return [
        Figure(
            str(platform),
            "Page faults per page of the requested size, by the kind of first touch. An "
            "atomic reads before it writes: on stock its first touch is a read fault that maps "
            "the zero page, then a write fault that replaces it by a cleared page. The "
            "minimum is 1; madvise (MADV_POPULATE_WRITE) is the floor to compare with.",
            wide,
            narrow,
            telling_cells(cases, arms, _METRIC, "faults"),
            cell_lines(cases, arms, _METRIC, "faults"),
        )
    ]


def _arms(dataset: Dataset, cases: Sequence[Case]) -> list[str]:
    """Return stock and the arm that is compared; all arms if one of the two is missing."""
    compared = [BASE, cases[0].experiment.compare]
    present = dataset.arms(cases)
    return compared if set(compared) <= set(present) else present


def _in_groups(cases: Sequence[Case], arms: Sequence[str]) -> list[Group]:
    """Return a group for each page size, and for each mapping size and number of threads."""
    several = len({case.params["size"] for case in cases}) > 1
    threads = len({case.params.get("threads") for case in cases}) > 1
    bars: dict[str, list[Bar]] = {}
    for case in cases:
        heading = f"{page_label(case.params['page'])} pages"
        if several:
            heading += f", {format_size(case.number('size'))} mapped"
        if threads:
            heading += f", {case.params.get('threads')} threads"
        values = {arm: value for arm in arms if (value := case.per_page(arm, _METRIC)) is not None}
        bars.setdefault(heading, []).append(Bar(str(case.params["by"]), values))
    return [Group(heading, tuple(members)) for heading, members in bars.items()]
