# SPDX-License-Identifier: GPL-2.0
"""A table of a document: the changes behind claims, over layouts that ought not to matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.evidence.draw.declared import Block, Selection
from firsttouch.analysis.cache_statistics import sweeps
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.distributions import Distribution, changes_over
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.errors import UserError
from firsttouch.output.labels import changes_of, verdict_words
from firsttouch.output.markdown import markdown_table
from firsttouch.quantities import format_change

_HEADS = ("", "arm", "first", "least", "median", "most", "verdict")
# What colours are about: the hot lines with the most misses, and all of them.
_SPREADS = ("worst", "mean")


def layouts(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table: the change from stock in the first layout, and in all.

    Raises UserError if a figure was not measured in several layouts.
    """
    lines = []
    for selection in block.rows:
        of_selection = [
            line for dataset in datasets.values() for line in _lines(selection, dataset)
        ]
        if not of_selection:
            raise UserError(
                f"{block.name}: {selection.label} was not measured in several layouts: measure "
                "it, or take the row out."
            )
        lines += of_selection
    yield from markdown_table(_HEADS, range(2, 6), lines)


def _lines(selection: Selection, dataset: Dataset) -> Iterator[list[str]]:
    if selection.metric in _SPREADS:
        yield from _spread_lines(selection, dataset)
        return
    for row in dataset.rows:
        pair = row.case.pair()
        if not _is_of(selection, row.case) or row.metric != selection.metric or not pair:
            continue
        for arm in row.arms:
            changes = None if arm == BASE else changes_over(row, arm)
            if changes:
                # The verdict is on what the experiment compares.
                verdict = verdict_words(row) if arm == pair[1] else ""
                yield _line(selection.label, arm, changes, verdict)


def _spread_lines(selection: Selection, dataset: Dataset) -> Iterator[list[str]]:
    """Return a line for the hot colour with the most misses, or for their mean, by layouts."""
    cases = [case for case in (*dataset.cases, *dataset.further) if _is_of(selection, case)]
    if not cases:
        return
    arm = cases[0].experiment.compare
    changes = []
    for layout in sorted({case.layout for case in cases}):
        (sweep,) = sweeps(case for case in cases if case.layout == layout)
        spreads = sweep.spreads(sweep.metric)
        changes.append(
            change_percent(*(getattr(spreads[of], selection.metric) for of in (BASE, arm)))
        )
    measured = tuple(change for change in changes if change is not None)
    if len(measured) > 1:
        yield _line(selection.label, arm, Distribution(measured), "")


def _is_of(selection: Selection, case: Case) -> bool:
    return (
        case.experiment.name == selection.experiment
        and selection.where.items() <= case.params.items()
    )


def _line(label: str, arm: str, changes: Distribution, verdict: str) -> list[str]:
    first = format_change(changes.values[0])
    return [label, f"`{arm}`", first, *changes_of(changes), verdict]
