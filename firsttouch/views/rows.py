# SPDX-License-Identifier: GPL-2.0
"""The rows of a dataset as tables: for the terminal, the page, `export`; and as summary.json."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from rich.console import Console

from firsttouch.analysis.cache_statistics import MISSES, colored_caches, running, sweeps
from firsttouch.analysis.dataset import NOT_PUBLISHED, Dataset, Distribution, Row
from firsttouch.analysis.measurement import Case
from firsttouch.quantities import format_change, format_fixed, format_value
from firsttouch.tables import Json
from firsttouch.views.names import (
    QUICK,
    SPREAD,
    change_head,
    format_params,
    group_by_reason,
    spread_words,
    varying,
    verdict_words,
)
from firsttouch.views.tables import Table, as_csv, markdown, markdown_cell, print_tables

FORMATS = ("md", "csv")
_COLUMNS = (
    "release", "kernel_version", "machine", "experiment", "params", "metric", "unit", "arm",
    "value", "change_percent", "against", "verdict", "quick", "command",
)  # fmt: skip


def print_dataset(dataset: Dataset, console: Console) -> None:
    """Print every row: its value on each arm, the change, the verdict on a published figure."""
    print_tables(row_tables(dataset), console)
    print_tables(cache_tables(dataset), console)
    if dataset.gaps:
        print_tables([gap_table(dataset)], console)


def row_tables(dataset: Dataset) -> Iterator[Table]:
    """Yield a table for each experiment on each platform."""
    for cases in by_experiment(dataset):
        yield row_table(dataset, [row for row in dataset.rows if row.case in cases])


def by_experiment(dataset: Dataset) -> Iterator[list[Case]]:
    for platform in dataset.platforms():
        for name in dict.fromkeys(case.experiment.name for case in dataset.cases):
            if cases := dataset.of(platform, name):
                yield cases


def row_table(dataset: Dataset, rows: Sequence[Row], *, by_arm: bool = False) -> Table:
    """Return the rows of one experiment on one platform; `by_arm`: a line for each arm."""
    case = rows[0].case
    arms = [arm for arm in dataset.arms(r.case for r in rows) if any(arm in r.arms for r in rows)]
    pairs = {row.case.pair() for row in rows} - {None}
    spread = SPREAD if any(row.changes_over() for row in rows) else ()
    judged = any(row.verdict != NOT_PUBLISHED for row in rows)
    change = (change_head(pairs, case.experiment),) if pairs else ()
    figures = ("value", "change") if by_arm else (*arms, *change, *spread)
    lines = [
        (
            format_params(varying(case.experiment, row.case.params)),
            row.metric,
            "ms" if row.unit == "ns" else row.unit,
            *values,
            *([verdict] if judged else []),
        )
        for row in rows
        for values, verdict in (
            _by_arm(row, arms) if by_arm else [(_values(row, arms, len(change), spread),
                                                verdict_words(row))]
        )
    ]  # fmt: skip
    names = (*(("cell",) if any(line[0] for line in lines) else ()), "metric", "unit")
    return Table(
        case.experiment.title,
        (*names, *(("arm",) if by_arm else ()), *figures, *(("verdict",) if judged else ())),
        tuple(line if len(names) == 3 else line[1:] for line in lines),
        about=f"({case.experiment.name}, {case.platform})",
        names=len(names) + by_arm,
        more=judged,
        wraps={len(names) - 1: 12},
    )


def _values(
    row: Row, arms: Sequence[str], changes: int, spread: Collection[str]
) -> tuple[str, ...]:
    return (
        *(_value(row, arm) for arm in arms),
        *[change_words(row.change_percent)][:changes],
        *(spread_words(row) if spread else ()),
    )


def _by_arm(row: Row, arms: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    for arm in arms:
        if arm in row.arms:
            verdict = verdict_words(row) if arm == row.case.experiment.compare else ""
            yield (arm, _value(row, arm), change_words(row.change(arm))), verdict


def _value(row: Row, arm: str) -> str:
    return format_value(row.arms.get(arm), row.unit).removesuffix(" ms")


def change_words(percent: float | None) -> str:
    """Return a change in words; empty if there is none, or if it rounds to zero."""
    text = format_change(percent)
    return "" if text in (format_change(None), format_change(0)) else text


def cache_tables(dataset: Dataset) -> Iterator[Table]:
    """Yield the spread over the colours of hot lines on each platform, and what colours change."""
    for platform in dataset.platforms():
        rows = [
            (
                f"a set of {sweep.level}, {sweep.cases[0].number('rounds'):,} rounds",
                metric.removesuffix("_misses"),
                arm,
                *(format_fixed(value, 3) for value in (spread.best, spread.mean, spread.worst)),
            )
            for sweep in sweeps(running(dataset, platform, "zero-conflict"))
            for metric in MISSES
            for arm, spread in sweep.spreads(metric).items()
            # If a colour was not measured, which may be the worst, there is no spread.
            if spread.whole
        ]
        if rows:
            yield Table(
                "Misses per round, over all colours of the hot lines",
                ("hot lines fill", "misses of", "arm", "best", "mean", "worst"),
                tuple(rows), about=f"({platform})", names=3,
            )  # fmt: skip
    if len(dataset.platforms()) > 1 and (colored := colored_rows(dataset)):
        lines = [
            (*row[:3], *(f"{row[at]} -> {row[at + 1]}" for at in (3, 5, 7))) for row in colored
        ]
        head = ("machine", "level", "colours", "worst", "mean", "beside a set")
        yield Table("Effect of colours, by machine", head, lines, _COLORED, names=2)


COLORED = (
    "machine", "level", "colours", "worst, stock", "worst, colours", "mean, stock",
    "mean, colours", "beside a set, stock", "beside a set, colours",
)  # fmt: skip
_COLORED = (
    "Misses per round on stock and with a zero page per colour: of zero-conflict, and of a dense "
    "zero-scan beside a working set that just fits."
)


def colored_rows(dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    """Return what colours change in each machine's caches; `COLORED` heads the columns."""
    several = len({platform.release for platform in dataset.platforms()}) > 1
    return tuple(
        (
            str(cache.platform) if several else cache.platform.machine,
            cache.level.upper(),
            str(cache.colors),
            *(format_fixed(spread.worst, 2) for spread in (cache.stock, cache.colored)),
            *(format_fixed(spread.mean, 2) for spread in (cache.stock, cache.colored)),
            *(format_fixed(misses, 0) for misses in cache.beside),
        )
        for cache in colored_caches(dataset)
    )


def gap_table(dataset: Dataset) -> Table:
    reasons = group_by_reason(
        (gap.metric, reason, gap.case.experiment.name)
        for gap in dataset.gaps
        for reason in gap.reasons.values()
    )
    return Table(
        "Not available",
        ("metrics", "why", "where"),
        tuple((", ".join(r.names), r.reason, ", ".join(r.where)) for r in reasons),
        names=3,
        wraps={0: 20, 1: 20, 2: 20},
    )


def export(dataset: Dataset, form: str) -> str:
    """Return the rows in one of `FORMATS`, each with release, kernel version and command."""
    if form == "csv":
        return as_csv(Table("", _COLUMNS, tuple(_tidy(dataset))))
    return "".join(f"{line}\n" for line in _markdown(dataset))


def kernel_versions(cases: Sequence[Case]) -> str:
    arms = [measured for case in cases for measured in case.arms.values()]
    return ", ".join(sorted({each.result.provenance.kernel_version for each in arms}))


def _tidy(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield a line for each figure of each arm; numbers are unrounded, sizes in bytes."""
    for row in dataset.rows:
        case, pair = row.case, row.case.pair()
        for arm, value in row.arms.items():
            result = case.arms[arm].result
            compared = pair is not None and arm == pair[1]
            change = row.change_percent if compared else None
            yield (
                case.platform.release, result.provenance.kernel_version, case.platform.machine,
                case.experiment.name,
                " ".join(f"{name}={value}" for name, value in case.params.items()),
                row.metric, row.unit, arm, str(value),
                "" if change is None else str(change),
                pair[0] if pair and compared else "",
                row.verdict if compared and row.verdict != NOT_PUBLISHED else "",
                "quick" if result.quick else "",
                result.provenance.command,
            )  # fmt: skip


def _markdown(dataset: Dataset) -> Iterator[str]:
    if dataset.quick:
        yield from (f"These results are {QUICK}.", "")
    for cases in by_experiment(dataset):
        rows = [row for row in dataset.rows if row.case in cases]
        platform, experiment = cases[0].platform, cases[0].experiment
        yield from (
            f"### {markdown_cell(experiment.title)}",
            "",
            f"Kernel {platform.release} ({kernel_versions(cases)}) on {platform.machine}: "
            f"`{measuring_command(cases, dataset.further)}`",
            "",
            *(markdown(row_table(dataset, rows)) if rows else ()),
            "",
        )


def measuring_command(cases: Sequence[Case], further: Iterable[Case] = ()) -> str:
    """Return a command that measures all of `cases`; without --set, it may measure more.

    `further` has their other layouts, and may have more.
    """
    first = cases[0]
    tried = tried_options(first)
    words = [
        "firsttouch", "try" if tried else "lab", *_kernel(first),
        "--machine", first.platform.machine, "--experiment", first.experiment.name,
    ]  # fmt: skip
    settings = dict.fromkeys(case.platform.setting for case in cases)
    words += [word for name in settings if name for word in ("--setting", name)]
    sizes = {case.params["size"] for case in cases if "size" in case.params}
    if len(sizes) == 1 and sizes != set(first.experiment.parameters["size"]):
        words += ["--size", str(sizes.pop())]
    here = (first.platform, first.experiment.name)
    layouts = {case.layout for case in further if (case.platform, case.experiment.name) == here}
    layouts |= {case.layout for case in cases}
    if layouts != {0} or first.experiment.layouts > 1:
        words += ["--layouts", f"{min(layouts)}-{max(layouts)}"]
    return shlex.join([*words, *tried])


def tried_options(case: Case) -> list[str]:
    options = []
    for arm, measured in case.arms.items():
        if measured.result.provenance.tried:
            words = shlex.split(case.command(arm))
            options += words[words.index("--arm") :]
    return options


def _kernel(case: Case) -> list[str]:
    """Return the option that names the kernel of a case: --source where it was the user's own."""
    with suppress(ValueError):
        words = shlex.split(case.command(next(iter(case.arms))))
        if words[2:3] == ["--source"]:
            return words[2:4]
    return ["--release", case.platform.release]


SCHEMA = 2


def summary(dataset: Dataset) -> dict[str, Json]:
    """Return the contents of summary.json.

    The same results give the same document: it has nothing that varies between
    hosts or runs.
    """
    return {
        "schema": SCHEMA,
        # From `firsttouch lab --quick`: smaller sizes and fewer cells.
        "quick": dataset.quick,
        "rows": [_row(row) for row in dataset.rows],
        "unavailable": [
            {**gap.case.document(), "metric": gap.metric, "reasons": dict(gap.reasons)}
            for gap in dataset.gaps
        ],
    }


def _row(row: Row) -> dict[str, Json]:
    published = row.published
    return {
        **row.case.document(),
        "metric": row.metric,
        "unit": row.unit,
        "arms": dict(row.arms),
        "change_percent": row.change_percent,
        # The two arms of the change: the base, and the arm that is compared with it.
        "change_of": list(row.case.pair() or ()),
        "published": (
            {"figure": published.figure, "source": published.source} if published else None
        ),
        "verdict": row.verdict,
        # Number of arrangements of kernel and program in memory behind the figure.
        "layouts": len(row.layouts) or 1,
        **({"distribution": _distribution(row)} if row.layouts else {}),
    }


def _distribution(row: Row) -> dict[str, Json]:
    return {
        "change_percent": _spread(row.changes_over()),
        "arms": {arm: _spread(row.values_over(arm)) for arm in row.arms},
        # In how many layouts is the verdict that of the row, and of how many?
        "holds_in": list(row.holds_in() or ()),
    }


def _spread(values: Distribution | None) -> Json:
    if values is None:
        return None
    return dict(zip(("minimum", "median", "maximum"), values.spread, strict=True))
