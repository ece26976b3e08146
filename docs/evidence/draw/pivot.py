# SPDX-License-Identifier: GPL-2.0
"""A table of a document: cases down, metrics and arms across, releases side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from docs.evidence.draw.declared import Block, Column, Selection
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.distributions import values_over
from firsttouch.errors import UserError
from firsttouch.output.markdown import markdown_table
from firsttouch.output.names import format_params, varying
from firsttouch.quantities import format_change, format_ratio, format_value


def pivot(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table; UserError if a figure that it shows was not measured.

    A figure that the guest could not have, because its CPU or its kernel lacks
    something, is a dash. So is a figure per fault where there was no fault.
    """
    names = ["", *(["metric"] if any(row.metric for row in block.rows) else [])]
    heads = [", ".join(filter(None, (head, arm))) for head, arm in _heads(block, datasets)]
    lines = []
    for selection in block.rows:
        by_set = [cases_of(block, selection, dataset) for dataset in datasets.values()]
        for cases in zip(*by_set, strict=True):
            lines.append(_line(block, selection, cases, datasets))
    yield from markdown_table([*names, *heads], range(len(names), len(names) + len(heads)), lines)


def _heads(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[tuple[str, str]]:
    """Return what stands above each column and its arm. Several sets tell their releases."""
    for dataset in datasets.values():
        release = dataset.platforms()[0].release if len(datasets) > 1 else ""
        for column in block.columns:
            for arm in column.arms:
                yield " ".join(filter(None, (release, column.head))), arm


def cases_of(block: Block, selection: Selection, dataset: Dataset) -> list[Case]:
    """Return the cases that `selection` names, in the order of the dataset."""
    cases = [
        case
        for case in dataset.cases
        if case.experiment.name == selection.experiment
        and selection.where.items() <= case.params.items()
    ]
    if not cases:
        raise UserError(
            f"{block.name}: no case of {selection.experiment} has "
            f"{format_params(selection.where) or 'results'}: measure it, or take the row out."
        )
    return cases


def _line(
    block: Block, selection: Selection, cases: Sequence[Case], datasets: Mapping[str, Dataset]
) -> list[str]:
    first = cases[0]
    if any(case.params != first.params for case in cases):
        raise UserError(f"{block.name}: the sets have other cases of {selection.experiment}.")
    telling = {
        name: value
        for name, value in varying(first.experiment, first.params).items()
        if name not in selection.where
    }
    several = len(
        {case.platform.machine for dataset in datasets.values() for case in dataset.cases}
    )
    machine = first.platform.machine if several > 1 else ""
    words = [" ".join(filter(None, (selection.label, machine, format_params(telling))))]
    if any(row.metric for row in block.rows):
        words.append(f"`{selection.metric}`")
    for case, dataset in zip(cases, datasets.values(), strict=True):
        for column in block.columns:
            metric = column.metric or selection.metric
            lacking = _arms_without(case, metric, dataset)
            row = None if lacking.issuperset(column.arms) else _row(block, case, metric, dataset)
            words += [
                _figure(block, row, column, arm) if row and arm not in lacking else "-"
                for arm in column.arms
            ]
    return words


def _arms_without(case: Case, metric: str, dataset: Dataset) -> set[str]:
    """Return the arms without `metric`: the guest said why, or what it is divided by is 0."""
    lacking = {
        arm
        for gap in dataset.gaps
        if gap.case is case and gap.metric == metric
        for arm in gap.reasons
    }
    divisors = [derived.per for derived in case.experiment.derived if derived.name == metric]
    return lacking | {arm for arm in case.arms for per in divisors if case.value(arm, per) == 0}


def _row(block: Block, case: Case, metric: str, dataset: Dataset) -> Row:
    for row in dataset.rows:
        if row.case is case and row.metric == metric:
            return row
    raise UserError(f"{block.name}: {format_params(case.params)} has no {metric or 'metric'}.")


def _figure(block: Block, row: Row, column: Column, arm: str) -> str:
    value = row.arms.get(arm)
    if value is None:
        raise UserError(f"{block.name}: {row.metric} was not measured on {arm}.")
    if column.show == "change":
        return format_change(row.change(arm))
    if column.show == "over layouts":
        spread = values_over(row, arm)
        if spread is None:
            raise UserError(f"{block.name}: {row.metric} was not measured in several layouts.")
        least, median, most = (
            format_value(value, row.unit) for value in (spread.least, spread.median, spread.most)
        )
        return f"{median} ({least} to {most})"
    pages = row.case.pages()
    if column.show == "value":
        return format_value(value, row.unit)
    if pages is None:
        raise UserError(f"{block.name}: {row.case.experiment.name} asks for no pages.")
    return format_ratio(value / pages)
