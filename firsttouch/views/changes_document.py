# SPDX-License-Identifier: GPL-2.0
"""What arms change, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import FAULTS, INSTRUCTIONS, CellChange, Changes
from firsttouch.catalog.arms import BASE
from firsttouch.tables import Json
from firsttouch.views.changed_functions import changed_in
from firsttouch.views.names import cell_name

SCHEMA = 1


def changes_document(
    tried: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
) -> dict[str, Json]:
    """Return what arms change as one JSON object; counts are those of whole cells.

    `profiled` has the cells that each arm ran again with counts by function;
    the functions that changed have their instructions per fault or operation of the base.
    """
    return {
        "schema": SCHEMA,
        "arms": [
            {
                "arm": changes.arm,
                "baseline": changes.base,
                "tried": changes.meaning,
                "changed": bool(changes.of_kind("changed")),
                "cells": [_document(cell) for cell in changes.cells],
                "functions": [
                    {"cell": cell_name(case.experiment, case.params), "function": row.function,
                     _key(changes.base): row.values[changes.base], "arm": row.values[changes.arm]}
                    for case in profiled.get(changes.arm, ())
                    for row in changed_in(case, changes.base, changes.arm)
                ],
            }
            for changes in tried
        ],
    }  # fmt: skip


def _key(base: str) -> str:
    """Return the key of what was counted on `base`."""
    return base if base == BASE else "baseline"


def _document(cell: CellChange) -> dict[str, Json]:
    case = cell.case
    return {
        "release": case.platform.release,
        "machine": case.platform.machine,
        "setting": case.platform.setting,
        "experiment": case.experiment.name,
        "params": dict(case.params),
        "kind": cell.kind,
        "change_percent": cell.percent if INSTRUCTIONS in cell.counts else None,
        "faults": cell.counts.get(FAULTS, (0.0, 0.0))[0] or None,
        "per": cell.unit,
        "units": cell.units,
        "counts": {
            metric: {_key(cell.base): base, "arm": value, "chance": cell.chance.get(metric)}
            for metric, (base, value) in cell.judged.items()
        },
    }
