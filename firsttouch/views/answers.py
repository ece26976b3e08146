# SPDX-License-Identifier: GPL-2.0
"""The answer to a request: sentences, verdicts on published figures, or the rows asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from firsttouch.analysis.dataset import Dataset, Row, spreads
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case, Platform
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_change, format_list, format_value
from firsttouch.views.html.svg import format_compact
from firsttouch.views.rows import (
    QUICK,
    SPREAD,
    by_experiment,
    cell_name,
    change_words,
    row_table,
    spread_table,
    spread_words,
    verdict_words,
)
from firsttouch.views.tables import Table, print_table, print_tables
from firsttouch.views.terminal import heading, plain

# Rows of the published figures, and of all tables of what has no sentences.
_FIGURES, _ROWS = 6, 16
_FAULTS, _COLORS = "populate", "zero-conflict"


def print_answers(dataset: Dataset, console: Console) -> None:
    """Print what the results say of the features, then the rows of what that leaves out."""
    figures = dataset.published()
    own = list(own_tables(dataset, figures))
    if figures or not own:
        quick = f"  ({QUICK})" if dataset.quick else ""
        platforms = format_list([str(platform) for platform in dataset.platforms()], most=1)
        console.print(heading(f"First touch, {platforms}{quick}"))
        if sentence := answer(dataset, dataset.platforms()[0]):
            console.print(plain(sentence))
    if figures:
        print_table(published_table(figures).most(_FIGURES), console)
    if spread := spread_table(dataset):
        print_table(spread.most(_FIGURES), console)
    if own:
        print_tables(own, console)
        console.print()
    for sentence in _not_reproduced(figures):
        console.print(plain(sentence))
    console.print("All rows: the same command with --table.")


def own_tables(dataset: Dataset, figures: Iterable[Row]) -> Iterator[Table]:
    """Yield the shown rows of each experiment that neither sentences nor `figures` are about.

    Those of the default plan are left out if the first touch has a sentence.
    """
    answered = {figure.case.experiment.name for figure in figures}
    for platform in dataset.platforms():
        answered |= {_FAULTS} if answer(dataset, platform) else set()
        answered |= {_COLORS} if spreads(dataset, platform) else set()
    own = [
        (cases[0].experiment, rows)
        for cases, rows in by_experiment(dataset)
        if cases[0].experiment.name not in answered
        and not (_FAULTS in answered and cases[0].experiment.default)
    ]
    for experiment, every in own:
        rows = [row for row in every if row.metric in experiment.shown()] or every
        # What differs between arms comes first.
        rows.sort(key=lambda row: not change_words(row.change_percent))
        if rows:
            yield row_table(dataset, rows).most(max(4, _ROWS // len(own)))


def answer(dataset: Dataset, platform: Platform) -> str:
    """Return what write-intent faults do on a platform, in a sentence; empty if not measured."""
    base, huge = (
        dataset.find(platform, _FAULTS, "page_faults", {"by": "ldadd", "page": page})
        for page in ("4k", "2m")
    )
    if base is None:
        return ""
    before, after = _per_page(base)
    sentence = (
        f"The first touch of a 4 KiB page by an atomic add takes {before} faults on the stock "
        f"kernel and {after} with write-intent faults"
    )
    of = (base.value(arm, "instructions_kernel") for arm in (BASE, base.experiment.compare))
    if (change := change_percent(*of)) is not None:
        sentence += f" ({format_change(change)} kernel instructions)"
    if huge:
        before, after = _per_page(huge)
        sentence += f"; that of a 2 MiB page takes {before} and {after}"
    return f"{sentence}."


def _per_page(case: Case) -> list[str]:
    arms = (BASE, case.experiment.compare)
    return [format_compact(case.per_page(arm, "page_faults") or 0) for arm in arms]


def published_table(figures: Sequence[Row], *, whole: bool = False) -> Table:
    """Return the table of published figures; if `whole`, each has its source, cell and metric."""
    compared = {row.case.experiment.compare for row in figures}
    other = compared.pop() if len(compared) == 1 else "changed"
    layouts = any(row.layouts for row in figures)
    several = len({row.case.platform for row in figures}) > 1
    rows = []
    for row in figures:
        assert row.published
        where = f", {row.case.platform}" if several else ""
        name, cell = row.published.figure, cell_name(row.case.experiment, row.case.params)
        rows.append((
            f"{name} ({row.published.source})" if whole else name + where,
            *((f"{cell} {row.metric}{where}",) if whole else ()),
            *(format_value(row.arms.get(arm), row.unit)
              for arm in (BASE, row.case.experiment.compare)),
            *(spread_words(row) if layouts else (format_change(row.change_percent),)),
            verdict_words(row),
        ))  # fmt: skip
    names = ("published figure", *(("cell",) if whole else ()))
    changes = SPREAD if layouts else ("change",)
    return Table(
        "", (*names, BASE, other, *changes, "verdict"), rows,
        names=len(names), more=1, wraps={0: 24},
    )  # fmt: skip


def _not_reproduced(figures: Sequence[Row]) -> Iterator[str]:
    failed = [row.published for row in figures if row.verdict == "not reproduced"]
    for published in dict.fromkeys((each.figure, each.remark) for each in failed if each):
        yield f"Not reproduced: {published[0]}: {published[1] or 'the reason is unknown'}."
