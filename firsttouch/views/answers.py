# SPDX-License-Identifier: GPL-2.0
"""The answer to a request: sentences, verdicts on published figures, or the rows asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from firsttouch.analysis.cache_statistics import Spread, running, sweeps
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case, Platform
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Params
from firsttouch.quantities import (
    format_change,
    format_count,
    format_ratio,
    format_size,
    format_value,
)
from firsttouch.views.names import QUICK, SPREAD, cell_name, spread_words, verdict_words
from firsttouch.views.rows import by_experiment, change_words, row_table
from firsttouch.views.tables import Table, print_table, print_tables
from firsttouch.views.terminal import heading, plain

LINES = 25
# On a narrower console the sentences alone may take more than LINES.
_NARROW = 80
# Rows of all tables of what has no sentences.
_ROWS = 16
_FAULTS, _COLORS = "populate", "zero-conflict"
# Accesses that gain nothing: their name, and the experiment and parameters that measure them.
_WITHOUT_GAIN: tuple[tuple[str, str, Params], ...] = (
    ("plain stores", "populate", {"by": "store", "page": "4k"}),
    ("plain reads", "read-fault", {}),
)


def print_answers(dataset: Dataset, report: str, console: Console) -> None:
    """Print what the results say of the features, then the rows of what that leaves out.

    `report` is the path of the report. On a console of 80 columns or more the sentences and
    verdicts take at most 25 lines; a line counts the verdicts that do not fit.
    """
    figures = dataset.published()
    groups = _grouped(figures)
    own = list(own_tables(dataset, figures))
    sentences = [] if own and not figures else _sentences(dataset, figures)
    tail = [*_not_reproduced(groups), "Every row: the same command with --table."]
    for sentence in sentences:
        console.print(plain(sentence) if sentence is not sentences[0] else heading(sentence))
    room = LINES - sum(_height(text, console) for text in (*sentences, *tail, report))
    if figures:
        _print_figures(groups, room if console.width >= _NARROW else None, console)
    if own:
        print_tables(own, console)
        console.print()
    for sentence in tail:
        console.print(plain(sentence))
    # A path that is broken across lines cannot be pasted.
    console.print(plain(f"Report: {report}"), soft_wrap=True)


def own_tables(dataset: Dataset, figures: Iterable[Row]) -> Iterator[Table]:
    """Yield the shown rows of each experiment that neither sentences nor `figures` are about.

    Of the default plan they are left out if anything else of it has an answer.
    """
    answered = {figure.case.experiment.name for figure in figures}
    for platform in dataset.platforms():
        answered |= {_FAULTS} if _faults(dataset, platform) else set()
        answered |= {_COLORS} if _colors(dataset, platform) else set()
    own = [
        cases
        for cases in by_experiment(dataset)
        if cases[0].experiment.name not in answered
        and not (answered and cases[0].experiment.default)
    ]
    for cases in own:
        names = cases[0].experiment.shown()
        every = [row for row in dataset.rows if row.case in cases]
        rows = [row for row in every if row.metric in names] or every
        # What differs between arms comes first.
        rows.sort(key=lambda row: not change_words(row.change_percent))
        if rows:
            yield row_table(dataset, rows).most(max(4, _ROWS // len(own)))


def first_figure(dataset: Dataset) -> str:
    """Return the first figure of an experiment's results, in one line; empty if it has none.

    It is the first figure with a published counterpart, or else the first shown one.
    """
    rows = [row for row in dataset.rows if row.metric in row.case.experiment.shown()]
    rows = rows or list(dataset.rows)
    row = next((row for row in rows if row.published), rows[0] if rows else None)
    if row is None:
        return ""
    values = ", ".join(f"{arm} {format_value(value, row.unit)}" for arm, value in row.arms.items())
    change = f", {format_change(row.change_percent)}" if row.change_percent is not None else ""
    where = f"{cell_name(row.case.experiment, row.case.params)} on {row.case.platform.machine}"
    return f"{where}: {row.metric} {values}{change}"


def answering(dataset: Dataset) -> list[Platform]:
    """Return the platforms whose results show what the features do or cost, else the first."""
    platforms = dataset.platforms()
    names = (_FAULTS, "read-fault", _COLORS)
    return [platform for platform in platforms if dataset.of(platform, *names)] or platforms[:1]


def answer(dataset: Dataset, platform: Platform, figures: Iterable[Row]) -> list[str]:
    """Return a sentence each on write-intent faults, on colour zero pages, on side effects."""
    verdicts = [figure.verdict for figure in figures if figure.case.platform == platform]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    return list(
        filter(None, (
            _faults(dataset, platform),
            _colors(dataset, platform),
            _side_effects(dataset, platform),
            f"Published figures: {counts}." if counts else "",
        ))
    )  # fmt: skip


def _sentences(dataset: Dataset, figures: Sequence[Row]) -> list[str]:
    first, *others = answering(dataset)
    quick = f"  ({QUICK})" if dataset.quick else ""
    sentences = [f"First touch, {first}{quick}", *answer(dataset, first, figures)]
    if others:
        machines: dict[str, list[str]] = {}
        for platform in others:
            machines.setdefault(platform.release, []).append(platform.machine)
        also = "; ".join(f"{release} on {', '.join(on)}" for release, on in machines.items())
        sentences.append(f"Also measured, see the report: {also}.")
    return sentences


def mean_words(spread: Spread) -> str:
    """Return the mean over hot colours, with a ≈ if some colours were not measured."""
    return ("" if spread.whole else "≈ ") + format_ratio(spread.mean)


def _change(case: Case, metric: str) -> float | None:
    return change_percent(case.value(BASE, metric), case.value(case.experiment.compare, metric))


def _faults(dataset: Dataset, platform: Platform) -> str:
    case = dataset.find(platform, _FAULTS, "page_faults", {"by": "ldadd", "page": "4k"})
    both = _per_page(case) if case else None
    if case is None or both is None:
        return ""
    arms = (BASE, case.experiment.compare)
    faults = [format_count(case.value(arm, "page_faults") or 0) for arm in arms]
    word = "1 fault" if both[0] == "1" else f"{both[0]} faults"
    sentence = (
        f"The first touch of a 4 KiB page by an atomic add takes {word} on the stock kernel and "
        f"{both[1]} with both features on ({faults[0]} against {faults[1]} for "
        f"{format_size(case.number('size'))}, {format_change(_change(case, 'page_faults'))})"
    )
    with_it = []
    before, after = (case.value(arm, "tlbi") for arm in arms)
    if before is not None and after is not None:
        with_it.append(f"{format_count(before)} against {format_count(after)} TLB invalidations")
    instructions = _change(case, "instructions_kernel")
    if instructions is not None:
        with_it.append(f"{format_change(instructions)} of kernel instructions")
    if with_it:
        sentence += f", with {' and '.join(with_it)}"
    huge = dataset.find(platform, _FAULTS, "page_faults", {"by": "ldadd", "page": "2m"})
    of_huge = _per_page(huge) if huge else None
    if of_huge:
        sentence += f"; that of a 2 MiB page takes {of_huge[0]} and {of_huge[1]}"
    return f"{sentence}."


def _per_page(case: Case) -> tuple[str, str] | None:
    """Return the faults per page on stock and on the arm that the experiment compares."""
    both = [case.per_page(arm, "page_faults") for arm in (BASE, case.experiment.compare)]
    if both[0] is None or both[1] is None:
        return None
    return format_ratio(both[0]), format_ratio(both[1])


def _colors(dataset: Dataset, platform: Platform) -> str:
    for sweep in sweeps(running(dataset, platform, _COLORS)):
        spreads = sweep.spreads(sweep.metric)
        others = [arm for arm in spreads if arm != BASE]
        if BASE in spreads and others:
            before = spreads[BASE]
            # The arm with the best worst case: the most that the feature can do.
            arm = min(others, key=lambda name: spreads[name].worst)
            after = spreads[arm]
            means = mean_words(before), mean_words(after)
            mean = "stays at" if means[0] == means[1] else f"goes from {means[0]} to"
            return (
                f"Colour zero pages (arm {arm}) cut the worst case of a full "
                f"{sweep.level.upper()} set from {format_ratio(before.worst)} to "
                f"{format_ratio(after.worst)} misses per round; the mean over hot colours {mean} "
                f"{means[1]}."
            )
    return ""


def _side_effects(dataset: Dataset, platform: Platform) -> str:
    effects: list[str] = []
    for words, name, params in _WITHOUT_GAIN:
        case = dataset.find(platform, name, "instructions_kernel", params)
        change = _change(case, "instructions_kernel") if case else None
        if change is not None and change_words(change):
            by = f"{format_change(abs(change)).lstrip('+')} {'more' if change > 0 else 'fewer'}"
            effects.append(
                f"{words} {by}" if effects else f"{words} execute {by} kernel instructions"
            )
    return f"Side effects: {', '.join(effects)}." if effects else ""


def _height(text: str, console: Console) -> int:
    with console.capture() as printed:
        console.print(plain(text))
    return printed.get().count("\n")


def _grouped(figures: Iterable[Row]) -> list[list[Row]]:
    """Return the published figures in groups of one text and one verdict, on all platforms.

    Within a group the row furthest from what was published comes first.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in figures:
        assert row.published
        groups.setdefault((row.published.figure, row.verdict), []).append(row)
    return [sorted(members, key=_distance, reverse=True) for members in groups.values()]


def _several(groups: Iterable[Iterable[Row]]) -> bool:
    return len({str(row.case.platform) for group in groups for row in group}) > 1


def _distance(row: Row) -> float:
    change = row.change_percent or 0.0
    expected = row.published.change if row.published else None
    return change if expected is None else abs(change - expected)


def _print_figures(groups: Sequence[Sequence[Row]], room: int | None, console: Console) -> None:
    """Print the published figures in at most `room` lines; the last counts those left out."""

    def print_first(shown: int) -> None:
        if shown:
            print_table(published_table(groups[:shown]), console)
        if left := sum(map(len, groups[shown:])):
            more = f"and {left} more" if shown else f"{left} verdicts on published figures"
            console.print(f"{more}: see the report")

    shown = len(groups)
    while shown and room is not None:
        with console.capture() as printed:
            print_first(shown)
        if printed.get().count("\n") <= room:
            break
        shown -= 1
    print_first(shown)


def published_table(groups: Sequence[Sequence[Row]], *, whole: bool = False) -> Table:
    """Return the table of published figures, a line for the first of each group.

    If `whole`, each has its source, its cell and metric.
    """
    compared = {group[0].case.experiment.compare for group in groups}
    other = compared.pop() if len(compared) == 1 else "changed"
    layouts = any(group[0].layouts for group in groups)
    several = _several(groups)
    rows = []
    for row, *others in groups:
        assert row.published
        where = f", {row.case.platform}" if several else ""
        name = row.published.figure
        times = f" {1 + len(others)} x" if others else ""
        rows.append((
            f"{name} ({row.published.source})" if whole else name + where,
            *((_cell(row, where),) if whole else ()),
            *(format_value(row.arms.get(arm), row.unit)
              for arm in (BASE, row.case.experiment.compare)),
            *(spread_words(row) if layouts else (format_change(row.change_percent),)),
            f"{row.verdict}{times}{verdict_words(row).removeprefix(row.verdict)}",
        ))  # fmt: skip
    names = ("published figure", "cell") if whole else ("published figure",)
    changes = SPREAD if layouts else ("change",)
    return Table(
        "", (*names, BASE, other, *changes, "verdict"), rows,
        names=len(names), more=1, wraps={0: 24},
    )  # fmt: skip


def _cell(row: Row, where: str) -> str:
    return f"{cell_name(row.case.experiment, row.case.params)} {row.metric}{where}"


def _not_reproduced(groups: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Yield a sentence for each figure that was not reproduced: what was measured, and why."""
    for row, *others in groups:
        if row.verdict == "not reproduced" and row.published:
            cell = _cell(row, f", {row.case.platform}" if _several(groups) else "")
            change = format_change(row.change_percent)
            change += f", the furthest of {1 + len(others)}" if others else ""
            why = row.published.remark or "the reason is unknown"
            yield f"Not reproduced: {row.published.figure} ({cell}: {change}): {why}."
