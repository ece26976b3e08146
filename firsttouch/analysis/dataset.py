# SPDX-License-Identifier: GPL-2.0
"""The dataset: results as cases with their arms side by side, and a row for each figure.

`make_dataset` makes it once. Terminal, report, comparison and summary.json all
show the same dataset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import BASE_PAGE, Case, Measurement, Platform, measure
from firsttouch.catalog.arms import BASE, tried_arm
from firsttouch.catalog.experiments import (
    BASE_PAGES,
    PAGES,
    Catalog,
    Derived,
    Published,
    Value,
    load_catalog,
)
from firsttouch.errors import UserError
from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import Result, file_of_results, read_results
from firsttouch.tables import names_in

# The verdict on a published time: instructions are not time, and a guest's clock counts
# instructions. And that on a change that no published figure is about.
NOT_JUDGED, NOT_PUBLISHED = "cannot be judged by counts", "no claim"


@dataclass(frozen=True)
class Distribution:
    """One figure in several layouts; `values` are in the order of the layouts, one or more."""

    values: tuple[float, ...]

    @property
    def spread(self) -> tuple[float, float, float]:
        return min(self.values), float(median(self.values)), max(self.values)


def _distribution(values: Iterable[float | None]) -> Distribution | None:
    numbers = tuple(value for value in values if value is not None)
    return Distribution(numbers) if len(numbers) > 1 else None


_Key = tuple[Platform, str, tuple[tuple[str, Value], ...]]


@dataclass(frozen=True)
class Row:
    """A figure across arms: a metric, measured or derived, of one case.

    `arms` has the arms with this figure. `change_percent` is the change of the
    second arm of the case's pair against the first; None if it is undefined.
    `verdict` judges the `published` figure only if the pair is stock and the
    arm that the experiment compares. `layouts` has this row in each layout of
    the case that was measured, in order, the row itself first; it is empty if
    that is the only one.
    """

    case: Case
    metric: str
    unit: str
    arms: Mapping[str, float]
    change_percent: float | None
    published: Published | None
    verdict: str
    layouts: tuple[Row, ...] = ()

    def values_over(self, arm: str) -> Distribution | None:
        return _distribution(layout.arms.get(arm) for layout in self.layouts)

    def changes_over(self, arm: str | None = None) -> Distribution | None:
        """Return the changes in per cent, of `arm` against stock or of the row's pair of arms.

        Returns None if fewer than two layouts have one.
        """
        return _distribution(
            change_percent(layout.arms.get(BASE), layout.arms.get(arm))
            if arm
            else layout.change_percent
            for layout in self._comparable()
        )

    def holds_in(self) -> tuple[int, int] | None:
        """Return in how many layouts the verdict is the row's, and of how many.

        Returns None if nothing is judged.
        """
        if self.verdict in (NOT_PUBLISHED, NOT_JUDGED) or not self.layouts:
            return None
        same = [layout.verdict == self.verdict for layout in self._comparable()]
        return sum(same), len(same)

    def _comparable(self) -> list[Row]:
        return [layout for layout in self.layouts if layout.case.pair() == self.case.pair()]


@dataclass(frozen=True)
class Gap:
    """A metric of a case that some arms lack, and the reason for each of these arms."""

    case: Case
    metric: str
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Dataset:
    """All figures of some results. `notes` has a sentence for each thing that cannot be shown.

    A case, its rows and its gaps are those of its first layout; `further` has
    the same cases in other layouts.
    """

    catalog: Catalog
    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    further: tuple[Case, ...] = ()

    @property
    def quick(self) -> bool:
        return any(result.quick for result in self.results())

    def results(self) -> list[Result]:
        cases = (*self.cases, *self.further)
        return [measured.result for case in cases for measured in case.arms.values()]

    def platforms(self) -> list[Platform]:
        return sorted({case.platform for case in self.cases})

    def arms(self, cases: Iterable[Case]) -> list[str]:
        return sorted({arm for case in cases for arm in case.arms}, key=self.catalog.arm_order)

    def of(self, platform: Platform, *names: str) -> list[Case]:
        return [
            case
            for case in self.cases
            if case.platform == platform and case.experiment.name in names
        ]

    def only(self, names: Collection[str]) -> Dataset:
        return replace(
            self,
            cases=tuple(case for case in self.cases if case.experiment.name in names),
            rows=tuple(row for row in self.rows if row.case.experiment.name in names),
            gaps=tuple(gap for gap in self.gaps if gap.case.experiment.name in names),
            further=tuple(case for case in self.further if case.experiment.name in names),
        )

    def find(
        self, platform: Platform, name: str, metric: str, params: Mapping[str, Value]
    ) -> Case | None:
        """Return the largest case with these parameters whose two compared arms have `metric`."""
        candidates = [
            case
            for case in self.of(platform, name)
            if params.items() <= case.params.items()
            and {BASE, case.experiment.compare} <= case.values(metric).keys()
        ]
        return max(candidates, key=lambda case: case.number("size"), default=None)

    def published(self) -> list[Row]:
        """Return the rows that answer a published figure, in the order of these figures."""
        return [
            row
            for experiment in self.catalog.experiments.values()
            for published in experiment.published
            for row in self.rows
            if row.case.experiment.name == experiment.name
            and row.published == published
            and row.verdict != NOT_PUBLISHED
        ]


def make_dataset(results: Iterable[Result], catalog: Catalog, notes: Iterable[str] = ()) -> Dataset:
    """Return the dataset of `results`; `notes` gets what the catalogue lacks or cannot read."""
    said = list(notes)
    groups: dict[tuple[_Key, int], dict[str, Measurement]] = {}
    unknown: dict[str, int] = {}
    for result in results:
        cell = result.cell
        experiment = catalog.experiments.get(cell.experiment)
        if experiment is None:
            unknown[cell.experiment] = unknown.get(cell.experiment, 0) + 1
            continue
        try:
            measured = measure(result, experiment)
        except UserError as error:
            said.append(str(error))
            continue
        platform = Platform(cell.release, cell.machine, cell.setting)
        key = (platform, cell.experiment, tuple(cell.params.items()))
        groups.setdefault((key, cell.layout), {})[cell.arm] = measured
    for name, count in unknown.items():
        said.append(f"experiments/{name}.toml is missing: {count:,} of its results are not shown.")
    cases = sorted(
        (
            Case(
                platform,
                catalog.experiments[name],
                dict(params),
                {arm: arms[arm] for arm in sorted(arms, key=catalog.arm_order)},
                layout,
            )
            for ((platform, name, params), layout), arms in groups.items()
        ),
        key=lambda case: (
            case.platform, case.experiment.order, case.experiment.name,
            _place(case), case.layout,
        ),
    )  # fmt: skip
    firsts: dict[_Key, int] = {}
    for case in cases:
        firsts.setdefault(_key(case), case.layout)
    shown = [case for case in cases if case.layout == firsts[_key(case)]]
    further = [case for case in cases if case.layout != firsts[_key(case)]]
    rows, gaps = _rows(cases)
    return Dataset(
        catalog,
        tuple(shown),
        tuple(_with_layouts(rows, firsts)),
        tuple(gap for gap in gaps if gap.case.layout == firsts[_key(gap.case)]),
        tuple(said),
        tuple(further),
    )


def _place(case: Case) -> list[tuple[int, int, str]]:
    """Return the sort key of a case: values of parameters sort in the order of their list."""
    places = []
    for name, listed in case.experiment.parameters.items():
        value = case.params.get(name, "")
        place = listed.index(value) if value in listed else len(listed)
        places.append((place, value if isinstance(value, int) else 0, str(value)))
    return places


def _key(case: Case) -> _Key:
    return case.platform, case.experiment.name, tuple(case.params.items())


def _with_layouts(rows: Iterable[Row], firsts: Mapping[_Key, int]) -> Iterable[Row]:
    """Return the rows of each case's first layout, each with those of all its layouts."""
    same: dict[tuple[_Key, str], list[Row]] = {}
    for row in rows:
        same.setdefault((_key(row.case), row.metric), []).append(row)
    for (key, _), (row, *others) in same.items():
        if row.case.layout == firsts[key]:
            yield replace(row, layouts=(row, *others)) if others else row


def read_dataset(place: Path) -> Dataset:
    """Return the dataset of what `read_results` finds."""
    results = read_results(place)
    machines = {result.cell.machine for result in results}
    tried = {result.cell.arm: result.provenance.tried for result in results}
    # All experiments: the report names what was not measured, and the command for it.
    catalog = load_catalog(names_in(EXPERIMENTS), machines, tried)
    # Arms that were tried, or are in a file of others.
    unknown = [(name, words) for name, words in tried.items() if words or name not in catalog.arms]
    catalog = catalog.adding(tried_arm(arm, n, words) for n, (arm, words) in enumerate(unknown))
    dataset = make_dataset(results, catalog)
    if not dataset.cases:
        reason = dataset.notes[0] if dataset.notes else f"{file_of_results(place)} is empty"
        raise UserError(
            f"{reason.removesuffix('.')}: there are no results to show; give those of a run that "
            "has measured counts."
        )
    return dataset


def _rows(cases: Iterable[Case]) -> tuple[list[Row], list[Gap]]:
    by_params = {(_key(case), case.layout): case for case in cases}
    rows, gaps = [], []
    for ((platform, name, _), layout), case in by_params.items():
        experiment = case.experiment
        figures: list[tuple[str, str, dict[str, float]]] = []
        for metric in experiment.metrics:
            figures.append((metric.name, metric.unit, case.values(metric.name)))
            reasons = {
                arm: measured.missing.get(metric.name, "not reported")
                for arm, measured in case.arms.items()
                if metric.name not in measured.metrics
            }
            if reasons:
                gaps.append(Gap(case, metric.name, reasons))
        for derived in experiment.derived:
            at_floor = {name: derived.above.get(name, value) for name, value in case.params.items()}
            floor = by_params.get(((platform, name, tuple(at_floor.items())), layout))
            if floor is not case or not derived.above:
                figures.append((derived.name, derived.unit, _derive(derived, case, floor)))
        for figure, unit, arms in figures:
            if arms:
                published = _claim(case, figure)
                pair = case.pair()
                change = change_percent(arms.get(pair[0]), arms.get(pair[1])) if pair else None
                said = verdict(published, change if pair == (BASE, experiment.compare) else None)
                rows.append(Row(case, figure, unit, arms, change, published, said))
    return rows, gaps


def _claim(case: Case, metric: str) -> Published | None:
    """Return the published figure about `metric` of a case, if any."""
    for published in case.experiment.published:
        if published.metric == metric and published.where.items() <= case.params.items():
            return published
    return None


def verdict(published: Published | None, change: float | None) -> str:
    """Return the verdict on a published figure.

    ``exceeded`` means that the change goes further in the published direction
    than the tolerance allows. Without a measured change the verdict is
    NOT_PUBLISHED. A time is not judged.
    """
    if published is None or change is None:
        return NOT_PUBLISHED
    if published.time:
        return NOT_JUDGED
    claimed = published.change_percent
    # 0 claims that there is no regression.
    off = change - claimed if claimed else max(change, 0)
    if abs(off) <= published.tolerance:
        return "reproduced"
    return "exceeded" if off * claimed > 0 else "not reproduced"


def _derive(figure: Derived, case: Case, floor: Case | None) -> dict[str, float]:
    arms = {}
    for arm in case.arms:
        value = case.value(arm, figure.of)
        base = floor.value(arm, figure.of) if floor else None
        if figure.per in (PAGES, BASE_PAGES):
            per = case.pages(BASE_PAGE if figure.per == BASE_PAGES else None)
        else:
            per = floor.value(arm, figure.per) if floor else None
        if figure.above and value is not None:
            value = None if base is None else value - base
        if value is not None and per:
            arms[arm] = value / per
    return arms


class Spread(NamedTuple):
    """Misses of a cache per round of ``zero-conflict``, over the `colors` of the hot lines."""

    level: str
    colors: int
    arm: str
    mean: float
    worst: float


def spreads(dataset: Dataset, platform: Platform) -> list[Spread]:
    """Return the spread of each arm in the cache of which the hot lines fill a set, L2 first.

    An arm that lacks a colour has none: it might be the worst.
    """
    swept: dict[str, list[Case]] = {}
    for case in dataset.cases:
        if (case.platform, case.experiment.runs) == (platform, "zero-conflict"):
            rest = str({key: value for key, value in case.params.items() if key != "hot_color"})
            swept.setdefault(rest, []).append(case)
    found = []
    for cases in swept.values():
        level, rounds = str(cases[0].params.get("level", "")), cases[0].number("rounds")
        for arm in dataset.arms(cases):
            misses = [case.value(arm, f"{level}_misses") for case in cases]
            each = [count / rounds for count in misses if count is not None and rounds > 0]
            if len(each) == len(cases):
                found.append(Spread(level.upper(), len(each), arm, fmean(each), max(each)))
    return sorted(found, key=lambda spread: spread.level != "L2")
