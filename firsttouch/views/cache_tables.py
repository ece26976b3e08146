# SPDX-License-Identifier: GPL-2.0
"""Statistics of caches on the terminal: the knee, the spread over hot colours, the footprint."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from firsttouch.analysis.cache_statistics import (
    FITTING,
    MISSES,
    ColoredCache,
    Curve,
    Footprint,
    Sweep,
    colored_caches,
    conflict_curves,
    footprints,
    knee,
    running,
    sweeps,
)
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_fixed, format_size
from firsttouch.views.plain import heading, plain, plain_table, print_table


def print_cache_tables(dataset: Dataset, console: Console) -> None:
    """Print the statistics of the cache experiments on each platform, if there are any."""
    for platform in dataset.platforms():
        about = f"({platform.release}, {platform.machine})"
        for curve in conflict_curves(running(dataset, platform, "set-conflict")):
            if BASE in curve.arms:
                _print_knee(curve, about, console)
        measured = sweeps(running(dataset, platform, "zero-conflict"))
        # If a colour was not measured, which may be the worst, there is no spread.
        if any(
            spread.whole for sweep in measured for spread in sweep.spreads(sweep.metric).values()
        ):
            _print_spreads(measured, about, console)
        scans = footprints(running(dataset, platform, "zero-scan"))
        if scans:
            _print_footprints(scans, about, console)
    caches = colored_caches(dataset)
    if len({cache.platform for cache in caches}) > 1:
        _print_colored(caches, console)


def _print_knee(curve: Curve, about: str, console: Console) -> None:
    per_read = curve.arms[BASE]
    most = knee(per_read, FITTING)
    if most is None:
        text = "no number of lines fits"
    else:
        text = f"{most} lines fit: {per_read[most]:.5f}"
        if most + 1 in per_read:
            text += f"; {most + 1} lines do not fit: {per_read[most + 1]:.5f}"
    console.print()
    console.print(heading("L1D misses per read of one set", about))
    console.print(plain(text))


def _print_spreads(measured: Sequence[Sweep], about: str, console: Console) -> None:
    several = len(measured) > len({sweep.level for sweep in measured})
    table = plain_table(["hot lines fill", "misses of"], [], ["arm"])
    for column in ("best", "mean", "worst"):
        table.add_column(column, justify="right", no_wrap=True)
    for sweep in measured:
        words = f"a set of {sweep.level}"
        if several:
            words += f", {sweep.cases[0].number('rounds'):,} rounds"
        for metric in MISSES:
            for arm, spread in sweep.spreads(metric).items():
                if spread.whole:
                    table.add_row(
                        plain(words), metric.removesuffix("_misses"), plain(arm),
                        *(format_fixed(v, 3) for v in (spread.best, spread.mean, spread.worst)),
                    )  # fmt: skip
    console.print()
    console.print(heading("Misses per round, over all colours of the hot lines", about))
    print_table(table, console)


def _print_footprints(scans: Sequence[Footprint], about: str, console: Console) -> None:
    arms = list(dict.fromkeys(arm for scan in scans for arm in scan.arms))
    table = plain_table(["stride, working set", "misses of"], arms)
    for scan in scans:
        beside = format_size(scan.working_set) if scan.working_set else "none"
        table.add_row(
            f"{scan.stride} B, {beside}",
            scan.metric.removesuffix("_misses"),
            *(format_fixed(scan.arms.get(arm), 1) for arm in arms),
        )
    console.print()
    console.print(heading("Misses per round beside zero pages", about))
    print_table(table, console)


def _print_colored(caches: Sequence[ColoredCache], console: Console) -> None:
    several = len({cache.platform.release for cache in caches}) > 1
    table = plain_table(["machine", "level"], ["colours", "worst", "mean", "zero-scan"])
    last = ""
    for cache in caches:
        where = str(cache.platform) if several else cache.platform.machine
        table.add_row(
            plain("" if where == last else where),
            cache.level,
            str(cache.colors),
            f"{cache.stock.worst:.2f} -> {cache.colored.worst:.2f}",
            f"{cache.stock.mean:.2f} -> {cache.colored.mean:.2f}",
            f"{cache.beside[0]:,.0f} -> {cache.beside[1]:,.0f}",
        )
        last = where
    console.print()
    console.print(
        heading("Effect of colours, by machine", "stock -> one zero page per colour of the level")
    )
    console.print(
        "Misses per round of zero-conflict, and of a dense zero-scan beside a working set that "
        "just fits"
    )
    print_table(table, console)
