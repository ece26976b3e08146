# SPDX-License-Identifier: GPL-2.0
"""The entries of the catalogue that a run or a set of results is about, each loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from firsttouch.catalog.arms import Arm, load_arm
from firsttouch.catalog.experiments import Experiment, load_experiment
from firsttouch.catalog.machines import Machine, load_machine
from firsttouch.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Catalog:
    """Experiments in the order in which they are reported, machines and arms, by name.

    `broken` maps each name that could not be loaded to the reason.
    """

    experiments: Mapping[str, Experiment]
    machines: Mapping[str, Machine]
    arms: Mapping[str, Arm]
    broken: Mapping[str, str] = field(default_factory=dict)

    def adding(self, arms: Iterable[Arm]) -> Catalog:
        return replace(self, arms={**self.arms, **{arm.name: arm for arm in arms}})

    def of_architecture(self, name: str) -> Catalog:
        """Return the catalogue with arms that boot kernels for that architecture."""
        arms = {
            key: replace(arm, kernel=replace(arm.kernel, architecture=name))
            for key, arm in self.arms.items()
        }
        return replace(self, arms=arms)

    def arm_order(self, name: str) -> tuple[int, str]:
        """Return the sort key of an arm; arms without a file come last."""
        arm = self.arms.get(name)
        return (arm.order if arm else len(self.arms) + 1000, name)


def load_catalog(
    experiments: Iterable[str], machines: Iterable[str], arms: Iterable[str]
) -> Catalog:
    """Load these names; `broken` of the catalogue says why one could not be loaded."""
    broken: dict[str, str] = {}

    def load(names: Iterable[str], load_file: Callable[[str], T]) -> dict[str, T]:
        entries = {}
        for name in dict.fromkeys(names):
            try:
                entries[name] = load_file(name)
            except UserError as error:
                broken[name] = str(error)
        return entries

    loaded = load(experiments, load_experiment)
    ordered = sorted(loaded.items(), key=lambda entry: (entry[1].order, entry[0]))
    return Catalog(dict(ordered), load(machines, load_machine), load(arms, load_arm), broken)
