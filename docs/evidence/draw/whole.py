# SPDX-License-Identifier: GPL-2.0
"""A table of a document: what arms change in whole programs, and in their sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.evidence.draw.declared import Block, Column
from docs.evidence.draw.pivot import cases_of
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.verdicts import change_percent
from firsttouch.errors import UserError
from firsttouch.output.markdown import markdown_table
from firsttouch.output.names import format_params
from firsttouch.quantities import format_change, format_value

# Between the metrics of a column that adds some up.
_PLUS = " + "


def whole(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table: the sum of all programs first, then those that lose most.

    Changes are against the arm of the first column. The last column decides the
    order, by its first arm. Raises UserError if a figure was not measured.
    """
    (dataset,) = datasets.values()
    (selection,) = block.rows
    cases = cases_of(block, selection, dataset)
    (base,) = block.columns[0].arms
    last = block.columns[-1]

    def lost(case: Case) -> float:
        values = (_sum(block, [case], last, arm) for arm in (base, last.arms[0]))
        return change_percent(*values) or 0.0

    named = {str(case.params[name]): case for case in cases for name in case.params}
    order = sorted(named, key=lambda name: lost(named[name]), reverse=True)
    lines = [
        _line(f"all {len(cases)}", block, cases, base),
        *(_line(name, block, [named[name]], base) for name in order),
    ]
    heads = ["", *(f"{column.head}, {arm}" for column in block.columns for arm in column.arms)]
    yield from markdown_table(heads, range(1, len(heads)), lines)


def _line(name: str, block: Block, cases: list[Case], base: str) -> list[str]:
    words = [name]
    for column in block.columns:
        before = _sum(block, cases, column, base)
        for arm in column.arms:
            value = _sum(block, cases, column, arm)
            words.append(
                format_change(change_percent(before, value))
                if column.show == "change"
                else format_value(value, "")
            )
    return words


def _sum(block: Block, cases: list[Case], column: Column, arm: str) -> float:
    total = 0.0
    for case in cases:
        for metric in column.metric.split(_PLUS):
            value = case.value(arm, metric)
            if value is None:
                raise UserError(
                    f"{block.name}: {format_params(case.params)} has no {metric} on {arm}: "
                    "measure it, or take the row out."
                )
            total += value
    return total
