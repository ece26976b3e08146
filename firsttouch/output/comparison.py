# SPDX-License-Identifier: GPL-2.0
"""A comparison on the terminal: first what it is worth, then a table of at most 100 columns."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from firsttouch.analysis.comparison import Comparison, Difference, Line
from firsttouch.quantities import format_change, format_count
from firsttouch.output.terminal import format_params

_STYLES = {"same": "green", "comparable": "green", "with care": "yellow"}


def print_comparison(comparison: Comparison, a: Path, b: Path, console: Console) -> None:
    """Print whether A and B are comparable, what differs between them, and the figures."""
    console.print(f"A: {a}\nB: {b}", markup=False)
    style = "red" if comparison.contradictions else _STYLES[comparison.kind]
    console.print(comparison.sentence, style=style, markup=False)
    _print_differences(comparison.differences, console)
    for name, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        if only:
            console.print(f"{only:,} cells are in {name} only and not compared.")
    lines = [line for line in comparison.lines if line.shown]
    for place in dict.fromkeys((line.experiment, line.release, line.machine) for line in lines):
        experiment, release, machine = place
        console.print(f"\n[bold]{experiment}[/bold]  ({release}, {machine})")
        console.print(
            _table([x for x in lines if (x.experiment, x.release, x.machine) == place])
        )  # fmt: skip


def _print_differences(differences: list[Difference], console: Console) -> None:
    """Print one difference of each kind, and how many more there are of it."""
    for what in dict.fromkeys(difference.what for difference in differences):
        alike = [difference for difference in differences if difference.what == what]
        more = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
        console.print(f"  {what}{more}", markup=False)
        console.print(f"    A {alike[0].a}\n    B {alike[0].b}", style="dim", markup=False)


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    # What does not fit folds here; a number that is cut short would be another number.
    table.add_column("cell", overflow="fold")
    for head in ("arm", "metric"):
        table.add_column(head, no_wrap=True)
    for head in ("A", "B", "change"):
        table.add_column(head, justify="right", no_wrap=True)
    telling = {
        name
        for name in lines[0].params
        if name == "size" or len({str(line.params.get(name)) for line in lines}) > 1
    }
    last = ""
    for line in lines:
        cell = format_params(
            {name: value for name, value in line.params.items() if name in telling}
        )
        table.add_row(
            "" if cell == last else cell,
            line.arm,
            line.metric,
            _value(line.a, line.unit),
            _value(line.b, line.unit),
            format_change(line.change_percent),
        )
        last = cell
    return table


def _value(value: float, unit: str) -> str:
    return f"{value / 1e6:,.1f} ms" if unit == "ns" else format_count(value)
