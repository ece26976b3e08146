# SPDX-License-Identifier: GPL-2.0
"""Times of real hardware: sentences, a table, JSON; never in a table with counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console

from firsttouch.analysis.figures import (
    ELAPSED,
    LEAST_BOOTS,
    Change,
    TimedRow,
    Times,
    host_of,
    results_by_arm,
)
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.quantities import format_number_of, format_value
from firsttouch.tables import Json
from firsttouch.views.rows import format_params
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain

# The load before a run that disturbs it: a tenth of a CPU. A clock this much below the run's
# fastest counts as lower.
_LOAD, _SLOWER = 0.1, 0.97


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
        "Times are medians over boots; changes have 95 % confidence intervals. none: the interval "
        "contains 0."
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
    """Say what `again` and the other arms show, and what may have disturbed them."""
    timed = [row for row in rows if row.metric == ELAPSED]
    if len(times[0].boots) < LEAST_BOOTS:
        boots = format_number_of(len(times[0].boots), "boots")
        yield f"Too few for a confidence interval: {boots} of each arm; use --boots {LEAST_BOOTS}."
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
    host = host_of(times)
    during = [boot.host for of_arm in results_by_arm(times).values() for boot in of_arm[0].boots]
    if host.before.governor not in ("", "performance"):
        yield (
            f"The governor of CPU {', '.join(host.cpus)} is {host.before.governor}: `performance` "
            "keeps one clock."
        )
    if host.before.load > _LOAD:
        yield f"Other work ran before: a load of {host.before.load:.2f}."
    fastest = max(boot.khz for boot in during)
    if slower := sum(0 < boot.khz < _SLOWER * fastest for boot in during):
        yield f"The clock was below its {fastest:,} kHz at {slower} of {len(during)} boots."
