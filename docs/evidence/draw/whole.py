# SPDX-License-Identifier: GPL-2.0
"""A table of a document: what arms change, in per cent, in each case and in their sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.evidence.draw.declared import Block, Column
from docs.evidence.draw.pivot import cases_of
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.verdicts import change_percent
from firsttouch.errors import UserError
from firsttouch.output.markdown import markdown_table
from firsttouch.output.names import format_params, varying

# Between the metrics of a column that adds some up.
_PLUS = " + "


def whole(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table: the cases that lose most first.

    A column has the change from the first of its arms to the second. The first column decides
    the order. A label of the row asks for the sum of the cases above them. Raises UserError if
    a figure was not measured.
    """
    (dataset,) = datasets.values()
    (selection,) = block.rows
    cases = cases_of(block, selection, dataset)

    def lost(case: Case) -> float:
        return _change(block, block.columns[0], [case])

    lines = [_line(f"{selection.label} {len(cases)}", block, cases)] if selection.label else []
    for case in sorted(cases, key=lost, reverse=True):
        name = format_params(varying(case.experiment, case.params))
        lines.append(_line(name, block, [case]))
    heads = ["", *(column.head for column in block.columns)]
    yield from markdown_table(heads, range(1, len(heads)), lines)


def _line(name: str, block: Block, cases: list[Case]) -> list[str]:
    changes = [f"{_change(block, column, cases):+.1f}" for column in block.columns]
    return [name, *(text.lstrip("+-") if float(text) == 0 else text for text in changes)]


def _change(block: Block, column: Column, cases: list[Case]) -> float:
    base, arm = column.arms
    change = change_percent(*(_sum(block, column, cases, of) for of in (base, arm)))
    return change or 0.0


def _sum(block: Block, column: Column, cases: list[Case], arm: str) -> float:
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
