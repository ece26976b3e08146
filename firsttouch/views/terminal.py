# SPDX-License-Identifier: GPL-2.0
"""The answer on the terminal: at most 25 lines of at most 100 columns.

All output goes through `plain`, because results may come from others: rich's
markup and terminal escapes in them must have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.published import NOT_MEASURED, PublishedFigure, published_figures
from firsttouch.catalog.arms import BASE
from firsttouch.progress import PipeConsole
from firsttouch.quantities import format_change, format_value
from firsttouch.views.answers import answer, answering
from firsttouch.views.labels import QUICK, SPREAD, spread_words
from firsttouch.views.names import cell_name
from firsttouch.views.plain import heading, may_wrap, plain, plain_table, print_table
from firsttouch.views.row_tables import verdict_text, verdict_with_share

_WIDTH = 100
LINES = 25
# On a narrower console the sentences alone may take more than LINES.
_NARROW = 80


def output_console(*, aside: bool = False) -> Console:
    """Return the console for results: at most 100 columns, plain text if it is not a terminal.

    COLUMNS sets the width, also when the output is not a terminal. It is
    standard output, or with `aside` standard error.
    """
    console = PipeConsole(highlight=False, stderr=aside)
    asked = os.environ.get("COLUMNS", "").isdigit()
    if console.width > _WIDTH or not (console.is_terminal or asked):
        console.width = _WIDTH
    return console


def print_answers(dataset: Dataset, report: str, console: Console) -> None:
    """Print the report's sentences, the verdicts on published figures, and where the rest is.

    `report` is the path of the report. On a console of 80 columns or more this
    takes at most 25 lines; a line counts the verdicts that do not fit.
    """
    figures = published_figures(dataset)
    measured = _grouped(figure for figure in figures if figure.verdict != NOT_MEASURED)
    head = [*_sentences(dataset, figures)]
    tail = [
        *_not_reproduced(measured, several=_several(measured)),
        *_unmeasured(figures),
        *_where_the_rest_is(report),
    ]
    for part in head:
        console.print(part)
    room = LINES - _height([*head, *tail], console)
    _print_figures(measured, room if console.width >= _NARROW else None, console)
    for part in tail[:-1]:
        console.print(part)
    # A path that is broken across lines cannot be pasted.
    console.print(tail[-1], soft_wrap=True)


def first_figure(dataset: Dataset) -> str:
    """Return the first figure of an experiment's results, in one line; empty if it has none.

    It is the first figure with a published counterpart, or else the first shown one.
    """
    shown = [row for row in dataset.rows if row.metric in row.case.experiment.shown()]
    rows = shown or dataset.rows
    row = next((row for row in rows if row.published), rows[0] if rows else None)
    if row is None:
        return ""
    values = ", ".join(f"{arm} {format_value(value, row.unit)}" for arm, value in row.arms.items())
    change = f", {format_change(row.change_percent)}" if row.change_percent is not None else ""
    where = f"{cell_name(row.case.experiment, row.case.params)} on {row.case.platform.machine}"
    return f"{where}: {row.metric} {values}{change}"


def _height(parts: Iterable[RenderableType], console: Console) -> int:
    with console.capture() as printed:
        for part in parts:
            console.print(part)
    return printed.get().count("\n")


def _sentences(dataset: Dataset, figures: Sequence[PublishedFigure]) -> Iterable[Text]:
    first, *others = answering(dataset)
    yield heading(f"First touch, {first}", f"({QUICK})" if dataset.quick else "")
    for sentence in answer(dataset, first, figures):
        yield plain(sentence.replace("`", ""))
    if others:
        yield plain(f"Also measured, see the report: {'; '.join(_by_release(others))}.")


def _by_release(platforms: Iterable[Platform]) -> Iterable[str]:
    machines: dict[str, list[str]] = {}
    for platform in platforms:
        machines.setdefault(platform.release, []).append(platform.machine)
    return (f"{release} on {', '.join(names)}" for release, names in machines.items())


def _grouped(figures: Iterable[PublishedFigure]) -> list[list[PublishedFigure]]:
    """Return the figures in groups of one text and one verdict, on all platforms.

    Within a group the row furthest from what was published comes first.
    """
    groups: dict[tuple[str, str], list[PublishedFigure]] = {}
    for figure in figures:
        groups.setdefault((figure.published.figure, figure.verdict), []).append(figure)
    return [sorted(members, key=_distance, reverse=True) for members in groups.values()]


def _several(groups: Iterable[Iterable[PublishedFigure]]) -> bool:
    """Return whether the figures are of more than one platform."""
    return len({str(figure.platform) for group in groups for figure in group}) > 1


def _distance(figure: PublishedFigure) -> float:
    change = (figure.row.change_percent if figure.row else None) or 0.0
    expected = figure.published.change
    return change if expected is None else abs(change - expected)


def _print_figures(
    groups: Sequence[Sequence[PublishedFigure]], room: int | None, console: Console
) -> None:
    """Print the published figures in at most `room` lines; the last counts those left out."""
    shown = list(groups)
    lines = _figure_lines(groups, shown, console)
    while shown and room is not None and len(lines) > room:
        shown.pop()
        lines = _figure_lines(groups, shown, console)
    for line in lines:
        console.print(line, soft_wrap=True)


def _figure_lines(
    groups: Sequence[Sequence[PublishedFigure]],
    shown: Sequence[Sequence[PublishedFigure]],
    console: Console,
) -> list[Text]:
    """Return the lines of the table of `shown`, and a line that counts the other `groups`."""
    compared = {group[0].experiment.compare for group in shown}
    other = compared.pop() if len(compared) == 1 else "changed"
    layouts = any(group[0].row and group[0].row.layouts for group in shown)
    changes = SPREAD if layouts else ("change",)
    table = plain_table(["published figure"], [BASE, other, *changes], ["verdict"])
    may_wrap(table, 0, 24)
    several = _several(groups)
    for group in shown:
        row = group[0].row
        assert row is not None
        verdict = verdict_text(group[0].verdict)
        if len(group) > 1:
            verdict.append(f" {len(group)} x")
        verdict = verdict_with_share(row, verdict)
        where = f", {group[0].platform}" if several else ""
        table.add_row(
            plain(group[0].published.figure + where),
            *_values(row, group[0].experiment.compare),
            *(map(plain, spread_words(row) if layouts else (format_change(row.change_percent),))),
            verdict,
        )
    with console.capture() as printed:
        if shown:
            print_table(table, console)
    lines = [Text.from_ansi(line.rstrip()) for line in printed.get().splitlines()]
    left = sum(len(group) for group in groups) - sum(len(group) for group in shown)
    if not left:
        return lines
    more = f"and {left} more" if shown else f"{left} verdicts on published figures"
    return [*lines, plain(f"{more}: see the report")]


def _values(row: Row, compare: str) -> tuple[Text, Text]:
    base, other = (format_value(row.arms.get(arm), row.unit) for arm in (BASE, compare))
    return plain(base), plain(other)


def _not_reproduced(
    groups: Iterable[Sequence[PublishedFigure]], *, several: bool
) -> Iterable[Text]:
    """Return a sentence for each figure that was not reproduced: what was measured, and why.

    With `several` platforms it names that of the figure.
    """
    for group in groups:
        figure = group[0]
        if figure.verdict == "not reproduced" and figure.row:
            metric = f"{cell_name(figure.experiment, figure.row.case.params)} {figure.row.metric}"
            metric += f", {figure.platform}" if several else ""
            change = format_change(figure.row.change_percent)
            change += f", the furthest of {len(group)}" if len(group) > 1 else ""
            why = figure.published.remark or "the reason is unknown"
            yield plain(f"Not reproduced: {figure.published.figure} ({metric}: {change}): {why}.")


def _unmeasured(figures: Iterable[PublishedFigure]) -> Iterable[Text]:
    names = dict.fromkeys(
        figure.experiment.name for figure in figures if figure.verdict == NOT_MEASURED
    )
    if names:
        yield plain(f"Published figures not measured: those of {', '.join(names)}.")


def _where_the_rest_is(report: str) -> Iterable[Text]:
    yield plain("Every row: the same command with --table.")
    yield plain(f"Report: {report}")
