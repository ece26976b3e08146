# SPDX-License-Identifier: GPL-2.0
"""What an arm changes against stock, cell by cell: faults, instructions, TLBI, pages and more.

Counts are exact, so that equal means equal. But a kernel whose code only moved
runs the same path a moment earlier or later: ticks, and what they wake, fall
elsewhere. The control shows how much that is: it is stock, a moment later. A
change within it is of a kind of its own. Cache misses depend on addresses, too:
they are told, and nothing is judged by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE, CONTROL

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
Kind = Literal["changed", "chance", "equal", "not judged"]
# What a few ticks more or less make of a cell. Measured on 6.12: one has one DSB, one ISB and
# 2,300 instructions; with what it wakes, 17,900, 5 DSB and 25 ISB.
_TICKS: Mapping[str, float] = {INSTRUCTIONS: 20_000, "dsb": 6, "isb": 30}


@dataclass(frozen=True)
class CellChange:
    """One case on stock and on an arm: both values of each count in `PATH`, and of misses.

    `chance` is by how much each count changes without cause: a few ticks, and
    what the control changes against stock.
    """

    case: Case
    counts: Mapping[str, tuple[float, float]]
    misses: Mapping[str, tuple[float, float]]
    chance: Mapping[str, float]

    @property
    def unit(self) -> str:
        """What counts are divided by: ``operation`` if the cell counts them, ``fault``, ``cell``.

        Cells of operations take a few faults beside.
        """
        if self.case.value(BASE, OPERATIONS):
            return "operation"
        return "fault" if self.counts.get(FAULTS, (0.0, 0.0))[0] else "cell"

    @property
    def units(self) -> float:
        """The number of operations or faults on stock, by which counts are divided."""
        by = {
            "operation": self.case.value(BASE, OPERATIONS),
            "fault": self.counts.get(FAULTS, (1.0,))[0],
        }
        return by.get(self.unit) or 1.0

    @property
    def kind(self) -> Kind:
        """Whether the path changed."""
        if INSTRUCTIONS not in self.counts:
            return "not judged"
        if all(value == base for base, value in self.counts.values()):
            return "equal"
        return "changed" if any(map(self.moved, self.counts)) else "chance"

    def moved(self, metric: str) -> bool:
        """Tell whether a count changed by more than chance."""
        base, value = self.counts.get(metric, (0.0, 0.0))
        return abs(value - base) > self.chance.get(metric, 0.0)

    @property
    def percent(self) -> float:
        """By how much the case's kernel instructions changed, in per cent of those on stock."""
        base, value = self.counts[INSTRUCTIONS]
        return 100 * (value - base) / base if base else 0.0

    @property
    def decisive(self) -> str:
        """The count that says to which side the path changed.

        It is the first in `PATH` that moved; kernel instructions come before faults.
        """
        first = sorted(self.counts, key=lambda name: name != INSTRUCTIONS)
        return next(filter(self.moved, first), INSTRUCTIONS)

    @property
    def costs_more(self) -> bool:
        """Whether the decisive count grew by more than chance."""
        base, value = self.counts.get(self.decisive, (0.0, 0.0))
        return self.moved(self.decisive) and value > base

    def per_fault(self, metric: str) -> tuple[float, float]:
        """Return a count on stock and on the arm, divided by the faults or operations on stock."""
        base, value = self.counts[metric]
        return base / self.units, value / self.units

    def change(self, metric: str) -> float:
        """Return the change of a count per fault or operation, or of the whole case."""
        base, value = self.per_fault(metric)
        return value - base


@dataclass(frozen=True)
class Changes:
    """What `arm` changes against stock in each case that has both.

    Cases are in the order of their change in per cent, the largest first.
    """

    arm: str
    meaning: str
    cells: tuple[CellChange, ...]

    def of_kind(self, kind: Kind) -> list[CellChange]:
        """Return the cells of a kind."""
        return [cell for cell in self.cells if cell.kind == kind]

    def changed(self, *, more: bool) -> list[CellChange]:
        """Return the cells that changed and cost more, or less, than on stock."""
        return [cell for cell in self.of_kind("changed") if cell.costs_more == more]

    def examples(self) -> dict[str, CellChange]:
        """Return the largest change to ``more`` and to ``less`` of a cell that has a unit."""
        found = {
            name: next((cell for cell in self.changed(more=more) if cell.unit != "cell"), None)
            for name, more in (("more", True), ("less", False))
        }
        return {name: cell for name, cell in found.items() if cell}


def changes(dataset: Dataset) -> list[Changes]:
    """Return what each tried arm of `dataset` changes."""
    return [
        Changes(
            arm.name,
            arm.meaning,
            tuple(sorted(_cells(dataset.cases, arm.name), key=_order)),
        )
        for arm in sorted(dataset.catalog.arms.values(), key=lambda arm: arm.order)
        if arm.tried
    ]


def _cells(cases: Iterable[Case], arm: str) -> Iterable[CellChange]:
    for case in cases:
        if {BASE, arm} <= case.arms.keys():
            counts = _both(case, arm, PATH)
            control = _both(case, CONTROL, PATH)
            chance = {}
            for metric in counts:
                base, again = control.get(metric, (0.0, 0.0))
                chance[metric] = abs(again - base) + _TICKS.get(metric, 0)
            yield CellChange(case, counts, _both(case, arm, MISSES), chance)


def _both(case: Case, arm: str, metrics: Iterable[str]) -> dict[str, tuple[float, float]]:
    found = {metric: (case.value(BASE, metric), case.value(arm, metric)) for metric in metrics}
    return {
        metric: (base, value)
        for metric, (base, value) in found.items()
        if base is not None and value is not None
    }


def _order(cell: CellChange) -> tuple[bool, float]:
    if cell.kind == "not judged":
        return True, 0.0
    return cell.unit == "cell", -abs(cell.percent)
