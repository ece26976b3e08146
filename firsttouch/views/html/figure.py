# SPDX-License-Identifier: GPL-2.0
"""A figure on the page: its pictures for wide and narrow screens, its caption, its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from firsttouch.analysis.measurement import Case
from firsttouch.views.html.svg import Drawing
from firsttouch.views.names import case_label, metric_words, value_label
from firsttouch.views.tables import Table

# Widths of a drawing in units. Each figure is drawn for both, because text that
# is scaled down for a phone is too small to read.
WIDE, NARROW = 720.0, 344.0


@dataclass(frozen=True)
class Picture:
    """A drawing with its title, and with its description for those who cannot see it.

    `name` tells it from the others on a page.
    """

    name: str
    title: str
    description: str
    drawing: Drawing

    def __html__(self) -> Markup:
        return self.drawing.svg(self.name, self.title, self.description)


@dataclass(frozen=True)
class Chart:
    """A figure: `wide` and `narrow` show the same data, or there is one for all screens.

    `cells`, the values and commands of all cells in it, is folded away.
    """

    heading: str
    caption: str
    wide: Picture
    narrow: Picture | None = None
    table: Table | None = None
    cells: Table | None = None


def cell_table(cases: Sequence[Case], arms: Sequence[str], metric: str, unit: str) -> Table:
    """Return each cell's value of a metric, and the command that runs only this cell."""
    rows = [
        (
            case_label(case, cases),
            arm,
            case.command(arm),
            value_label(case.value(arm, metric), unit),
        )
        for case in cases
        for arm in arms
        if arm in case.arms
    ]
    return Table("", ("cell", "arm", "command", metric_words(metric)), rows, names=3)


def pictures(
    name: str, title: str, description: str, draw: Callable[[float], Drawing]
) -> tuple[Picture, Picture]:
    return (
        Picture(f"{name}-wide", title, description, draw(WIDE)),
        Picture(f"{name}-narrow", title, description, draw(NARROW)),
    )
