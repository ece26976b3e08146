# SPDX-License-Identifier: GPL-2.0
"""A table of a document: where the kernel's instructions go, by function or by what they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from docs.evidence.draw.declared import Block
from docs.evidence.draw.pivot import cases_of
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.profile import (
    USER,
    Basis,
    FunctionRow,
    Profile,
    basis_of,
    compare_functions,
    profiles_of,
)
from firsttouch.errors import UserError
from firsttouch.output.markdown import markdown_table
from firsttouch.quantities import format_fixed

# A function has a row of its own if it changes by an instruction, where no groups are declared.
_LEAST = 1.0


def functions(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table: a column for each set and arm, and the last one's change.

    Values are instructions per page fault, or per page if arms take different
    numbers of faults. What is in no group, or changes little, is one row, so
    that the rows sum up to the last one. Raises UserError if a set has no
    profile of the case, or if a group names a function that no arm executed.
    """
    rows = function_rows(block, datasets)
    labels = list(rows[0].values)
    counted = {row.function for row in rows}
    lines, listed = [], set[str]()
    for group in block.groups:
        if missing := set(group.functions) - counted:
            raise UserError(
                f"{block.name}: no kernel executed {', '.join(sorted(missing))}: take it out."
            )
        listed.update(group.functions)
        lines.append(_line(group.what, [row for row in rows if row.function in group.functions]))
    if not block.groups:
        changed = [row for row in rows if abs(row.change or 0) >= _LEAST]
        listed = {row.function for row in changed}
        lines = [_line(f"`{row.function}`", [row]) for row in changed]
    others = [row for row in rows if row.function not in listed]
    lines += [_line(f"{len(others)} other functions", others), _line("all of the kernel", rows)]
    heads = ["", *labels, "change"]
    yield from markdown_table(heads, range(1, len(heads)), lines)


def function_rows(block: Block, datasets: Mapping[str, Dataset]) -> tuple[FunctionRow, ...]:
    """Return a row for each function of the kernel in the block's case; columns are sets and arms.

    Raises UserError if a set has no profile of the case.
    """
    (selection,), (column,) = block.rows, block.columns
    profiles: dict[str, Profile] = {}
    bases: list[Basis] = []
    divisors: dict[str, float] = {}
    for dataset in datasets.values():
        (case,) = cases_of(block, selection, dataset)
        by_arm = profiles_of(case)
        basis = basis_of(case, {arm: by_arm[arm] for arm in column.arms if arm in by_arm})
        bases.append(basis)
        for arm in column.arms:
            if arm not in by_arm:
                raise UserError(f"{block.name}: {case.experiment.name} has no profile of {arm}.")
            label = f"{case.platform.release}, {arm}" if len(datasets) > 1 else arm
            profiles[label], divisors[label] = by_arm[arm], basis.divisors[arm]
    if len({basis.unit for basis in bases}) != 1:
        raise UserError(f"{block.name}: the sets take different numbers of faults per page.")
    rows = compare_functions(profiles, Basis(bases[0].unit, divisors))
    return tuple(row for row in rows if row.function != USER)


def _line(what: str, rows: Sequence[FunctionRow]) -> list[str]:
    labels = rows[0].values if rows else {}
    values = [sum(row.values[label] for row in rows) for label in labels]
    change = sum(row.change or 0 for row in rows)
    return [what, *(format_fixed(value, 1) for value in values), f"{change:+,.1f}"]
