# SPDX-License-Identifier: GPL-2.0
"""The summary as a table of at most 100 columns, in colour on a terminal and plain elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from firsttouch.analysis.cache_statistics import print_digest
from firsttouch.catalog.experiments import Experiment
from firsttouch.quantities import format_change, format_count, format_size

_VERDICT_STYLE = {"reproduced": "green", "exceeded": "green", "not reproduced": "red"}
_WIDTH = 100


def print_summary(
    summary: Mapping[str, Any], experiments: Mapping[str, Experiment], console: Console
) -> None:
    """Print the rows that the experiments show: every arm, the change, the published figure."""
    rows = summary["rows"]
    for release, machine, name in dict.fromkeys(
        (row["release"], row["machine"], row["experiment"]) for row in rows
    ):
        experiment = experiments[name]
        shown = {metric.name for metric in experiment.metrics if metric.shown}
        shown |= {figure.name for figure in experiment.derived}
        members = [
            row
            for row in rows
            if (row["release"], row["machine"], row["experiment"]) == (release, machine, name)
            and row["metric"] in shown
        ]
        if members:
            console.print(f"\n[bold]{experiment.title}[/bold]  ({name}, {release}, {machine})")
            console.print(_table(members, experiment, console))
    print_digest(summary, console)
    _print_claims(rows, console)
    _print_unavailable(summary["unavailable"], console)


def _table(rows: list[dict[str, Any]], experiment: Experiment, console: Console) -> Table:
    """Return the rows as a table: cells beside their metrics, above them where that is too wide."""
    fixed = {
        name
        for name, values in experiment.parameters.items()
        if len(values) == 1 and not str(values[0]).startswith("@")
    }
    cells = [
        format_params({k: v for k, v in row["params"].items() if k not in fixed}) for row in rows
    ]
    firsts = [cell if cell != last else "" for last, cell in zip(["", *cells], cells, strict=False)]
    if any(cells):
        wide = console.options.update(width=10 * _WIDTH)
        table = _filled(rows, firsts, beside=True)
        if console.measure(table, options=wide).maximum <= _WIDTH:
            return table
    return _filled(rows, firsts, beside=False)


def _filled(rows: list[dict[str, Any]], cells: list[str], *, beside: bool) -> Table:
    """Return a table of `rows`; a cell that has no column `beside` its metrics has a line."""
    arms = list(dict.fromkeys(arm for row in rows for arm in row["arms"]))
    # Four arms leave room for one blank between columns.
    table = Table(box=None, padding=(0, 2 if len(arms) < 4 else 1, 0, 0), header_style="dim")
    if beside:
        table.add_column("cell", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    for arm in arms:
        table.add_column(arm, justify="right", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    indent = "  " if any(cells) and not beside else ""
    for row, cell in zip(rows, cells, strict=True):
        if cell and not beside:
            table.add_row(cell)
        table.add_row(
            *([cell] if beside else []),
            indent + row["metric"],
            *(_value(row["arms"].get(arm), row["unit"]) for arm in arms),
            format_change(row["change_percent"]),
            _verdict(row["verdict"]),
        )
    return table


def format_params(params: Mapping[str, Any]) -> str:
    """Return a cell's parameters as a person reads them: ``ldadd 4k``, ``size 1 GiB``."""
    words = []
    for name, value in params.items():
        if name in ("size", "heap"):
            words.append(f"{name} {format_size(int(value))}")
        elif isinstance(value, int):
            words.append(f"{name} {value}")
        else:
            words.append(str(value))
    return " ".join(words)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return f"{value / 1e6:,.1f} ms"
    return format_count(value)


def _verdict(verdict: str) -> str:
    style = _VERDICT_STYLE.get(verdict, "dim")
    return f"[{style}]{verdict}[/{style}]"


def _print_claims(rows: list[dict[str, Any]], console: Console) -> None:
    """Print each published figure once, with what became of it."""
    claims: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["published"] and row["verdict"] != "no claim":
            published = row["published"]
            claims.setdefault((published["figure"], published["source"]), []).append(row["verdict"])
    if not claims:
        return
    console.print("\n[bold]Published[/bold]")
    for (figure, source), verdicts in claims.items():
        counts = ", ".join(
            f"{_verdict(kind)} {verdicts.count(kind)} of {len(verdicts)}"
            for kind in dict.fromkeys(verdicts)
        )
        console.print(f"  {figure} ({source}): {counts}")


def _print_unavailable(unavailable: list[dict[str, Any]], console: Console) -> None:
    """Print what could not be measured, each reason once with the metrics it holds for."""
    reasons: dict[str, set[str]] = {}
    for row in unavailable:
        for reason in row["reasons"].values():
            reasons.setdefault(reason, set()).add(row["metric"])
    if reasons:
        console.print("\n[bold]Not available[/bold]")
    for reason, metrics in reasons.items():
        console.print(f"  {', '.join(sorted(metrics))}: {reason}", highlight=False)


def output_console() -> Console:
    """Return the console for results: at most 100 columns, plain where it is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal or console.width > _WIDTH:
        console.width = _WIDTH
    return console
