# SPDX-License-Identifier: GPL-2.0
"""Every row on the terminal, experiment by experiment: `firsttouch lab --table`.

All that is printed goes through `plain`: results may come from others, and
neither rich's markup nor the terminal's escapes in them may take effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.names import format_params, varying
from firsttouch.output.cache_tables import print_cache_tables
from firsttouch.output.labels import change_head, group_by_reason
from firsttouch.output.plain import fits, heading, may_wrap, plain, plain_table, print_table
from firsttouch.quantities import format_change, format_value

_VERDICT_STYLE = {"reproduced": "green", "exceeded": "green", "not reproduced": "red"}


def print_dataset(dataset: Dataset, console: Console) -> None:
    """Print every row: its arms with their unit, the change, the verdict on a published figure."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in dataset.rows:
        experiment, platform = row.case.experiment, row.case.platform
        key = (platform.release, platform.machine, experiment.name)
        groups.setdefault(key, []).append(row)
    for (release, machine, name), rows in groups.items():
        title = rows[0].case.experiment.title
        console.print()
        console.print(heading(title, f"({name}, {release}, {machine})"))
        print_table(_table(rows, dataset, console), console)
    print_cache_tables(dataset, console)
    _print_gaps(dataset, console)


def _table(rows: Sequence[Row], dataset: Dataset, console: Console) -> Table:
    """Return the rows as a table: cells beside their metrics, above them where that is too wide."""
    cells = [format_params(varying(row.case.experiment, row.case.params)) for row in rows]
    firsts = [cell if cell != last else "" for last, cell in zip(["", *cells], cells, strict=False)]
    arms = dataset.arms(row.case for row in rows)
    arms = [arm for arm in arms if any(arm in row.arms for row in rows)]
    if any(cells):
        table = _filled(rows, firsts, arms, beside=True)
        if fits(table, console):
            return table
    return _filled(rows, firsts, arms, beside=False)


def _filled(
    rows: Sequence[Row], cells: Sequence[str], arms: Sequence[str], *, beside: bool
) -> Table:
    """Return a table of `rows`; a cell that has no column `beside` its metrics has a line."""
    pairs = {row.case.pair() for row in rows} - {None}
    verdicts = [verdict_text(row.verdict) for row in rows]
    names = ["cell", "metric", "unit"] if beside else ["metric", "unit"]
    table = plain_table(
        names,
        [*arms, *([change_head(pairs, rows[0].case.experiment)] if pairs else [])],
        ["verdict"] if any(verdict.plain for verdict in verdicts) else [],
        # Four arms leave room for one blank between columns.
        gap=2 if len(arms) < 4 else 1,
    )
    may_wrap(table, len(names) - 1)
    indent = "  " if any(cells) and not beside else ""
    for row, cell, verdict in zip(rows, cells, verdicts, strict=True):
        if cell and not beside:
            table.add_row(plain(cell))
        table.add_row(
            *([plain(cell)] if beside else []),
            plain(indent + row.metric),
            # Times are printed in milliseconds, with their unit.
            plain("" if row.unit == "ns" else row.unit),
            *(plain(format_value(row.arms.get(arm), row.unit)) for arm in arms),
            *([plain(_change(row))] if pairs else []),
            verdict,
        )
    return table


def _change(row: Row) -> str:
    """Return the change of a row; nothing where there is none, or none that can be printed."""
    text = format_change(row.change_percent)
    return "" if text in (format_change(None), format_change(0)) else text


def verdict_text(verdict: str) -> Text:
    """Return a verdict in its colour; nothing where nothing was claimed."""
    return Text("" if verdict == "no claim" else verdict, style=_VERDICT_STYLE.get(verdict, "dim"))


def _print_gaps(dataset: Dataset, console: Console) -> None:
    """Print what could not be measured, each reason once with the metrics it holds for."""
    for line in gap_lines(dataset):
        console.print(line)


def gap_lines(dataset: Dataset) -> Iterable[Text]:
    """Return why metrics are not available, under a heading; nothing where all are."""
    reasons = group_by_reason(
        (gap.metric, reason, "") for gap in dataset.gaps for reason in gap.reasons.values()
    )
    if reasons:
        yield Text()
        yield heading("Not available")
    for reason in reasons:
        yield plain(f"  {', '.join(reason.names)}: {reason.reason}")
