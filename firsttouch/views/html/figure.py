# SPDX-License-Identifier: GPL-2.0
"""A figure on the page: its pictures for wide and narrow screens, its caption, its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.views.html.svg import Drawing
from firsttouch.views.labels import value_label
from firsttouch.views.names import case_label

# Widths of a drawing in units. Each figure is drawn for both, because text that
# is scaled down for a phone is too small to read.
WIDE, NARROW = 720.0, 344.0


@dataclass(frozen=True)
class CellLine:
    """One cell under a figure: its name, its value, and the command that runs only it."""

    label: str
    arm: str
    value: str
    command: str


@dataclass(frozen=True)
class SmallTable:
    """A small table under a figure: its first column has names, the others figures."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
        """Return the picture as a part of a page."""
        return self.drawing.svg(self.name, self.title, self.description)


@dataclass(frozen=True)
class Figure:
    """A figure: `wide` and `narrow` show the same data.

    `cells` are all cells in it; `shown` are those whose commands the page shows
    without a click.
    """

    heading: str
    caption: str
    wide: Picture
    narrow: Picture
    shown: tuple[CellLine, ...]
    cells: tuple[CellLine, ...]
    table: SmallTable | None = None


# A chart draws the cases of one experiment on one platform; `str` names its pictures.
Chart = Callable[[Dataset, Sequence[Case], str], list[Figure]]


def cell_lines(
    cases: Sequence[Case], arms: Sequence[str], metric: str, unit: str
) -> tuple[CellLine, ...]:
    """Return a line for each cell of `cases` in `arms`."""
    return tuple(
        CellLine(
            case_label(case, cases),
            arm,
            value_label(case.value(arm, metric), unit),
            case.command(arm),
        )
        for case in cases
        for arm in arms
        if arm in case.arms
    )


def telling_cells(
    cases: Sequence[Case], arms: Sequence[str], metric: str, unit: str
) -> tuple[CellLine, ...]:
    """Return the lines of the case whose arms differ most: the page shows its commands first."""

    def spread(case: Case) -> float:
        values = [value for arm in arms if (value := case.value(arm, metric)) is not None]
        return max(values) - min(values) if values else 0.0

    telling = max(cases, key=spread)
    lines = cell_lines(cases, arms, metric, unit)
    wanted = {telling.command(arm) for arm in arms if arm in telling.arms}
    return tuple(line for line in lines if line.command in wanted)


def pictures(
    name: str, title: str, description: str, draw: Callable[[float], Drawing]
) -> tuple[Picture, Picture]:
    """Return the wide and the narrow picture that `draw` makes."""
    return (
        Picture(f"{name}-wide", title, description, draw(WIDE)),
        Picture(f"{name}-narrow", title, description, draw(NARROW)),
    )
