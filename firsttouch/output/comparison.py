# SPDX-License-Identifier: GPL-2.0
"""A comparison on the terminal: whether the sets are comparable, then a table of figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from firsttouch.analysis.comparison import Comparison, Difference, Line
from firsttouch.analysis.names import format_params
from firsttouch.output.plain import heading, may_wrap, plain, plain_table, print_table
from firsttouch.quantities import format_change, format_value

_STYLES = {"same": "green", "comparable": "green", "with care": "yellow"}


def print_comparison(comparison: Comparison, a: str, b: str, console: Console) -> None:
    """Print whether A and B are comparable, what differs between them, and the figures.

    `a` and `b` are names of the two sets, such as their directories.
    """
    console.print(plain(f"A: {a}"))
    console.print(plain(f"B: {b}"))
    style = "red" if comparison.contradictions else _STYLES[comparison.kind]
    console.print(plain(comparison.sentence, style))
    _print_differences(comparison.differences, console)
    for name, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        if only:
            cells = "1 cell is" if only == 1 else f"{only:,} cells are"
            console.print(f"{cells} in {name} only and not compared.")
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in comparison.lines:
        if line.shown:
            groups.setdefault((line.experiment, line.release, line.machine), []).append(line)
    for (experiment, release, machine), lines in groups.items():
        console.print()
        console.print(heading(experiment, f"({release}, {machine})"))
        print_table(_table(lines), console)


def _print_differences(differences: Sequence[Difference], console: Console) -> None:
    """Print one difference of each kind, and the number of further ones of that kind."""
    for what in dict.fromkeys(difference.what for difference in differences):
        alike = [difference for difference in differences if difference.what == what]
        more = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
        console.print(plain(f"  {what}{more}"))
        for side, value in (("A", alike[0].a), ("B", alike[0].b)):
            console.print(plain(f"    {side} {value}", "dim"))


def _table(lines: Sequence[Line]) -> Table:
    table = plain_table(["cell", "arm", "metric"], ["A", "B", "change"])
    # Only this column folds: a number that is cut would be a wrong number.
    may_wrap(table, 0)
    table.columns[0].overflow = "fold"
    telling = {
        name
        for name in lines[0].params
        if name == "size" or len({line.params.get(name) for line in lines}) > 1
    }
    last = ""
    for line in lines:
        cell = format_params(
            {name: value for name, value in line.params.items() if name in telling}
        )
        table.add_row(
            plain("" if cell == last else cell),
            plain(line.arm),
            plain(line.metric),
            format_value(line.a, line.unit),
            format_value(line.b, line.unit),
            format_change(line.change_percent),
        )
        last = cell
    return table
