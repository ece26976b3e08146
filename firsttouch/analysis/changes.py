# SPDX-License-Identifier: GPL-2.0
"""What an arm changes against stock, cell by cell: faults, TLBI, pages and more.

A change is judged beyond its noise (analysis/figures.py), which the control shows: stock run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import Figure, noise_of
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.arms import BASE, CONTROL, load_setting
from firsttouch.lab.results import Result

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


@dataclass(frozen=True)
class CellChange:
    """One case on stock and on another arm: both figures of each count in `JUDGED`."""

    case: Case
    figures: Mapping[str, tuple[Figure, Figure]]

    @property
    def unit(self) -> Unit:
        return units_of(self.case)[0]

    @property
    def units(self) -> float:
        """The number of operations or faults of the base, by which counts are divided."""
        return units_of(self.case)[1]

    @property
    def can_be_profiled(self) -> bool:
        """Whether counts by function tell of it: they follow one CPU, and have a unit."""
        cpus = load_setting(self.case.platform.setting).cpus or self.case.params.get("cpus", 1)
        return cpus == 1 and self.unit != "cell"

    @property
    def kind(self) -> Kind:
        if INSTRUCTIONS not in self.figures:
            return "not judged"
        if any(map(self.moved, self.figures)):
            return "changed"
        path = [both for metric, both in self.figures.items() if metric in PATH]
        return "equal" if all(base.median == value.median for base, value in path) else "chance"

    def moved(self, metric: str) -> bool:
        both = self.figures.get(metric)
        return both is not None and both[0].differs(both[1])

    @property
    def percent(self) -> float:
        """By how much the case's kernel instructions changed, in per cent of the base's."""
        base, value = (figure.median for figure in self.figures[INSTRUCTIONS])
        return 100 * (value - base) / base if base else 0.0

    @property
    def weight(self) -> float:
        """The size of that change, by which cells are ordered; 0 if it is noise."""
        return abs(self.percent) if self.moved(INSTRUCTIONS) else 0.0

    @property
    def decisive(self) -> str:
        """The count that says to which side the path changed.

        It is the first in `JUDGED` that moved; kernel instructions come before faults.
        """
        first = sorted(self.figures, key=lambda name: name != INSTRUCTIONS)
        return next(filter(self.moved, first), INSTRUCTIONS)

    @property
    def costs_more(self) -> bool:
        return self.moved(self.decisive) and self.change(self.decisive) > 0

    def per_unit(self, metric: str) -> tuple[float, float]:
        """Return a count on the base and on the arm, divided by the base's faults or operations."""
        base, value = self.figures[metric]
        return base.median / self.units, value.median / self.units

    def change(self, metric: str) -> float:
        """Return the change of a count per fault or operation, or of the whole case."""
        base, value = self.per_unit(metric)
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


def repeats(one: Result, other: Result) -> bool:
    """Whether `one` is of the cell, the kernel and the boot words of `other`, profiled or not."""
    both = one.provenance, other.provenance
    made = [(each.tried, each.digests.get("kernel image")) for each in both]
    return made[0] == made[1] and replace(one.cell, profile=other.cell.profile) == other.cell


def units_of(case: Case, base: str = BASE) -> tuple[Unit, float]:
    """Return what counts of `case` are divided by, and how many `base` has; 1 for the whole cell.

    Cells of operations take a few faults beside.
    """
    if operations := case.value(base, OPERATIONS):
        return "operation", operations
    faults = case.value(base, FAULTS)
    return ("fault", faults) if faults else ("cell", 1.0)


def changes(dataset: Dataset) -> list[Changes]:
    """Return what each arm that was tried changes; none for an arm on which every cell failed."""
    arms = sorted(dataset.catalog.arms.values(), key=lambda arm: arm.order)
    return [
        Changes(arm.name, arm.meaning, tuple(sorted(cells, key=_order)))
        for arm in arms
        if arm.tried and (cells := list(_cells(dataset.cases, arm.name)))
    ]


def _cells(cases: Iterable[Case], arm: str) -> Iterable[CellChange]:
    for case in cases:
        if not {BASE, arm} <= case.arms.keys():
            continue
        before, after, again = (_counts(case, name) for name in (BASE, arm, CONTROL))
        unseen = max(case.arms[name].unseen for name in (BASE, arm))
        figures = {}
        for metric in (name for name in before if name in after):
            apart = again.get(metric, before[metric]) - before[metric]
            noise = noise_of(metric, before[metric], apart, unseen)
            figures[metric] = Figure("", (before[metric],), noise), Figure("", (after[metric],))
        yield CellChange(case, figures)


def _counts(case: Case, arm: str) -> dict[str, float]:
    """Return each count of `JUDGED` that an arm has; none if the case did not run on it."""
    if arm not in case.arms:
        return {}
    of = case.arms[arm]
    path = {name: of.metrics[name] for name in PATH if name in of.metrics}
    return {**path, **{name: of.misses[name] for name in MISSES if name in of.misses}}


def _order(cell: CellChange) -> tuple[bool, float]:
    if cell.kind == "not judged":
        return True, 0.0
    return cell.unit == "cell", -cell.weight
