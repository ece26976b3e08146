# SPDX-License-Identifier: GPL-2.0
"""Strips: a line for each change of a figure, and on it a mark for each layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.distributions import Distribution, changes_over
from firsttouch.analysis.verdicts import NOT_PUBLISHED
from firsttouch.catalog.arms import BASE
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.figure import Figure, SmallTable, pictures
from firsttouch.output.html.scales import Scale
from firsttouch.output.html.svg import CHARACTER, Drawing, Symbols, shorten
from firsttouch.output.labels import change_range, changes_of, share_words
from firsttouch.output.names import cell_name
from firsttouch.quantities import format_number_of

_TOP, _ROW, _LABEL = 34.0, 38.0, 15.0
# Multiples of the golden ratio leave no gap and hit no place twice.
_JITTER, _GOLDEN = 6.0, 0.618034
# The narrowest scale, in percentage points: what differs by less is drawn close together.
_NARROWEST = 0.1
# More lines than this are no picture; those not published that differ least are left out.
_MOST = 24


@dataclass(frozen=True)
class Strip:
    """The changes of one arm against stock in a row, over layouts."""

    row: Row
    arm: str
    changes: Distribution

    @property
    def label(self) -> str:
        """What the changes are of."""
        return f"{cell_name(self.row.case.experiment, self.row.case.params)}: {self.row.metric}"

    @property
    def judged(self) -> bool:
        """Whether a published figure is about these changes."""
        return self.row.verdict != NOT_PUBLISHED and self.arm == self.row.case.experiment.compare


def strips(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure of the changes over layouts in an experiment's cases on one platform.

    There is none if the cases have one layout.
    """
    experiment, platform = cases[0].experiment, cases[0].platform
    every = [
        Strip(row, arm, over_layouts)
        for row in dataset.rows
        if row.case.experiment.name == experiment.name and row.case.platform == platform
        if row.layouts and (row.published or row.metric in experiment.shown())
        for arm in row.arms
        if arm != BASE and (over_layouts := changes_over(row, arm))
    ]
    if not every:
        return []
    every.sort(
        key=lambda strip: (strip.judged, strip.changes.most - strip.changes.least), reverse=True
    )
    shown = every[:_MOST]
    drawn = symbols(dataset.catalog, {strip.arm for strip in shown})
    layouts = format_number_of(max(len(strip.changes.values) for strip in shown), "layouts")
    wide, narrow = pictures(
        name,
        f"{experiment.title}: changes in {layouts}, {platform}",
        f"{'; '.join(f'{s.label}, {s.arm}: {change_range(s.changes)}' for s in shown)}.",
        lambda width: draw_strips(width, shown, drawn),
    )
    left = len(every) - len(shown)
    return [
        Figure(
            f"{platform}, {layouts}",
            "The change from stock in each layout of kernel and program, which ought not to "
            "matter. A mark is a layout; it is above or below the line only so that all show. "
            "The bar is at the median. Each line has a scale of its own, of "
            f"{_NARROWEST} percentage points or more."
            + (f" Left out: {format_number_of(left, 'lines')} that differ less." if left else ""),
            wide,
            narrow,
            (),
            (),
            SmallTable(
                ("change from stock", "least", "median", "most", "verdict holds"),
                tuple(
                    (
                        f"{strip.label}, {strip.arm}",
                        *changes_of(strip.changes),
                        share_words(strip.row) if strip.judged else "",
                    )
                    for strip in shown
                ),
            ),
        )
    ]


def draw_strips(width: float, shown: Sequence[Strip], drawn: Symbols) -> Drawing:
    """Return the picture of strips: each with its label above, its ends in numbers beside it."""
    room = CHARACTER * max(len(end) for strip in shown for end in changes_of(strip.changes))
    drawing = Drawing(width, 0)
    y = _TOP + drawing.legend(4, 16, drawn)
    for strip in shown:
        changes = strip.changes
        least, _, most = changes_of(changes)
        drawing.text(0, y + _LABEL - 3, shorten(strip.label, width), "t")
        middle = y + (_LABEL + _ROW) / 2
        scale = scale_of(changes, room + 14, width - room - 14)
        drawing.line(scale.start, middle, scale.end, middle, "grid")
        symbol = drawn[strip.arm]
        points = [
            (scale.at(value), middle + _apart(place)) for place, value in enumerate(changes.values)
        ]
        drawing.marks(symbol.shape, points, 3.0, f"m {symbol.kind}")
        bar = scale.at(changes.median)
        drawing.line(bar, middle - 11, bar, middle + 11, "join")
        drawing.text(scale.at(changes.least) - 9, middle + 4, least, "t number", "end")
        drawing.text(scale.at(changes.most) + 9, middle + 4, most, "t number")
        y += _ROW
    drawing.height = y + 8
    return drawing


def _apart(place: int) -> float:
    """Return by how much a mark is off the line: spread evenly, neighbours far apart."""
    return _JITTER * (2 * (place * _GOLDEN % 1) - 1)


def scale_of(changes: Distribution, start: float, end: float) -> Scale:
    """Return the scale of one strip: from its least to its most, both moved apart if too close."""
    more = max(0.0, _NARROWEST - (changes.most - changes.least)) / 2
    return Scale(changes.least - more, changes.most + more, start, end)
