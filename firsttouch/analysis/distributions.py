# SPDX-License-Identifier: GPL-2.0
"""Distributions of a row over layouts: its values, its changes, how often its verdict is the same.

A layout is an arrangement of kernel and program in memory that ought not to
matter (lab/cells.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from firsttouch.analysis.dataset import Row
from firsttouch.analysis.verdicts import NOT_JUDGED, NOT_PUBLISHED


@dataclass(frozen=True)
class Distribution:
    """One figure in several layouts; `values` are in the order of the layouts, one or more."""

    values: tuple[float, ...]

    @property
    def least(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The value in the middle, or the mean of the two there."""
        return float(median(self.values))

    @property
    def most(self) -> float:
        """The largest value."""
        return max(self.values)


def values_over(row: Row, arm: str) -> Distribution | None:
    """Return the values of `arm`; None if fewer than two layouts have one."""
    return _distribution(layout.arms.get(arm) for layout in row.layouts)


def changes_over(row: Row, arm: str | None = None) -> Distribution | None:
    """Return the changes in per cent, of `arm` against stock or of the row's pair of arms.

    Returns None if fewer than two layouts have one.
    """
    return _distribution(
        layout.change_percent if arm is None else layout.change(arm) for layout in _comparable(row)
    )


def holds_in(row: Row) -> tuple[int, int] | None:
    """Return in how many layouts the verdict is the row's, and of how many; None if not judged."""
    if row.verdict in (NOT_PUBLISHED, NOT_JUDGED) or not row.layouts:
        return None
    same = [layout.verdict == row.verdict for layout in _comparable(row)]
    return sum(same), len(same)


def _comparable(row: Row) -> list[Row]:
    """Return the row in each layout in which the same two arms were compared."""
    return [layout for layout in row.layouts if layout.case.pair() == row.case.pair()]


def _distribution(values: Iterable[float | None]) -> Distribution | None:
    numbers = tuple(value for value in values if value is not None)
    return Distribution(numbers) if len(numbers) > 1 else None
