# SPDX-License-Identifier: GPL-2.0
"""Every row on the terminal, experiment by experiment: `firsttouch lab --table`.

All output goes through `plain`, because results may come from others: rich's
markup and terminal escapes in them must have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.distributions import changes_over
from firsttouch.analysis.verdicts import NOT_PUBLISHED
from firsttouch.quantities import format_change, format_value
from firsttouch.views.cache_tables import print_cache_tables
from firsttouch.views.labels import SPREAD, change_head, group_by_reason, share_words, spread_words
from firsttouch.views.names import format_params, varying
from firsttouch.views.plain import fits, heading, may_wrap, plain, plain_table, print_table

_VERDICT_STYLE = {"reproduced": "green", "exceeded": "green", "not reproduced": "red"}


def print_dataset(dataset: Dataset, console: Console) -> None:
    """Print every row: its value on each arm, the change, the verdict on a published figure."""
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
    """Return the rows as a table: cells beside their metrics, or above them if that is too wide."""
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
    """Return a table of `rows`; a cell has a column if `beside` is set, or else its own line."""
    pairs = {row.case.pair() for row in rows} - {None}
    verdicts = [verdict_text(row.verdict) for row in rows]
    spread = SPREAD if any(changes_over(row) for row in rows) else ()
    names = ["cell", "metric", "unit"] if beside else ["metric", "unit"]
    table = plain_table(
        names,
        [*arms, *([change_head(pairs, rows[0].case.experiment)] if pairs else []), *spread],
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
            # format_value() adds the unit to times, in milliseconds.
            plain("" if row.unit == "ns" else row.unit),
            *(plain(format_value(row.arms.get(arm), row.unit)) for arm in arms),
            *([plain(_change(row))] if pairs else []),
            *(map(plain, spread_words(row)) if spread else ()),
            verdict_with_share(row, verdict),
        )
    return table


def _change(row: Row) -> str:
    """Return the change of a row; empty if there is none, or if it rounds to zero."""
    text = format_change(row.change_percent)
    return "" if text in (format_change(None), format_change(0)) else text


def verdict_with_share(row: Row, verdict: Text) -> Text:
    """Return the verdict of a row with the number of layouts that it holds in."""
    share = share_words(row)
    return Text.assemble(verdict, plain(f" ({share})")) if share else verdict


def verdict_text(verdict: str) -> Text:
    """Return a verdict in its colour; empty without a published figure."""
    shown = "" if verdict == NOT_PUBLISHED else verdict
    return Text(shown, style=_VERDICT_STYLE.get(verdict, "dim"))


def _print_gaps(dataset: Dataset, console: Console) -> None:
    """Print each reason why metrics are not available, with the names of these metrics."""
    for line in gap_lines(dataset):
        console.print(line)


def gap_lines(dataset: Dataset) -> Iterable[Text]:
    """Return why metrics are not available, under a heading; no lines if all are available."""
    reasons = group_by_reason(
        (gap.metric, reason, "") for gap in dataset.gaps for reason in gap.reasons.values()
    )
    if reasons:
        yield Text()
        yield heading("Not available")
    for reason in reasons:
        yield plain(f"  {', '.join(reason.names)}: {reason.reason}")
