# SPDX-License-Identifier: GPL-2.0
"""Times of real hardware: figures, sentences, a table, JSON; never in a table with counts.

A boot's sample is the median of its repetitions without the first, which warms up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from rich.console import Console

from firsttouch.analysis.figures import LEAST_BOOTS, Change, Figure
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Result, Times, host_of, results_by_arm
from firsttouch.quantities import format_number_of, format_value
from firsttouch.tables import Fields, Json
from firsttouch.views.rows import format_params
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain

ELAPSED = "elapsed_ns"
METRICS = (ELAPSED, "sys_ns", "cycles_kernel", "instructions_kernel")


@dataclass(frozen=True)
class TimedRow:
    """A metric of a cell: its `results` by arm, the figure of each, the changes against stock.

    `changes` has no arm with too few boots, or with a time of 0.
    """

    results: Mapping[str, Result]
    metric: str
    figures: Mapping[str, Figure]
    changes: Mapping[str, Change]
    missing: str

    @property
    def cell(self) -> Cell:
        return next(iter(self.results.values())).cell

    @property
    def medians(self) -> dict[str, float]:
        return {arm: figure.median for arm, figure in self.figures.items()}


def timed_rows(times: Times) -> list[TimedRow]:
    arms = results_by_arm(times)
    return [
        _row(dict(zip(arms, results, strict=True)), metric)
        for results in zip(*arms.values(), strict=True)
        for metric in METRICS
    ]


def _row(results: Mapping[str, Result], metric: str) -> TimedRow:
    found = {arm: figure_of(result, metric) for arm, result in results.items()}
    figures = {arm: figure for arm, (figure, _) in found.items() if figure}
    missing = next((why for _, why in found.values() if why), "")
    base = figures.get(BASE)
    changes = {
        arm: change
        for arm, figure in figures.items()
        if base and arm != BASE and (change := base.change(figure))
    }
    return TimedRow(results, metric, figures, changes, missing)


def figure_of(result: Result, metric: str) -> tuple[Figure | None, str]:
    """Return the figure of a cell, with a sample for each boot; for the first without, why."""
    rounds: dict[int, list[float]] = {boot.round: [] for boot in result.boots}
    reasons: dict[int, str] = {}
    for each in result.lines:
        line = Fields("a line of ftbench", each)
        number, metrics = line.take("round", int), line.table("metrics").values_of(float)
        if metric in metrics:
            rounds[number].append(metrics[metric])
        reasons[number] = reasons.get(number) or line.table("unavailable").values_of(str).get(
            metric, ""
        )
    samples = tuple(median(values[1:] or values) for values in rounds.values() if values)
    lacking = [number for number, values in rounds.items() if not values]
    why = (reasons.get(lacking[0]) or "it was not measured") if lacking else ""
    return Figure("ns", samples) if samples else None, why


def change_words(change: Change | None) -> str:
    """Return a change with its interval: ``-42.1 % (-43.0 to -41.2)``."""
    if change is None:
        return "not measured"
    interval = f"{change.percent:+.1f} % ({change.low:+.1f} to {change.high:+.1f})"
    return interval if change.shown else f"{interval} none"


def print_times(
    times: Times, rows: Sequence[TimedRow], console: Console, *, every: bool = False
) -> None:
    """Print what the times say, then a row for each cell; with `every`, for each metric, too."""
    host, by_arm = host_of(times), results_by_arm(times)
    title = f"Times on {host.processor}"
    about = (
        f"KVM, {host.architecture}, host's kernel {host.kernel}, "
        f"guest's {times[0].provenance.kernel_version}, CPU {', '.join(host.cpus)}, "
        f"{format_number_of(len(times[0].boots), 'boots')} of each arm"
    )
    console.print(heading(title, about), soft_wrap=True)
    for sentence in sentences(times, list(rows)):
        console.print(plain(sentence), soft_wrap=True)
    console.print()
    arms = [arm for arm in by_arm if arm != BASE]
    shown = [row for row in rows if row.metric == ELAPSED or (every and row.figures)]
    names = ("cell", "metric") if every else ("cell",)
    lines = [
        (
            *(f"{row.cell.experiment} {format_params(row.cell.params)}", row.metric)[: len(names)],
            row.missing
            if BASE not in row.figures
            else format_value(row.medians[BASE], "ns" if row.metric.endswith("_ns") else ""),
            *(change_words(row.changes.get(arm)) for arm in arms),
        )
        for row in shown
    ]
    note = (
        "The time is the median of boots; each change has its interval of 95 % over boots. "
        "none: no difference shown, because the interval contains 0."
    )
    head = (*names, BASE, *arms)
    print_table(Table("", head, lines, note, names=len(names), wraps={0: 12}), console)


def times_document(times: Times, rows: Sequence[TimedRow]) -> dict[str, Json]:
    return {
        "timing": "kvm",
        "host": asdict(host_of(times)),
        "boots": len(times[0].boots),
        "sentences": list(sentences(times, list(rows))),
        "rows": [
            {
                "experiment": row.cell.experiment,
                "params": dict(row.cell.params),
                "metric": row.metric,
                "arms": row.medians,
                "changes": {arm: asdict(change) for arm, change in row.changes.items()},
                "missing": row.missing,
            }
            for row in rows
        ],
    }


def sentences(times: Times, rows: list[TimedRow]) -> Iterator[str]:
    """Say what `again` and the other arms show, and what disturbed."""
    timed = [row for row in rows if row.metric == ELAPSED]
    if len(times[0].boots) < LEAST_BOOTS:
        boots = format_number_of(len(times[0].boots), "boots")
        yield f"Too few for an interval: {boots} of each arm; give --boots {LEAST_BOOTS}."
    for name in (arm for arm in results_by_arm(times) if arm != BASE):
        changes = [row.changes[name] for row in timed if name in row.changes]
        less = sum(change.high < 0 for change in changes)
        more = sum(change.low > 0 for change in changes)
        if changes:
            yield (
                f"{name} against stock: {less} of {len(changes)} cells take less time, {more} more."
            )
        if name == CONTROL and less + more > max(1, len(changes) / 10):
            yield "Stock differs from itself more than by chance: distrust small changes."
    yield from times[0].provenance.disturbed
