# SPDX-License-Identifier: GPL-2.0
"""Times of real hardware: sentences, tables, JSON, comparisons; never in a table with counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.figures import LEAST_BOOTS, SMALL_CHANGE, Change
from firsttouch.analysis.times import (
    ELAPSED,
    NO_DIFFERENCE,
    TimedRow,
    figure_of,
    timed_rows,
)
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.catalog.collection import load_catalog
from firsttouch.errors import UserError
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Times, host_of, read_times, results_by_arm
from firsttouch.quantities import format_number_of, format_value
from firsttouch.tables import Json
from firsttouch.views.comparison import Comparison, Difference, Line, kind_of
from firsttouch.views.names import format_params
from firsttouch.views.tables import Table, print_table
from firsttouch.views.terminal import heading, plain

_SUBJECTS = ("processor", "host's kernel", "guest's kernel", "images", "CPUs")


def cell_title(cell: Cell, among: Times) -> str:
    """Return a cell's name for people: its size, and in what it differs from others `among`."""
    alike = [each.cell.params for each in among if each.cell.experiment == cell.experiment]
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
    for arm, (first, *_) in by_arm.items():
        for name, digest in first.provenance.digests.items():
            if name.startswith(("patch ", "fragment ")):
                console.print(plain(f"{arm}: {name} (SHA-256 {digest[:16]})"), soft_wrap=True)
    for sentence in sentences(times, list(rows)):
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
    arms = [arm for arm in by_arm if arm != BASE]
    shown = [row for row in rows if row.metric == ELAPSED or (every and row.figures)]
    names = ("cell", "metric") if every else ("cell",)
    lines = [
        (
            *(cell_title(row.cell, times), row.metric)[: len(names)],
            row.missing
            if BASE not in row.figures
            else format_value(row.medians[BASE], "ns" if row.metric.endswith("_ns") else ""),
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


def times_document(times: Times, rows: Sequence[TimedRow]) -> dict[str, Json]:
    return {
        "timing": "kvm",
        "architecture": host_of(times).architecture,
        "host": asdict(host_of(times)),
        "boots": len(times[0].boots),
        "sentences": list(sentences(times, list(rows))),
        "rows": [
            {
                "experiment": row.cell.experiment,
                "params": dict(row.cell.params),
                "metric": row.metric,
                "arms": row.medians,
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


def sentences(times: Times, rows: list[TimedRow]) -> Iterator[str]:
    """Say what `again` and the other arms show, how many boots more would, what disturbed."""
    timed = [row for row in rows if row.metric == ELAPSED]
    if len(times[0].boots) < LEAST_BOOTS:
        boots = format_number_of(len(times[0].boots), "boots")
        yield f"Too few for an interval: {boots} of each arm; give --boots {LEAST_BOOTS}."
    for name in (arm for arm in results_by_arm(times) if arm != BASE):
        changes = [row.changes[name] for row in timed if name in row.changes]
        shown = [change for change in changes if change.shown]
        if name == CONTROL and changes:
            chance = (
                "as chance gives one of twenty"
                if len(shown) <= max(1, len(changes) / 10)
                else ("more than chance gives: trust no small change of this run")
            )
            yield (
                f"Stock against stock: {len(shown)} of {len(changes)} cells differ"
                + (f", {chance}." if shown else ".")
            )
        elif changes:
            less = sum(change.high < 0 for change in changes)
            more = sum(change.low > 0 for change in changes)
            yield (
                f"{name} against stock: {less} of {len(changes)} cells take less time, {more} "
                f"more; of the others, no difference is shown."
            )
    yield from _by_cpus(timed)
    needed = [change.needed for row in timed for change in row.changes.values()]
    if needed:
        enough = [number for number in needed if number is not None]
        most = f"{max(enough):,} boots" if len(enough) == len(needed) else "more than 10,000 boots"
        yield f"A change of {SMALL_CHANGE:.0%} would show in each cell with {most} of each arm."
    if resumed := [str(boot.round - 1) for boot in times[0].boots if boot.resumed]:
        yield f"The run was interrupted and resumed after round {', '.join(resumed)}."
    yield from times[0].provenance.disturbed


def _by_cpus(rows: list[TimedRow]) -> Iterator[str]:
    """Say what each CPU takes for a page when several touch a share of one mapping each."""
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        params = dict(row.cell.params)
        cpus, size = params.pop("cpus", None), params.get("size")
        if not isinstance(cpus, int) or not isinstance(size, int):
            continue
        pages = size >> 12
        by_arm = said.setdefault((row.cell.experiment, str(params.get("by", ""))), {})
        for arm, elapsed in row.medians.items():
            faults, _ = figure_of(row.results[arm], "page_faults")
            many = f", {faults.median / pages:.2f} faults" if faults else ""
            by_arm.setdefault(arm, []).append(f"{cpus}: {elapsed * cpus / pages:,.0f} ns{many}")
    for (experiment, touch), by_arm in said.items():
        arms = "; ".join(f"{arm} on {', '.join(each)}" for arm, each in by_arm.items())
        title = f"{experiment} {touch}".strip()
        yield f"{title}, each CPU's time for a page by the number of CPUs: {arms}."


def compared_times(a: Path, b: Path) -> Comparison:
    """Return the comparison of two sets of times; UserError if they have no cell in common."""
    ours, theirs = read_times(a), read_times(b)
    lines = tuple(_lines(ours, theirs))
    if not lines:
        raise UserError(f"{a} and {b} have no cell and arm in common: measure both again.")
    before, after = _facts(ours), _facts(theirs)
    differences = tuple(
        Difference(what, value, after[what])
        for what, value in before.items()
        if value != after[what]
    )
    kind = kind_of(differences, _SUBJECTS, len(_SUBJECTS))
    apart = sum(line.changed for line in lines)
    said = f"The intervals of {apart} of {len(lines)} changes against stock do not overlap."
    return Comparison(kind, (said,), differences, ("cell", "arm"), lines)


def _facts(times: Times) -> dict[str, str]:
    host = host_of(times)
    return {
        "processor": host.processor,
        "host's kernel": host.kernel,
        "guest's kernel": times[0].provenance.kernel_version,
        "images": " ".join(
            first.provenance.digests["kernel image"][:8]
            for first, *_ in results_by_arm(times).values()
        ),
        "CPUs": ", ".join(host.cpus),
        "governor": host.before.governor,
    }


def _lines(a: Times, b: Times) -> Iterator[Line]:
    catalog = load_catalog([], (), ())
    theirs = {row.command: row.changes for row in timed_rows(b, catalog) if row.metric == ELAPSED}
    for row in timed_rows(a, catalog):
        for arm, change in row.changes.items():
            other = theirs.get(row.command, {}).get(arm)
            if row.metric != ELAPSED or other is None:
                continue
            yield Line(
                {"experiment": row.cell.experiment, "params": dict(row.cell.params), "arm": arm},
                (cell_title(row.cell, a), arm),
                change.percent,
                other.percent,
                None,
                (change_words(change), change_words(other), ""),
                change.high < other.low or other.high < change.low,
            )
