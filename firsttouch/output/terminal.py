# SPDX-License-Identifier: GPL-2.0
"""A dataset on the terminal: at most 100 columns, in colour there and plain elsewhere.

All that is printed goes through `plain`: results may come from others, and
neither rich's markup nor the terminal's escapes in them may take effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firsttouch.analysis.answers import answer, answering
from firsttouch.analysis.claims import NOT_MEASURED, Claim, count_verdicts, list_claims
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.names import format_params, varying
from firsttouch.console import PipeConsole
from firsttouch.output.cache_tables import print_cache_tables
from firsttouch.output.labels import group_by_reason
from firsttouch.output.plain import heading, plain, plain_table
from firsttouch.quantities import format_change, format_value

_VERDICT_STYLE = {"reproduced": "green", "exceeded": "green", "not reproduced": "red"}
_WIDTH = 100


def output_console() -> Console:
    """Return the console for results: at most 100 columns, plain where it is no terminal."""
    console = PipeConsole(highlight=False)
    if not console.is_terminal or console.width > _WIDTH:
        console.width = _WIDTH
    return console


def print_answers(dataset: Dataset, console: Console) -> None:
    """Print the three sentences for each platform, then what became of the published figures."""
    claims = list_claims(dataset)
    for platform in answering(dataset):
        console.print()
        console.print(heading(f"First touch, {platform}"))
        for sentence in answer(dataset, platform, claims):
            console.print(plain(sentence))
    _print_claims(claims, console)


def print_dataset(dataset: Dataset, console: Console) -> None:
    """Print the rows that the experiments show: every arm, the change, the published figure."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in dataset.rows:
        experiment, platform = row.case.experiment, row.case.platform
        if row.metric in experiment.shown():
            key = (platform.release, platform.machine, experiment.name)
            groups.setdefault(key, []).append(row)
    for (release, machine, name), rows in groups.items():
        title = rows[0].case.experiment.title
        console.print()
        console.print(heading(title, f"({name}, {release}, {machine})"))
        console.print(_table(rows, dataset, console))
    print_cache_tables(dataset, console)
    _print_claims(list_claims(dataset), console)
    _print_gaps(dataset, console)


def _table(rows: Sequence[Row], dataset: Dataset, console: Console) -> Table:
    """Return the rows as a table: cells beside their metrics, above them where that is too wide."""
    cells = [format_params(varying(row.case.experiment, row.case.params)) for row in rows]
    firsts = [cell if cell != last else "" for last, cell in zip(["", *cells], cells, strict=False)]
    arms = dataset.arms(row.case for row in rows)
    arms = [arm for arm in arms if any(arm in row.arms for row in rows)]
    if any(cells):
        wide = console.options.update(width=10 * _WIDTH)
        table = _filled(rows, firsts, arms, beside=True)
        if console.measure(table, options=wide).maximum <= _WIDTH:
            return table
    return _filled(rows, firsts, arms, beside=False)


def _filled(
    rows: Sequence[Row], cells: Sequence[str], arms: Sequence[str], *, beside: bool
) -> Table:
    """Return a table of `rows`; a cell that has no column `beside` its metrics has a line."""
    # Four arms leave room for one blank between columns.
    table = plain_table(
        ["cell", "metric"] if beside else ["metric"],
        [*arms, "change"],
        ["verdict"],
        gap=2 if len(arms) < 4 else 1,
    )
    indent = "  " if any(cells) and not beside else ""
    for row, cell in zip(rows, cells, strict=True):
        if cell and not beside:
            table.add_row(plain(cell))
        table.add_row(
            *([plain(cell)] if beside else []),
            plain(indent + row.metric),
            *(plain(format_value(row.arms.get(arm), row.unit)) for arm in arms),
            format_change(row.change_percent),
            _verdict(row.verdict),
        )
    return table


def _verdict(verdict: str) -> Text:
    return Text(verdict, style=_VERDICT_STYLE.get(verdict, "dim"))


def _print_claims(claims: Iterable[Claim], console: Console) -> None:
    """Print each published figure that was measured once, with what became of it."""
    by_words: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim.verdict != NOT_MEASURED:
            words = (claim.published.figure, claim.published.source)
            by_words.setdefault(words, []).append(claim)
    if not by_words:
        return
    console.print()
    console.print(heading("Published"))
    for (figure, source), members in by_words.items():
        line = plain(f"  {figure} ({source}): ")
        for index, (verdict, count) in enumerate(count_verdicts(members).items()):
            line.append(", " if index else "")
            line.append_text(_verdict(verdict))
            line.append(f" {count} of {len(members)}")
        console.print(line)


def _print_gaps(dataset: Dataset, console: Console) -> None:
    """Print what could not be measured, each reason once with the metrics it holds for."""
    reasons = group_by_reason(
        (gap.metric, reason, "") for gap in dataset.gaps for reason in gap.reasons.values()
    )
    if reasons:
        console.print()
        console.print(heading("Not available"))
    for reason in reasons:
        console.print(plain(f"  {', '.join(reason.names)}: {reason.reason}"))
