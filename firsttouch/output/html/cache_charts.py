# SPDX-License-Identifier: GPL-2.0
"""Charts of the cache experiments: set-conflict, zero-conflict and zero-scan."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.analysis.cache_statistics import (
    MISSES,
    Curve,
    Sweep,
    conflict_curves,
    per_round,
    predicted_knee,
    sets_in_turn,
    sweeps,
)
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.experiments import Params
from firsttouch.output.answers import mean_words
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.output.html.figure import (
    Figure,
    SmallTable,
    cell_lines,
    pictures,
    telling_cells,
)
from firsttouch.output.html.lines import draw_lines
from firsttouch.quantities import format_ratio, format_size


def set_conflict(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure of misses per read by lines read, for each set of the other parameters."""
    return [
        _set_conflict(dataset, curve, f"{name}-{index}")
        for index, curve in enumerate(conflict_curves(cases))
    ]


def _set_conflict(dataset: Dataset, curve: Curve, name: str) -> Figure:
    platform = curve.cases[0].platform
    knee, why = knee_words(dataset, platform.machine, curve.stride)
    drawn = symbols(dataset.catalog, curve.arms)
    first = next(iter(drawn))
    described = ", ".join(f"{n}: {format_ratio(value)}" for n, value in curve.arms[first].items())
    highest = max(value for points in curve.arms.values() for value in points.values())
    series = {
        arm: [(float(n), value) for n, value in points.items()]
        for arm, points in curve.arms.items()
    }
    wide, narrow = pictures(
        name,
        f"L1D misses per read against the number of lines read, {platform}, {_words(curve.rest)}",
        f"{why} Misses per read by lines read, {first}: {described}.",
        lambda width: draw_lines(
            width,
            series,
            drawn,
            ("lines read in each round (N)", "misses per read"),
            top=max(1.0, highest),
            knee=knee,
        ),
    )
    about = [case for case in curve.cases if knee and case.number("n") in (knee, knee + 1)]
    return Figure(
        f"{platform} ({_words(curve.rest)})",
        "L1D misses per read, by the number of lines that are read in turn. A set holds as many "
        f"lines as it has ways. With one line more, every read misses. {why}",
        wide,
        narrow,
        cell_lines(about or curve.cases[:1], list(drawn), "l1d_misses", "misses"),
        cell_lines(curve.cases, list(drawn), "l1d_misses", "misses"),
    )


def knee_words(dataset: Dataset, machine: str, stride: int) -> tuple[int | None, str]:
    """Return the knee that a machine's L1D should have, and a sentence about it."""
    entry = dataset.catalog.machines.get(machine)
    if entry is None:
        why = dataset.catalog.broken.get(machine, "the machine's file is missing.")
        return None, f"No knee is predicted: {why}"
    cache = entry.cpus[0].l1d
    knee, sets = predicted_knee(cache, stride), sets_in_turn(cache, stride)
    spread = "one set" if sets == 1 else f"{sets} sets in turn"
    return knee, (
        f"The knee is predicted at N = {knee}: {cache.ways} ways, and lines {stride:,} bytes apart "
        f"fall into {spread} of a cache whose ways have {cache.way_size:,} bytes."
    )


def _words(rest: Params) -> str:
    """Return parameters for a heading, each with its name."""
    return ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
        for key, value in rest.items()
    )


def zero_conflict(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure of misses per round by colour of the hot lines, for each cache level."""
    return [
        _zero_conflict(dataset, sweep, f"{name}-{index}")
        for index, sweep in enumerate(sweeps(cases))
    ]


def _zero_conflict(dataset: Dataset, sweep: Sweep, name: str) -> Figure:
    platform = sweep.cases[0].platform
    cache = sweep.level.upper()
    spreads = sweep.spreads(sweep.metric)
    drawn = symbols(dataset.catalog, spreads)
    series = {
        arm: [(float(color), value) for color, value in points.items()]
        for arm, points in sweep.series(sweep.metric).items()
    }
    rows = tuple(
        (
            arm, format_ratio(spreads[arm].best), mean_words(spreads[arm]),
            format_ratio(spreads[arm].worst),
            f"{spreads[arm].measured:,} of {spreads[arm].colors:,}",
        )
        for arm in drawn
    )  # fmt: skip
    described = "; ".join(
        f"{arm}: best {best}, mean {mean}, worst {worst}" for arm, best, mean, worst, _ in rows
    )
    wide, narrow = pictures(
        name,
        f"{cache} misses per round by colour of the hot lines, {platform}, {_words(sweep.rest)}",
        f"{described}.",
        lambda width: draw_lines(
            width,
            series,
            drawn,
            ("colour of the hot lines", f"{cache} misses per round"),
            joined=False,
        ),
    )
    return Figure(
        f"{platform} ({_words(sweep.rest)})",
        f"{cache} misses per round, for each colour that the hot lines can have. Each round reads "
        "the lines that fill one set, then one page of memory that was never written. One zero "
        "page has one colour: it evicts hot lines of that colour, and no others. Several zero "
        "pages spread these misses over all colours. "
        "A mean with ≈ lacks the colours that were not measured.",
        wide,
        narrow,
        telling_cells(sweep.cases, list(drawn), sweep.metric, "misses"),
        cell_lines(sweep.cases, list(drawn), sweep.metric, "misses"),
        SmallTable(("arm", "best", "mean", "worst", "hot colours"), rows),
    )


def zero_scan(dataset: Dataset, cases: Sequence[Case], name: str) -> list[Figure]:
    """Return a figure of misses per round beside a working set, for each cache level."""
    cases = [case for case in cases if {"stride", "working_set"} <= case.params.keys()]
    return [
        _zero_scan(dataset, measured, metric, f"{name}-{index}")
        for index, metric in enumerate(MISSES)
        if (measured := [case for case in cases if case.values(metric)])
    ]


def _zero_scan(dataset: Dataset, cases: Sequence[Case], metric: str, name: str) -> Figure:
    platform = cases[0].platform
    words = f"{metric.removesuffix('_misses').upper()} misses"
    drawn = symbols(dataset.catalog, {arm for case in cases for arm in case.values(metric)})
    bars: dict[str, list[Bar]] = {}
    for case in cases:
        stride = f"every {format_size(case.number('stride'))}"
        bars.setdefault(_beside(case), []).append(Bar(stride, per_round(case, metric)))
    groups = [Group(heading, tuple(members)) for heading, members in bars.items()]
    wide, narrow = pictures(
        name,
        f"{words} per round of reading zero pages, {platform}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, drawn, f"{words} per round"),
    )
    arms = list(drawn)
    rows = tuple(
        (
            f"{group.heading}, {bar.label}",
            *(format_ratio(bar.values[arm]) if arm in bar.values else "-" for arm in arms),
        )
        for group in groups
        for bar in group.bars
    )
    return Figure(
        f"{words}, {platform}",
        f"{words} per round of reading memory that was never written, densely or page by page, "
        "alone and beside a working set. Zero-backed memory keeps one page in the cache, or one "
        "for each colour: misses to the right of stock are the cost of the colours.",
        wide,
        narrow,
        telling_cells(cases, arms, metric, "misses"),
        cell_lines(cases, arms, metric, "misses"),
        SmallTable(("misses per round", *arms), rows),
    )


def _beside(case: Case) -> str:
    size = case.number("working_set")
    return f"beside a working set of {format_size(size)}" if size else "zero pages alone"
