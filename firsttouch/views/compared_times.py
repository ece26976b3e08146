# SPDX-License-Identifier: GPL-2.0
"""Compares the times of two machines, or of one twice: the changes of the same cells and arms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firsttouch.analysis.times import ELAPSED, timed_rows
from firsttouch.catalog.collection import load_catalog
from firsttouch.errors import UserError
from firsttouch.lab.times import Times, read_times
from firsttouch.views.comparison import Comparison, Difference, Line, kind_of
from firsttouch.views.times import cell_title, change_words

_SUBJECTS = ("processor", "host's kernel", "guest's kernel", "images", "CPUs")


def compared_times(a: Path, b: Path) -> Comparison:
    """Return the comparison of two sets of times; UserError if they have no cell in common."""
    ours, theirs = read_times(a), read_times(b)
    lines = tuple(_lines(ours, theirs))
    if not lines:
        raise UserError(f"{a} and {b} have no cell and arm in common: measure both again.")
    before, after = _facts(ours), _facts(theirs)
    differences = tuple(
        Difference(what, value, after[what])
        for what, value in before.items()
        if value != after[what]
    )
    kind = kind_of(differences, _SUBJECTS, len(_SUBJECTS))
    apart = sum(line.changed for line in lines)
    said = f"The intervals of {apart} of {len(lines)} changes against stock do not overlap."
    return Comparison(kind, (said,), differences, ("cell", "arm"), lines)


def _facts(times: Times) -> dict[str, str]:
    return {
        "processor": times.host.processor,
        "host's kernel": times.host.kernel,
        "guest's kernel": times.kernel,
        "images": " ".join(arm.image[:8] for arm in times.arms),
        "CPUs": ", ".join(times.host.cpus),
        "governor": times.host.before.governor,
    }


def _lines(a: Times, b: Times) -> Iterator[Line]:
    catalog = load_catalog([], (), ())
    theirs = {
        row.cell.command: row.changes for row in timed_rows(b, catalog) if row.metric == ELAPSED
    }
    for row in timed_rows(a, catalog):
        for arm, change in row.changes.items():
            other = theirs.get(row.cell.command, {}).get(arm)
            if row.metric != ELAPSED or other is None:
                continue
            yield Line(
                {"experiment": row.cell.experiment, "params": dict(row.cell.params), "arm": arm},
                (cell_title(row.cell, a.cells), arm),
                change.percent,
                other.percent,
                None,
                (change_words(change), change_words(other), ""),
                change.high < other.low or other.high < change.low,
            )
