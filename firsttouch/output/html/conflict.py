# SPDX-License-Identifier: GPL-2.0
"""Cache sets in conflict: the knee of set-conflict, and zero-conflict over all hot colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from firsttouch.errors import UserError
from firsttouch.catalog.machines import load_machine
from firsttouch.analysis.dataset import Case, Dataset, Setting, arm_order
from firsttouch.output.html.figure import Figure, Table, cell_lines, pictures, telling_cells
from firsttouch.output.labels import ratio_label
from firsttouch.output.html.scales import Scale, round_up, tick_label
from firsttouch.output.html.svg import CHARACTER, Drawing

_PAGE = 4096
_HEIGHT, _TOP, _LEFT, _RIGHT, _BOTTOM = 300.0, 52.0, 44.0, 12.0, 46.0

Series = Mapping[str, Sequence[tuple[float, float]]]


def set_conflict_figures(dataset: Dataset, setting: Setting, name: str) -> list[Figure]:
    """Return misses per read against the lines read, a figure for each way of reading."""
    cases = [
        case
        for case in dataset.of(setting, "set-conflict")
        if {"n", "rounds"} <= case.params.keys() and case.values("l1d_misses")
    ]
    return [
        _set_conflict(alike, rest, f"{name}-{index}")
        for index, (rest, alike) in enumerate(_but_for("n", cases).items())
    ]


def _but_for(name: str, cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return the cases that differ in nothing but parameter `name`, by the others in words."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        rest = {key: value for key, value in case.params.items() if key != name}
        words = ", ".join(
            f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
            for key, value in rest.items()
        )
        groups.setdefault(words, []).append(case)
    return groups


def _set_conflict(cases: list[Case], rest: str, name: str) -> Figure:
    setting = cases[0].setting
    series: dict[str, list[tuple[float, float]]] = {}
    for case in sorted(cases, key=lambda case: int(case.params["n"])):
        reads = int(case.params["n"]) * int(case.params["rounds"])
        for arm, misses in case.values("l1d_misses").items():
            series.setdefault(arm, []).append((float(case.params["n"]), misses / reads))
    knee, why = predicted_knee(setting.machine, int(cases[0].params.get("stride", _PAGE)))
    first = next(iter(series))
    described = ", ".join(f"{n:.0f}: {ratio_label(misses)}" for n, misses in series[first])
    top = max(misses for points in series.values() for _, misses in points)
    wide, narrow = pictures(
        name,
        f"L1D misses per read against the number of lines read, {setting}",
        f"{why} Misses per read by lines read, {first}: {described}.",
        lambda width: draw_curves(
            width,
            series,
            max(1.0, top),
            ("lines read in each round (N)", "misses per read"),
            knee=knee,
        ),
    )
    arms = sorted(series, key=arm_order)
    return Figure(
        f"{setting} ({rest})",
        f"L1D misses per read, by the number of lines that are read in turn. {why}",
        wide,
        narrow,
        cell_lines(_about(cases, knee), arms, "l1d_misses", "misses"),
        cell_lines(cases, arms, "l1d_misses", "misses"),
    )


def _about(cases: list[Case], knee: int | None) -> list[Case]:
    """Return the cases on either side of the knee; the first where there is none."""
    return [case for case in cases if knee and case.params["n"] in (knee, knee + 1)] or cases[:1]


def predicted_knee(machine: str, stride: int) -> tuple[int | None, str]:
    """Return the most lines, `stride` bytes apart, that an LRU L1D holds; and that in words.

    Lines a way's size apart fall into one set; nearer ones share the sets
    out, and the first set that gets a line more than it has ways misses.
    """
    try:
        cache = load_machine(machine).cpus[0].l1d
    except UserError as error:
        return None, f"No knee is predicted: {error}"
    sets = max(1, cache.way_size // stride)
    knee = cache.ways * sets
    spread = "one set" if sets == 1 else f"{sets} sets in turn"
    return knee, (
        f"The knee is predicted at N = {knee}: {cache.ways} ways, and lines {stride:,} bytes apart "
        f"fall into {spread} of a cache whose ways have {cache.way_size:,} bytes."
    )


def draw_curves(
    width: float,
    series: Series,
    top: float,
    axes: tuple[str, str],
    *,
    knee: int | None = None,
    joined: bool = True,
) -> Drawing:
    """Return values against a whole number; a line marks the `knee`.

    `joined`: what was measured is joined along the axis. Otherwise its
    numbers only name things, and the arms are joined at each of them.
    """
    drawing = Drawing(width, _HEIGHT)
    arms = sorted(series, key=arm_order)
    drawing.legend(0, 16, arms)
    drawing.text(0, 38, f"↑ {axes[1]}", "t dim")
    numbers = [x for points in series.values() for x, _ in points]
    low, high = min(numbers), max(numbers)
    across = Scale(low, max(high, low + 1), _LEFT + 10, width - _RIGHT - 10)
    # What lies a hair above a round number needs no axis of twice its height.
    up = Scale(0, round_up(top * 0.98), _HEIGHT - _BOTTOM, _TOP + 22)
    for tick in up.ticks(5):
        drawing.line(_LEFT, up.at(tick), width - _RIGHT, up.at(tick), "grid")
        drawing.text(_LEFT - 6, up.at(tick) + 4, tick_label(tick), "t dim", "end")
    for tick in across.ticks(14 if width > 500 else 8):
        if tick == round(tick):
            drawing.text(across.at(tick), _HEIGHT - _BOTTOM + 18, f"{tick:,.0f}", "t dim", "middle")
    drawing.text(width - _RIGHT, _HEIGHT - 8, axes[0], "t dim", "end")
    if knee is not None and low <= knee <= high:
        x = across.at(knee)
        drawing.line(x, _TOP - 6, x, _HEIGHT - _BOTTOM, "knee")
        words = f"knee predicted: N = {knee}"
        room = CHARACTER * len(words)
        right = x + 6 + room < width
        drawing.text(x + 6 if right else x - 6, _TOP + 2, words, "t", "start" if right else "end")
    for index, arm in enumerate(arms if joined else ()):
        drawing.curve([(across.at(x), up.at(y)) for x, y in series[arm]], f"curve c{index}")
    for place in sorted(set(numbers)) if not joined else ():
        values = [y for points in series.values() for x, y in points if x == place]
        x = across.at(place)
        drawing.line(x, up.at(min(values)), x, up.at(max(values)), "join")
    room = (across.end - across.start) / (across.high - across.low)
    for arm in arms:
        for x, y in series[arm]:
            tip = f"{arm}, {x:,.0f}: {ratio_label(y)}"
            drawing.mark(arm, across.at(x), up.at(y), tip, room)
    return drawing


def zero_conflict_figures(dataset: Dataset, setting: Setting, name: str) -> list[Figure]:
    """Return misses per round against the hot lines' colour, a figure for each cache level."""
    return [
        _zero_conflict(found, f"{name}-{index}")
        for index, found in enumerate(sweeps(dataset, setting))
    ]


@dataclass(frozen=True)
class Sweep:
    """Cases that differ in the hot lines' colour alone; `rest` are their other parameters."""

    level: str
    rest: str
    cases: list[Case]

    @property
    def metric(self) -> str:
        """The metric that the lines of this cache level miss by."""
        return f"{self.level}_misses"


def sweeps(dataset: Dataset, setting: Setting) -> list[Sweep]:
    """Return the sweeps of a setting: the L2's first, those of most rounds first."""
    found = []
    for level in ("l2", "l1d"):
        cases = [
            case
            for case in dataset.of(setting, "zero-conflict")
            if str(case.params.get("level")) == level
            and {"hot_color", "rounds"} <= case.params.keys()
        ]
        cases.sort(key=lambda case: -int(case.params["rounds"]))
        found += [Sweep(level, *group) for group in _but_for("hot_color", cases).items()]
    return [one for one in found if any(case.values(one.metric) for case in one.cases)]


def sweep(cases: Sequence[Case], metric: str) -> dict[str, list[tuple[float, float]]]:
    """Return (hot colour, misses per round) for each arm, in order of colour."""
    series: dict[str, list[tuple[float, float]]] = {}
    for case in sorted(cases, key=lambda case: int(case.params["hot_color"])):
        for arm, misses in case.values(metric).items():
            series.setdefault(arm, []).append(
                (float(case.params["hot_color"]), misses / int(case.params["rounds"]))
            )
    return {arm: series[arm] for arm in sorted(series, key=arm_order)}


def mean_label(points: Sequence[tuple[float, float]], colors: int) -> str:
    """Return the mean over hot colours; marked as about right if some were not measured."""
    about = "" if len(points) == colors else "≈ "
    return about + ratio_label(fmean(value for _, value in points))


def _zero_conflict(found: Sweep, name: str) -> Figure:
    cases, metric = found.cases, found.metric
    setting = cases[0].setting
    series = sweep(cases, metric)
    cache = found.level.upper()
    rows = []
    for arm, points in series.items():
        misses = [value for _, value in points]
        mean = mean_label(points, len(cases))
        measured = f"{len(misses):,} of {len(cases):,}"
        rows.append((arm, ratio_label(min(misses)), mean, ratio_label(max(misses)), measured))
    top = max(value for points in series.values() for _, value in points)
    described = "; ".join(
        f"{arm}: best {best}, mean {mean}, worst {worst}" for arm, best, mean, worst, _ in rows
    )
    wide, narrow = pictures(
        name,
        f"{cache} misses per round for each colour of the hot lines, {setting}, {found.rest}",
        f"{described}.",
        lambda width: draw_curves(
            width,
            series,
            top,
            ("colour of the hot lines", f"{cache} misses per round"),
            joined=False,
        ),
    )
    arms = list(series)
    return Figure(
        f"{setting} ({found.rest})",
        f"{cache} misses per round, for each colour that the hot lines can have. Each round reads "
        "the lines that fill one set, then one page of memory that was never written. "
        "A mean with ≈ lacks the colours that were not measured.",
        wide,
        narrow,
        telling_cells(cases, arms, metric, "misses"),
        cell_lines(cases, arms, metric, "misses"),
        Table(("arm", "best", "mean", "worst", "hot colours"), tuple(rows)),
    )
