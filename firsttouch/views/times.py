# SPDX-License-Identifier: GPL-2.0
"""Times of real hardware on the terminal, and as JSON. They never stand in a table with counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console

from firsttouch.analysis.figures import Change
from firsttouch.analysis.times import ELAPSED, NO_DIFFERENCE, TimedRow
from firsttouch.catalog.arms import BASE
from firsttouch.lab.times import TimedCell, Times
from firsttouch.quantities import format_number_of, format_value
from firsttouch.tables import Json
from firsttouch.views.names import format_params
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain
from firsttouch.views.time_sentences import sentences


def cell_title(cell: TimedCell, among: Sequence[TimedCell]) -> str:
    """Return a cell's name for people: its size, and in what it differs from others `among`."""
    alike = [other.params for other in among if other.experiment == cell.experiment]
    telling = {
        name: value
        for name, value in cell.params.items()
        if name == "size" or any(params.get(name) != value for params in alike)
    }
    return f"{cell.experiment} {format_params(telling)}".replace(" size ", " ").strip()


def change_words(change: Change | None) -> str:
    """Return a change with its interval: ``-42.1 % (-43.0 to -41.2)``."""
    if change is None:
        return "not measured"
    interval = f"{change.percent:+.1f} % ({change.low:+.1f} to {change.high:+.1f})"
    return interval if change.shown else f"{interval} none"


def print_times(
    times: Times, rows: Sequence[TimedRow], console: Console, more: Iterable[str] = (), *,
    every: bool = False,
) -> None:  # fmt: skip
    """Print what the times say, then a row for each cell; with `every`, for each metric, too."""
    host = times.host
    title = f"Times on {host.processor}"
    about = (
        f"KVM, {times.architecture}, host's kernel {host.kernel}, guest's {times.kernel}, "
        f"CPU {', '.join(host.cpus)}, "
        f"{format_number_of(times.rounds, 'boots')} of each arm"
    )
    console.print(heading(title, about), soft_wrap=True)
    for arm in times.arms:
        for name, digest in arm.changes.items():
            console.print(plain(f"{arm.name}: {name} (SHA-256 {digest[:16]})"), soft_wrap=True)
    for sentence in (*sentences(times, list(rows)), *more):
        console.print(plain(sentence), soft_wrap=True)
    for row in rows:
        if row.published:
            console.print(
                plain(
                    f"Published: {row.published.figure} ({row.published.source}): {row.verdict}"
                    + "".join(
                        f"; {arm} {change_words(change)}" for arm, change in row.changes.items()
                    )
                ),
                soft_wrap=True,
            )
    console.print()
    arms = [arm.name for arm in times.arms if arm.name != BASE]
    shown = [row for row in rows if row.metric == ELAPSED or (every and row.arms)]
    names = ("cell", "metric") if every else ("cell",)
    lines = [
        (
            *(cell_title(row.cell, times.cells), row.metric)[: len(names)],
            row.missing
            if BASE not in row.arms
            else format_value(row.arms[BASE], "ns" if row.metric.endswith("_ns") else ""),
            *(change_words(row.changes.get(arm)) for arm in arms),
        )
        for row in shown
    ]
    note = (
        "The time is the median of boots; each change has its interval of 95 % over boots. "
        f"none: {NO_DIFFERENCE}, because the interval contains 0."
    )
    head = (*names, BASE, *arms)
    print_table(Table("", head, lines, note, names=len(names), wraps={0: 12}), console)


def times_document(
    times: Times, rows: Sequence[TimedRow], more: Iterable[str] = ()
) -> dict[str, Json]:
    """Return the answer as an object: its sentences, and a row for each cell and metric."""
    return {
        "timing": times.timing,
        "architecture": times.architecture,
        "host": asdict(times.host),
        "boots": times.rounds,
        "sentences": [*sentences(times, list(rows)), *more],
        "rows": [
            {
                "experiment": row.cell.experiment,
                "params": dict(row.cell.params),
                "metric": row.metric,
                "arms": row.arms,
                "changes": {
                    arm: {**asdict(change), "shown": change.shown}
                    for arm, change in row.changes.items()
                },
                **({"missing": row.missing} if row.missing else {}),
                **({"published": row.published.figure, "verdict": row.verdict}
                   if row.published else {}),
            }
            for row in rows
        ],
    }  # fmt: skip
