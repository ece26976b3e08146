# SPDX-License-Identifier: GPL-2.0
"""What an arm changes across settings: each case in all of them, beside as it is without any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import CellChange, Changes


@dataclass(frozen=True)
class Moved:
    """A case that changed to one side, by the names of the settings in which it did.

    The empty name is that of no setting. `plain` is the case without any,
    whether it changed or not; None if it did not run. `of` is the number of
    settings in which the case ran.
    """

    cells: Mapping[str, CellChange]
    plain: CellChange | None
    of: int

    @property
    def most(self) -> CellChange:
        """The largest change in per cent of the case's kernel instructions."""
        return max(self.cells.values(), key=lambda cell: cell.weight)

    @property
    def example(self) -> CellChange:
        """The change without a setting, if there is one, else the largest."""
        return self.cells.get("") or self.most


@dataclass(frozen=True)
class Matrix:
    """What an arm changes across settings: what got worse and better, the largest change first.

    A case may be in both. `still` are cases that changed in no setting.
    """

    changes: Changes
    settings: tuple[str, ...]
    worse: tuple[Moved, ...]
    better: tuple[Moved, ...]
    still: tuple[Case, ...]


def matrix_of(changes: Changes) -> Matrix:
    """Return the changes of an arm by case, across the settings in which it ran."""
    by_case: dict[str, dict[str, CellChange]] = {}
    for cell in changes.cells:
        case = cell.case
        key = f"{case.platform.release} {case.experiment.name} {dict(case.params)}"
        by_case.setdefault(key, {})[case.platform.setting] = cell
    names = dict.fromkeys(cell.case.platform.setting for cell in changes.cells)
    judged = [
        cells
        for cells in by_case.values()
        if any(cell.kind != "not judged" for cell in cells.values())
    ]
    return Matrix(
        changes,
        tuple(sorted(names)),
        tuple(_moved(judged, more=True)),
        tuple(_moved(judged, more=False)),
        tuple(
            next(iter(cells.values())).case
            for cells in judged
            if all(cell.kind != "changed" for cell in cells.values())
        ),
    )


def _moved(cases: Iterable[Mapping[str, CellChange]], *, more: bool) -> list[Moved]:
    moved = []
    for cells in cases:
        changed = {
            setting: cell
            for setting, cell in cells.items()
            if cell.kind == "changed" and cell.costs_more == more
        }
        if changed:
            moved.append(Moved(changed, cells.get(""), len(cells)))
    return sorted(moved, key=lambda each: (each.most.unit == "cell", -each.most.weight))
