# SPDX-License-Identifier: GPL-2.0
"""What an arm changes against stock, or another arm, cell by cell: faults, TLBI, pages and more.

Counts are exact, so that equal means equal. But a kernel whose code only moved
runs the same path a moment earlier or later: ticks, and what they wake, fall
elsewhere. The control shows how much that is: it is stock, a moment later. A
change within it is of a kind of its own. Cache misses depend on addresses, too, so
that code that moves has others: they are judged beyond what that explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.catalog.settings import load_setting

FAULTS, INSTRUCTIONS = "page_faults", "instructions_kernel"
# The counts that a path through the kernel has; any other follows from these, or from addresses.
PATH: Mapping[str, str] = {
    FAULTS: "page faults", INSTRUCTIONS: "kernel instructions", "tlbi": "TLBI", "dsb": "DSB",
    "isb": "ISB", "tlbi_broadcast": "broadcast TLBI", "ipi": "IPI", "aborts": "exceptions",
    "pages_allocated": "pages", "resident_bytes": "bytes resident",
}  # fmt: skip
# What an experiment counts that measures other operations than faults.
OPERATIONS = "operations"
MISSES: Mapping[str, str] = {"l1d_misses": "L1D misses", "l2_misses": "L2 misses"}
JUDGED: Mapping[str, str] = {**PATH, **MISSES}
Kind = Literal["changed", "chance", "equal", "not judged"]
Unit = Literal["operation", "fault", "cell"]
# What a few ticks more or less make of a cell. Measured on 6.12: one has one DSB, one ISB and
# 2,300 instructions; with what it wakes, 17,900, 5 DSB and 25 ISB.
_TICKS: Mapping[str, float] = {INSTRUCTIONS: 20_000, "dsb": 6, "isb": 30}
# Of the kernel instructions of a small cell, which has no time for ticks.
_TICKS_PART = 0.01
# What addresses make of the misses of a cell, in misses and as a part of them. Measured on 6.12 by
# munmap and a patch of other code: up to 2,645 of 8,972 L1D misses and 384 of 1,004 L2 misses.
_MOVED = 1_000
_MOVED_PART = 1 / 3
# An access that QEMU hides may be a miss that was not counted and, with LRU, cause another.
_PER_UNSEEN = 2


@dataclass(frozen=True)
class CellChange:
    """One case on the arm `base` and on another: both values of each count in `PATH`, of misses.

    `chance` is by how much each of these changes without cause: a few ticks,
    other addresses, and what the control changes against stock.
    """

    case: Case
    base: str
    counts: Mapping[str, tuple[float, float]]
    misses: Mapping[str, tuple[float, float]]
    chance: Mapping[str, float]

    @property
    def unit(self) -> Unit:
        """What counts are divided by."""
        return units_of(self.case, self.base)[0]

    @property
    def units(self) -> float:
        """The number of operations or faults of the base, by which counts are divided."""
        return units_of(self.case, self.base)[1]

    @property
    def can_be_profiled(self) -> bool:
        """Whether counts by function tell of it: they follow one CPU, and have a unit."""
        cpus = load_setting(self.case.platform.setting).cpus or self.case.params.get("cpus", 1)
        return cpus == 1 and self.unit != "cell"

    @property
    def kind(self) -> Kind:
        """Whether the path changed."""
        if INSTRUCTIONS not in self.counts:
            return "not judged"
        if any(map(self.moved, self.judged)):
            return "changed"
        same = all(value == base for base, value in self.counts.values())
        return "equal" if same else "chance"

    @property
    def judged(self) -> Mapping[str, tuple[float, float]]:
        """Both values of all that is judged."""
        return {**self.counts, **self.misses}

    def moved(self, metric: str) -> bool:
        """Whether a count changed by more than chance."""
        base, value = self.judged.get(metric, (0.0, 0.0))
        return abs(value - base) > self.chance.get(metric, 0.0)

    @property
    def percent(self) -> float:
        """By how much the case's kernel instructions changed, in per cent of the base's."""
        base, value = self.counts[INSTRUCTIONS]
        return 100 * (value - base) / base if base else 0.0

    @property
    def weight(self) -> float:
        """The size of that change, by which cells are ordered; 0 if it is within chance."""
        return abs(self.percent) if self.moved(INSTRUCTIONS) else 0.0

    @property
    def decisive(self) -> str:
        """The count that says to which side the path changed.

        It is the first in `JUDGED` that moved; kernel instructions come before faults.
        """
        first = sorted(self.judged, key=lambda name: name != INSTRUCTIONS)
        return next(filter(self.moved, first), INSTRUCTIONS)

    @property
    def costs_more(self) -> bool:
        """Whether the decisive count grew by more than chance."""
        base, value = self.judged.get(self.decisive, (0.0, 0.0))
        return self.moved(self.decisive) and value > base

    def per_unit(self, metric: str) -> tuple[float, float]:
        """Return a count on the base and on the arm, divided by the base's faults or operations."""
        base, value = self.judged[metric]
        return base / self.units, value / self.units

    def change(self, metric: str) -> float:
        """Return the change of a count per fault or operation, or of the whole case."""
        base, value = self.per_unit(metric)
        return value - base


@dataclass(frozen=True)
class Changes:
    """What `arm` changes against the arm `base` in each case that has both.

    Cases are in the order of their change in per cent, the largest first.
    """

    arm: str
    base: str
    meaning: str
    cells: tuple[CellChange, ...]

    def of_kind(self, kind: Kind) -> list[CellChange]:
        """Return the cells of a kind."""
        return [cell for cell in self.cells if cell.kind == kind]

    def changed(self, *, more: bool) -> list[CellChange]:
        """Return the cells that changed and cost more, or less, than on the base."""
        return [cell for cell in self.of_kind("changed") if cell.costs_more == more]

    def examples(self) -> dict[str, CellChange]:
        """Return the largest change to ``more`` and to ``less`` that can be profiled."""
        largest = {
            name: next((cell for cell in self.changed(more=more) if cell.can_be_profiled), None)
            for name, more in (("more", True), ("less", False))
        }
        return {name: cell for name, cell in largest.items() if cell}


def units_of(case: Case, base: str = BASE) -> tuple[Unit, float]:
    """Return what counts of `case` are divided by, and how many `base` has; 1 for the whole cell.

    Cells of operations take a few faults beside.
    """
    if operations := case.value(base, OPERATIONS):
        return "operation", operations
    faults = case.value(base, FAULTS)
    return ("fault", faults) if faults else ("cell", 1.0)


def changes(dataset: Dataset, base: str = BASE) -> list[Changes]:
    """Return what each tried arm of `dataset` changes against the arm `base`."""
    return [
        Changes(
            arm.name,
            base,
            arm.meaning,
            tuple(sorted(_cells(dataset.cases, base, arm.name), key=_order)),
        )
        for arm in sorted(dataset.catalog.arms.values(), key=lambda arm: arm.order)
        if arm.tried and arm.name != base
    ]


def _cells(cases: Iterable[Case], base: str, arm: str) -> Iterable[CellChange]:
    for case in cases:
        if {base, arm} <= case.arms.keys():
            counts, control = _both(case, base, arm), _both(case, BASE, CONTROL)
            chance = {
                metric: abs(control[metric][1] - control[metric][0]) if metric in control else 0.0
                for metric in counts
            }
            unseen = max(case.arms[name].unseen for name in (base, arm))
            for metric, (first, _) in counts.items():
                if metric in MISSES:
                    chance[metric] += _MOVED + _MOVED_PART * first + _PER_UNSEEN * unseen
                elif metric == INSTRUCTIONS:
                    chance[metric] += min(_TICKS[metric], _TICKS_PART * first)
                else:
                    chance[metric] += _TICKS.get(metric, 0)
            misses = {metric: counts.pop(metric) for metric in MISSES if metric in counts}
            yield CellChange(case, base, counts, misses, chance)


def _both(case: Case, base: str, arm: str) -> dict[str, tuple[float, float]]:
    """Return both values of each count in `PATH`, and of the misses that the model saw."""
    if not {base, arm} <= case.arms.keys():
        return {}
    seen = [
        {**{name: of.metrics[name] for name in PATH if name in of.metrics},
         **{name: of.misses[name] for name in MISSES if name in of.misses}}
        for of in (case.arms[base], case.arms[arm])
    ]  # fmt: skip
    return {name: (seen[0][name], seen[1][name]) for name in seen[0] if name in seen[1]}


def _order(cell: CellChange) -> tuple[bool, float]:
    if cell.kind == "not judged":
        return True, 0.0
    return cell.unit == "cell", -cell.weight


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
