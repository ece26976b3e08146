# SPDX-License-Identifier: GPL-2.0
"""The claims: each published figure beside what was measured for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.catalog.experiments import Experiment, Published
from firsttouch.quantities import format_change, format_count
from firsttouch.analysis.dataset import BASE_ARM, Dataset, Setting
from firsttouch.output.labels import cell_name, value_label

_SHOWN_ARM = "on"
# A sign as well as a colour.
SIGNS = {
    "reproduced": "✓",
    "exceeded": "▲",
    "not reproduced": "✗",
    "no claim": "·",
    "not measured": "·",
}


@dataclass(frozen=True)
class Claim:
    """One line of the table: a published figure and one cell that answers it.

    Where no cell does, `setting` is None and `command` measures one.
    """

    figure: str
    source: str
    cell: str
    stock: str
    other: str
    change: str
    verdict: str
    setting: Setting | None = None
    command: str = ""

    @property
    def sign(self) -> str:
        """The verdict as a sign."""
        return SIGNS[self.verdict]


def list_claims(dataset: Dataset) -> list[Claim]:
    """Return every figure the experiments know, measured or not, in order of experiments."""
    claims: list[Claim] = []
    for experiment in dataset.experiments.values():
        for published in experiment.published:
            measured = list(_measured(dataset, experiment, published))
            claims += measured or [_not_measured(experiment, published)]
    return claims


def _measured(dataset: Dataset, experiment: Experiment, published: Published) -> Iterator[Claim]:
    rows = dataset.summary["rows"]
    settings = {(row["release"], row["machine"]) for row in rows if row["published"]}
    for row in rows:
        if row["experiment"] != experiment.name or row["metric"] != published.metric:
            continue
        # The first claim that matches is the row's own: see Experiment.claim.
        if experiment.claim(row["metric"], row["params"]) != published:
            continue
        where = f", {row['release']} on {row['machine']}" if len(settings) > 1 else ""
        yield Claim(
            published.figure,
            published.source,
            f"{cell_name(experiment, row['params'])}{where}: {row['metric']}",
            _value(row["arms"].get(BASE_ARM), row["unit"]),
            _value(row["arms"].get(experiment.compare), row["unit"])
            + ("" if experiment.compare == _SHOWN_ARM else f" ({experiment.compare})"),
            format_change(row["change_percent"]),
            "not measured" if row["verdict"] == "no claim" else row["verdict"],
            Setting(row["release"], row["machine"]),
        )


def _value(value: float | None, unit: str) -> str:
    """Return a value whose metric is named beside it: counts need no unit, times do."""
    if value is None:
        return "-"
    return value_label(value, unit) if unit == "ns" else format_count(value)


def _not_measured(experiment: Experiment, published: Published) -> Claim:
    settings = "".join(f" --set {name}={value}" for name, value in published.where.items())
    return Claim(
        published.figure,
        published.source,
        experiment.name,
        *("-",) * 3,
        "not measured",
        command=f"firsttouch lab --experiment {experiment.name}{settings}",
    )
