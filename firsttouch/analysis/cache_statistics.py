# SPDX-License-Identifier: GPL-2.0
"""What the cache experiments say: the knee, the worst case and the footprint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from firsttouch.catalog.machine_values import colors
from firsttouch.catalog.machines import load_machine, machine_names

Row = Mapping[str, Any]
# The stride of a dense zero-scan, in bytes: one line.
DENSE = 64
EXPERIMENTS = ("set-conflict", "zero-conflict", "zero-scan")


@dataclass(frozen=True)
class Spread:
    """Misses per round over all colours that the hot lines can have."""

    best: float
    mean: float
    worst: float


@dataclass(frozen=True)
class Line:
    """What colours do to one cache of a machine: misses per round, stock and with them."""

    level: str
    colors: int
    stock: Spread
    several: Spread
    scan_stock: float
    scan_several: float


def misses_per_read(rows: Iterable[Row]) -> dict[int, float]:
    """Return from rows of ``set-conflict`` of one machine: L1D misses per read, by places."""
    return {
        row["params"]["n"]: row["arms"]["stock"] / (row["params"]["n"] * row["params"]["rounds"])
        for row in rows
        if row["experiment"] == "set-conflict" and row["metric"] == "l1d_misses"
    }


def knee(per_read: Mapping[int, float]) -> int | None:
    """Return the most places of which no more than one read in a thousand misses; None: none."""
    good = [n for n, misses in per_read.items() if misses <= 0.001]
    return max(good, default=None)


def spreads(rows: Iterable[Row]) -> dict[tuple[str, str, str], Spread]:
    """Return from rows of ``zero-conflict`` of one machine the misses per round.

    Keys are the level whose sets the hot lines fill, the metric, and the arm.
    One that lacks a colour, which may be the worst, is left out.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    seen: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if row["experiment"] != "zero-conflict" or not row["metric"].endswith("_misses"):
            continue
        level, metric = row["params"]["level"], row["metric"]
        seen.setdefault((level, metric), set()).add(row["params"]["hot_color"])
        for arm, misses in row["arms"].items():
            found.setdefault((level, metric, arm), []).append(misses / row["params"]["rounds"])
    return {
        key: Spread(min(values), sum(values) / len(values), max(values))
        for key, values in found.items()
        if len(values) == len(seen[key[:2]]) == max(seen[key[:2]]) + 1
    }


def footprints(rows: Iterable[Row]) -> dict[tuple[int, int, str], dict[str, float]]:
    """Return from rows of ``zero-scan`` of one machine the misses per round, by arm.

    Keys are the stride, the bytes of the working set, and the metric.
    """
    return {
        (row["params"]["stride"], row["params"]["working_set"], row["metric"]): {
            arm: misses / row["params"]["rounds"] for arm, misses in row["arms"].items()
        }
        for row in rows
        if row["experiment"] == "zero-scan" and row["metric"].endswith("_misses")
    }


def print_digest(summary: Mapping[str, Any], console: Console) -> None:
    """Print for each machine what its cache experiments come to, if there are any."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in summary["rows"]:
        if row["experiment"] in EXPERIMENTS:
            groups.setdefault((row["release"], row["machine"]), []).append(row)
    for (release, machine), rows in groups.items():
        head = f"({release}, {machine})"
        per_read = misses_per_read(rows)
        if per_read:
            _print_knee(per_read, head, console)
        if spread := spreads(rows):
            console.print(
                f"\n[bold]Misses per round, over all colours of the hot lines[/bold]  {head}"
            )
            console.print(_spread_table(spread))
        if footprint := footprints(rows):
            console.print(f"\n[bold]Misses per round beside zero pages[/bold]  {head}")
            console.print(_footprint_table(footprint))
    lines = catalogue(summary)
    if len(lines) > 1:
        _print_catalogue(lines, console)


def catalogue(summary: Mapping[str, Any]) -> dict[str, list[Line]]:
    """Return for each machine what colours do there, for each level that has them.

    Only machines that ran both ``zero-conflict`` and ``zero-scan`` are in it.
    """
    found: dict[str, list[Line]] = {}
    for name in dict.fromkeys(row["machine"] for row in summary["rows"]):
        rows = [row for row in summary["rows"] if row["machine"] == name]
        spread, beside = spreads(rows), footprints(rows)
        if not spread or not beside or name not in machine_names():
            continue
        kind = load_machine(name).cpus[0]
        for level, arm, cache in (("l1d", "color", kind.l1d), ("l2", "color-l2", kind.l2)):
            metric = f"{level}_misses"
            stock, several = (spread.get((level, metric, each)) for each in ("stock", arm))
            cost = beside.get((DENSE, cache.size, metric), {}) if cache else {}
            if cache and stock and several and {"stock", arm} <= cost.keys():
                line = Line(level, colors(cache), stock, several, cost["stock"], cost[arm])
                found.setdefault(name, []).append(line)
    return found


def _print_catalogue(lines: Mapping[str, list[Line]], console: Console) -> None:
    console.print(
        "\n[bold]What colours do, by machine[/bold]  stock -> as many colours as the level has\n"
        "Misses per round of zero-conflict; in the last column of a dense zero-scan beside\n"
        "a working set that just fits"
    )
    table = _table("machine", "level", "colours", "worst", "mean", "beside a set")
    for name, levels in lines.items():
        for line in levels:
            table.add_row(
                name,
                line.level,
                str(line.colors),
                f"{line.stock.worst:.2f} -> {line.several.worst:.2f}",
                f"{line.stock.mean:.2f} -> {line.several.mean:.2f}",
                f"{line.scan_stock:,.0f} -> {line.scan_several:,.0f}",
            )
    console.print(table)


def _print_knee(per_read: Mapping[int, float], head: str, console: Console) -> None:
    most = knee(per_read)
    if most is None:
        text = "no number of places fits"
    else:
        text = f"{most} places fit: {per_read[most]:.5f}"
        if most + 1 in per_read:
            text += f"; {most + 1} do not: {per_read[most + 1]:.5f}"
    console.print(f"\n[bold]L1D misses per read of one set[/bold]  {head}\n{text}")


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns[:2]:
        table.add_column(column, no_wrap=True)
    for column in columns[2:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _spread_table(spread: Mapping[tuple[str, str, str], Spread]) -> Table:
    table = _table("hot lines fill", "misses of", "arm", "best", "mean", "worst")
    for (level, metric, arm), of in spread.items():
        numbers = (f"{value:.3f}" for value in (of.best, of.mean, of.worst))
        table.add_row(f"a set of {level}", metric.removesuffix("_misses"), arm, *numbers)
    return table


def _footprint_table(footprint: Mapping[tuple[int, int, str], Mapping[str, float]]) -> Table:
    arms = list(dict.fromkeys(arm for values in footprint.values() for arm in values))
    table = _table("stride, working set", "misses of", *arms)
    for (stride, working_set, metric), values in footprint.items():
        numbers = (f"{values[arm]:,.1f}" if arm in values else "-" for arm in arms)
        beside = f"{working_set >> 10} KiB" if working_set else "none"
        table.add_row(f"{stride} B, {beside}", metric.removesuffix("_misses"), *numbers)
    return table
