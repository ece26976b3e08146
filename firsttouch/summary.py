# SPDX-License-Identifier: GPL-2.0
"""The summary: arms side by side, against each other and against what was published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firsttouch.cells import SCHEMA
from firsttouch.experiments import Derived, Experiment, Published
from firsttouch.results import Result

Row = dict[str, Any]
_Key = tuple[str, str, str, tuple[tuple[str, Any], ...]]


def summarize(results: Iterable[Result], experiments: Mapping[str, Experiment]) -> dict[str, Any]:
    """Return summary.json's contents: a row per (release, machine, experiment, params, metric).

    `results` come in the order in which they are to be reported. It holds
    nothing that varies between hosts or runs.
    """
    groups: dict[_Key, dict[str, Result]] = {}
    for result in results:
        key = (
            result["release"], result["machine"], result["experiment"],
            tuple(result["params"].items()),
        )  # fmt: skip
        groups.setdefault(key, {})[result["arm"]] = result
    rows: list[Row] = []
    unavailable: list[Row] = []
    for key, members in groups.items():
        release, machine, name, params = key
        experiment = experiments[name]
        head = {
            "release": release,
            "machine": machine,
            "experiment": name,
            "params": dict(params),
        }
        for metric in experiment.metrics:
            arms = {
                arm: member["metrics"][metric.name]
                for arm, member in members.items()
                if metric.name in member["metrics"]
            }
            reasons = {
                arm: member["reasons"].get(metric.name, "not reported")
                for arm, member in members.items()
                if metric.name not in member["metrics"]
            }
            if reasons:
                unavailable.append({**head, "metric": metric.name, "reasons": reasons})
            if arms:
                rows.append({**head, **_row(experiment, metric.name, metric.unit, arms, params)})
        for figure in experiment.derived:
            floor = groups.get((release, machine, name, _floor_params(figure, params)), {})
            arms = _derive(figure, members, floor)
            if arms and (floor is not members or not figure.above):
                rows.append({**head, **_row(experiment, figure.name, figure.unit, arms, params)})
    return {"schema": SCHEMA, "rows": rows, "unavailable": unavailable}


def _floor_params(
    figure: Derived, params: tuple[tuple[str, Any], ...]
) -> tuple[tuple[str, Any], ...]:
    return tuple((name, figure.above.get(name, value)) for name, value in params)


def _derive(
    figure: Derived, members: Mapping[str, Result], floor: Mapping[str, Result]
) -> dict[str, float]:
    """Return the figure for each arm that has all that it is made from."""
    arms = {}
    for arm, member in members.items():
        base = floor.get(arm, {"metrics": {}})["metrics"]
        value, per = member["metrics"].get(figure.of), base.get(figure.per)
        if figure.above and value is not None:
            value = None if figure.of not in base else value - base[figure.of]
        if value is not None and per:
            arms[arm] = round(value / per, 2)
    return arms


def _row(
    experiment: Experiment,
    metric: str,
    unit: str,
    arms: dict[str, float],
    params: tuple[tuple[str, Any], ...],
) -> Row:
    change = change_percent(arms.get("stock"), arms.get(experiment.compare))
    claim = experiment.claim(metric, dict(params))
    return {
        "metric": metric,
        "unit": unit,
        "arms": arms,
        "change_percent": change,
        "published": {"figure": claim.figure, "source": claim.source} if claim else None,
        "verdict": verdict(claim, change),
    }


def change_percent(stock: float | None, other: float | None) -> float | None:
    """Return by how many per cent `other` differs from `stock`; None where that has no meaning."""
    if stock is None or other is None:
        return None
    if stock == 0:
        return 0.0 if other == 0 else None
    return round(100 * (other - stock) / stock, 4)


def verdict(claim: Published | None, change: float | None) -> str:
    """Return what the measured change says of a published claim.

    ``exceeded`` means further in the direction claimed than the tolerance
    allows; a claim that could not be measured counts as none.
    """
    if claim is None or change is None:
        return "no claim"
    if claim.at_most is not None:
        return "reproduced" if change <= claim.at_most else "not reproduced"
    assert claim.change is not None
    if abs(change - claim.change) <= claim.tolerance:
        return "reproduced"
    further = change < claim.change if claim.change < 0 else change > claim.change
    return "exceeded" if further and claim.change else "not reproduced"
