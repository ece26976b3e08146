# SPDX-License-Identifier: GPL-2.0
"""The table of published figures, in words: what was claimed, what was measured, the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firsttouch.analysis.dataset import Row
from firsttouch.analysis.distributions import changes_over
from firsttouch.analysis.published import PublishedFigure
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_change, format_value
from firsttouch.views.labels import SIGNS, change_range, share_words
from firsttouch.views.names import cell_name

# The arm in the head of the table. For a value of another arm, its name follows the value.
_SHOWN_ARM = "on"


@dataclass(frozen=True)
class PublishedLine:
    """One line of the table; `command` measures the figure, and is empty if a cell answers it.

    `spread` has the changes over layouts, `share` how many of these have the verdict.
    """

    figure: str
    source: str
    cell: str
    stock: str
    other: str
    change: str
    verdict: str
    sign: str
    command: str
    spread: str = ""
    share: str = ""


def published_lines(figures: Iterable[PublishedFigure]) -> list[PublishedLine]:
    """Return the lines of the table, in the order of the figures."""
    figures = list(figures)
    several = len({figure.platform for figure in figures} - {None}) > 1
    return [_line(figure, several=several) for figure in figures]


def _line(figure: PublishedFigure, *, several: bool) -> PublishedLine:
    row, compare = figure.row, figure.experiment.compare
    cell, stock, other, change = figure.experiment.name, "-", "-", "-"
    if row is not None:
        where = f", {row.case.platform}" if several else ""
        cell = f"{cell_name(figure.experiment, row.case.params)}{where}: {row.metric}"
        stock = format_value(row.arms.get(BASE), row.unit)
        other = format_value(row.arms.get(compare), row.unit)
        other += "" if compare == _SHOWN_ARM else f" ({compare})"
        change = format_change(row.change_percent)
    return PublishedLine(
        figure.published.figure,
        figure.published.source,
        cell,
        stock,
        other,
        change,
        figure.verdict,
        SIGNS[figure.verdict],
        "" if row else figure.command(),
        _spread(row) if row else "",
        share_words(row) if row else "",
    )


def _spread(row: Row) -> str:
    """Return the changes over layouts in words; empty if there is one."""
    over_layouts = changes_over(row)
    return change_range(over_layouts) if over_layouts else ""
