# SPDX-License-Identifier: GPL-2.0
"""A case: one combination of parameters of an experiment, with its arms side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.analysis.measurement import Measurement
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.quantities import parse_size
from firsttouch.tables import Json

# The size of a page where a cell asks for none, and of a base page in every guest.
BASE_PAGE = "4k"


@dataclass(frozen=True, order=True)
class Platform:
    """Where cells ran: a kernel release on a machine of the catalogue, in a setting or in none."""

    release: str
    machine: str
    setting: str = ""

    def __str__(self) -> str:
        return f"{self.release} on {self.machine}{self.setting and f', {self.setting}'}"


@dataclass(frozen=True)
class Case:
    """One combination of parameters of an experiment on a platform; a measurement for each arm.

    All of them ran in the same `layout`.
    """

    platform: Platform
    experiment: Experiment
    params: Params
    arms: Mapping[str, Measurement]
    layout: int = 0

    def value(self, arm: str, metric: str) -> float | None:
        """Return the value of `metric` on `arm`; None if it was not measured."""
        return self.arms[arm].metrics.get(metric) if arm in self.arms else None

    def values(self, metric: str) -> dict[str, float]:
        """Return the value of `metric` on each arm that measured it."""
        values = {arm: self.value(arm, metric) for arm in self.arms}
        return {arm: value for arm, value in values.items() if value is not None}

    def pair(self) -> tuple[str, str] | None:
        """Return the two arms whose change is reported, the base first; None for fewer than two.

        They are stock and the arm that the experiment compares. If that arm is
        missing, the last arm takes its place; if stock is missing, the first
        arm does. Arms have the catalogue's order.
        """
        arms = list(self.arms)
        if BASE in arms and self.experiment.compare in arms and self.experiment.compare != BASE:
            return BASE, self.experiment.compare
        others = [arm for arm in arms if arm != BASE]
        if BASE in arms and others:
            return BASE, others[-1]
        return (others[0], others[-1]) if len(others) > 1 else None

    def command(self, arm: str) -> str:
        """Return the command that runs only the cell of `arm`."""
        return self.arms[arm].result.provenance.command

    def document(self) -> dict[str, Json]:
        """Return what names the case, for programs."""
        return {
            "release": self.platform.release,
            "machine": self.platform.machine,
            "experiment": self.experiment.name,
            "params": dict(self.params),
        }

    def number(self, name: str) -> int:
        """Return the value of a whole-number parameter; 0 if it is missing or not a number."""
        value = self.params.get(name, 0)
        return value if isinstance(value, int) else 0

    def pages(self, of: Value | None = None) -> float | None:
        """Return how many pages are touched, of size `of` or the size in ``page``.

        Returns None without a ``size``.
        """
        try:
            size = parse_size(of or self.params.get("page", BASE_PAGE))
            return self.number("size") / size or None
        except ValueError:
            return None

    def per_page(self, arm: str, metric: str) -> float | None:
        """Return `metric` per page of the size in ``page``; None if it was not measured."""
        value, pages = self.value(arm, metric), self.pages()
        return None if value is None or pages is None else value / pages
