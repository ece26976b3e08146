# SPDX-License-Identifier: GPL-2.0
"""Cells of `firsttouch try` that run again with counts by function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import CellChange
from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.arms import Arm
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.settings import load_setting
from firsttouch.cli.running import print_failures
from firsttouch.lab.plan import Request
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from firsttouch.views.html.files import write_flame_graphs
from firsttouch.views.profile import function_tables
from firsttouch.views.tables import print_table


@dataclass(frozen=True)
class Profiled:
    """A cell that was run again with counts by function, on `base` and on `arm`."""

    arm: str
    base: str
    dataset: Dataset
    folder: Path
    status: int

    @property
    def cases(self) -> Sequence[Case]:
        """The cases of the dataset, which is that of the cell alone."""
        return self.dataset.cases


def profile(
    request: Request,
    contract: Contract,
    base: Arm,
    arm: Arm,
    side: str,
    cell: CellChange,
    reporter: Reporter,
) -> Profiled:
    """Profile the case of `cell` on its base and on `arm`, an arm that is tried."""
    size = cell.case.params.get("size")
    folder = request.out / "functions" / arm.name / side
    outcome = run_lab(
        Request(
            release=request.release,
            source=request.source,
            machines=(cell.case.platform.machine,),
            experiments=(cell.case.experiment.name,),
            tried=(base, arm) if base.tried else (arm,),
            baseline=base.name,
            around=(load_setting(cell.case.platform.setting),),
            size=int(size) if size else None,
            settings={
                name: (str(value),) for name, value in cell.case.params.items() if name != "size"
            },
            jobs=request.jobs,
            quick=request.quick,
            profile=True,
            out=folder,
        ),
        contract,
        reporter,
    )
    status = print_failures(outcome, folder / "log", request.source)
    results = [result for result in outcome.results if result.cell.arm in (base.name, arm.name)]
    dataset = make_dataset(results, outcome.catalog)
    return Profiled(arm.name, base.name, dataset, folder, status)


def print_profiled(each: Profiled, console: Console) -> None:
    """Print the functions that changed, and the paths of their flame graphs."""
    for table in function_tables(each.cases, each.base, each.arm):
        print_table(table, console)
    for file in write_flame_graphs(each.dataset, each.folder):
        console.print(f"Flame graph: {file}", soft_wrap=True)
