# SPDX-License-Identifier: GPL-2.0
"""The times of `firsttouch lab --time` as a figure of the report: no counts."""

from __future__ import annotations

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.times import ELAPSED, timed_rows
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.collection import Catalog, load_catalog
from firsttouch.lab.times import Times
from firsttouch.views.html.charts import Bar, Group, describe, draw_dumbbells
from firsttouch.views.html.figure import Chart, pictures
from firsttouch.views.html.style import symbols
from firsttouch.views.tables import Table
from firsttouch.views.times import agreement, cell_title, change_words, sentences

_TIMES = "Elapsed time of each cell, not a count: medians of boots, changes with intervals of 95 %."


def times_figure(
    name: str, times: Times, catalog: Catalog, counted: Dataset | None = None
) -> Chart:
    """Return the figure of the times that `firsttouch lab --time` measured on a machine.

    Its caption says how far they agree with what emulation `counted` of the same images.
    """
    experiments = load_catalog([cell.experiment for cell in times.cells], (), ())
    every = timed_rows(times, experiments)
    rows = [row for row in every if row.metric == ELAPSED]
    more = agreement(times, every, counted) if counted else ()
    arms = [arm.name for arm in times.arms]
    bars = tuple(
        Bar(
            cell_title(row.cell, times.cells), {arm: value / 1e6 for arm, value in row.arms.items()}
        )
        for row in rows
    )
    groups = (Group("", bars),)
    wide, narrow = pictures(
        f"times-{name}",
        f"Times on {times.host.processor}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, symbols(catalog, arms), "ms"),
    )
    others = [arm for arm in arms if arm != BASE]
    table = tuple(
        (cell_title(row.cell, times.cells), *(change_words(row.changes.get(arm)) for arm in others))
        for row in rows
    )
    return Chart(
        f"{name}: {times.host.processor}, guests of KVM with Linux {times.kernel}",
        " ".join([_TIMES, *sentences(times, rows), *more]),
        wide,
        narrow,
        Table("", ("change against stock", *others), table),
    )
