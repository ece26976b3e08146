# SPDX-License-Identifier: GPL-2.0
"""Charts of the cache experiments: set-conflict and zero-conflict."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.analysis.cache_statistics import (
    Curve,
    Sweep,
    conflict_curves,
    predicted_knee,
    sets_in_turn,
    sweeps,
)
from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.experiments import Params
from firsttouch.output.answers import mean_words
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.figure import (
    Figure,
    SmallTable,
    cell_lines,
    pictures,
    telling_cells,
)
from firsttouch.output.html.lines import draw_lines
from firsttouch.quantities import format_ratio


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
