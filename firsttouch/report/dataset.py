# SPDX-License-Identifier: GPL-2.0
"""What a report is drawn from: results grouped into cases, each with its arms side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.arms import ARMS
from firsttouch.errors import UserError
from firsttouch.experiments import Experiment, experiment_names, load_experiment
from firsttouch.results import Reading, Result, read_lines
from firsttouch.sources import REPOSITORY
from firsttouch.summary import summarize

BASE_ARM = "stock"
EXPERIMENTS = REPOSITORY / "experiments"


@dataclass(frozen=True, order=True)
class Setting:
    """Where cells were run: a kernel release on a machine of the catalogue."""

    release: str
    machine: str

    def __str__(self) -> str:
        return f"{self.release} on {self.machine}"


@dataclass(frozen=True)
class Case:
    """One combination of parameters of an experiment in a setting; a result for each arm."""

    setting: Setting
    experiment: Experiment
    params: dict[str, Any]
    arms: dict[str, Result]

    def value(self, arm: str, metric: str) -> float | None:
        """Return what `arm` measured; None if it did not."""
        result = self.arms.get(arm)
        found = result["metrics"].get(metric) if result else None
        return None if found is None else float(found)

    def values(self, metric: str) -> dict[str, float]:
        """Return what each arm measured, for those that did."""
        found = {arm: self.value(arm, metric) for arm in self.arms}
        return {arm: value for arm, value in found.items() if value is not None}

    def command(self, arm: str) -> str:
        """Return the command that runs the cell of `arm` alone."""
        return str(self.arms[arm]["provenance"].get("command", "not recorded"))


@dataclass(frozen=True)
class Dataset:
    """All that a directory holds and this firsttouch can draw.

    `notes` says what it cannot, one sentence each; `superseded` counts the
    results that newer ones of the same cells, from other builds, replace.
    """

    directory: Path
    results: list[Result]
    cases: list[Case]
    summary: dict[str, Any]
    experiments: dict[str, Experiment]
    notes: list[str]
    superseded: int

    def settings(self) -> list[Setting]:
        """Return the settings, in order of release and machine."""
        return sorted({case.setting for case in self.cases})

    def of(self, setting: Setting, *names: str) -> list[Case]:
        """Return the cases of the named experiments in a setting."""
        return [
            case for case in self.cases if case.setting == setting and case.experiment.name in names
        ]

    def find(self, setting: Setting, name: str, metric: str, **params: Any) -> Case | None:
        """Return the largest case with these parameters where both arms measured `metric`."""
        found = [
            case
            for case in self.of(setting, name)
            if params.items() <= case.params.items()
            and {BASE_ARM, case.experiment.compare} <= case.values(metric).keys()
        ]
        return max(found, key=lambda case: int(case.params.get("size", 0)), default=None)


def read_dataset(
    directory: Path, current: Collection[str] = (), folder: Path = EXPERIMENTS
) -> Dataset:
    """Return what `directory`/results.jsonl holds; `current` and `folder` as for draw_report.

    Raises UserError if there is no such file, or nothing in it can be drawn.
    """
    if not directory.is_dir():
        raise UserError(
            f"{directory} is not a directory: give one that `firsttouch lab --out` has filled."
        )
    file = directory / "results.jsonl"
    reading = read_lines(file)
    notes = list(_line_notes(file, reading))
    experiments, unknown = _experiments(reading.results, folder)
    notes += unknown
    known = [result for result in reading.results if result["experiment"] in experiments]
    groups = _groups(known, current)
    drawn = [result for arms in groups.values() for result in arms.values()]
    if not drawn:
        reading.refuse_foreign(file)
        reason = notes[0] if notes else f"{file} is empty"
        raise UserError(
            f"{reason.removesuffix('.')}: nothing is left to draw, run "
            f"`firsttouch lab --out {directory}` first."
        )
    cases = sorted((_case(key, arms, experiments) for key, arms in groups.items()), key=_order)
    ordered = [result for case in cases for result in case.arms.values()]
    used = {case.experiment.name: case.experiment for case in cases}
    return Dataset(
        directory, ordered, cases, summarize(ordered, used), experiments, notes,
        len(known) - len(drawn),
    )  # fmt: skip


def _line_notes(file: Path, reading: Reading) -> Iterator[str]:
    if reading.broken:
        lines = "1 line that is" if reading.broken == 1 else f"{reading.broken:,} lines that are"
        yield f"{file} holds {lines} cut off or no result."
    for version, lines_of in reading.foreign.items():
        yield f"{file} holds {lines_of:,} lines of schema {version}, which are not drawn."


def _experiments(
    results: Iterable[Result], folder: Path
) -> tuple[dict[str, Experiment], list[str]]:
    """Return the experiments of `folder`, and what is wrong with those of the results."""
    loaded = [load_experiment(name, folder) for name in experiment_names(folder)]
    loaded.sort(key=lambda experiment: (experiment.order, experiment.name))
    found = {experiment.name: experiment for experiment in loaded}
    counts: dict[str, int] = {}
    for result in results:
        if result["experiment"] not in found:
            counts[result["experiment"]] = counts.get(result["experiment"], 0) + 1
    return found, [
        f"{folder.name}/{name}.toml is missing, so {count:,} of its results are not drawn."
        for name, count in counts.items()
    ]


_Key = tuple[Setting, str, tuple[tuple[str, Any], ...]]


def _groups(results: Iterable[Result], current: Collection[str]) -> dict[_Key, dict[str, Result]]:
    """Return a result for each arm of each case: the current run's, or else the last."""
    groups: dict[_Key, dict[str, Result]] = {}
    for result in results:
        setting = Setting(result["release"], result["machine"])
        key = (setting, result["experiment"], tuple(result["params"].items()))
        arms = groups.setdefault(key, {})
        standing = arms.get(result["arm"])
        if standing and standing["cell"] in current and result["cell"] not in current:
            continue
        arms[result["arm"]] = result
    return groups


def _case(key: _Key, arms: dict[str, Result], experiments: Mapping[str, Experiment]) -> Case:
    setting, name, params = key
    ordered = {arm: arms[arm] for arm in sorted(arms, key=arm_order)}
    for result in ordered.values():
        result.setdefault("reasons", {})
    return Case(setting, experiments[name], dict(params), ordered)


def arm_order(arm: str) -> tuple[int, str]:
    """Return the place of an arm among others: as arms.py has them, foreign ones last."""
    known = list(ARMS)
    return (known.index(arm) if arm in known else len(known), arm)


def _order(case: Case) -> tuple[Any, ...]:
    """Return the place of a case: the order in which its experiment lists the values."""
    places = []
    for name, listed in case.experiment.parameters.items():
        value = case.params.get(name)
        place = listed.index(value) if value in listed else len(listed)
        places.append((place, value if isinstance(value, int) else 0, str(value)))
    return (case.setting, case.experiment.order, case.experiment.name, places)
