# SPDX-License-Identifier: GPL-2.0
"""The entries of the catalogue that a run or a set of results is about, each loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from firsttouch.catalog.arms import Arm, arm_names, load_arm
from firsttouch.catalog.experiments import Experiment, experiment_names, load_experiment
from firsttouch.catalog.machines import Machine, load_machine, machine_names

T = TypeVar("T")


@dataclass(frozen=True)
class Catalog:
    """Experiments in the order in which they are reported, machines and arms, by name."""

    experiments: Mapping[str, Experiment]
    machines: Mapping[str, Machine]
    arms: Mapping[str, Arm]

    def adding(self, arms: Iterable[Arm]) -> Catalog:
        return replace(self, arms={**self.arms, **{arm.name: arm for arm in arms}})

    def arm_order(self, name: str) -> tuple[int, str]:
        """Return the sort key of an arm; arms without a file come last."""
        arm = self.arms.get(name)
        return (arm.order if arm else len(self.arms) + 1000, name)


def load_catalog(
    experiments: Iterable[str], machines: Iterable[str], arms: Iterable[str]
) -> Catalog:
    """Load these names; one without a file, which results may have, is left out."""
    loaded = _load(experiments, experiment_names(), load_experiment)
    ordered = sorted(loaded.items(), key=lambda entry: (entry[1].order, entry[0]))
    return Catalog(
        dict(ordered),
        _load(machines, machine_names(), load_machine),
        _load(arms, arm_names(), load_arm),
    )


def _load(names: Iterable[str], known: Sequence[str], load: Callable[[str], T]) -> dict[str, T]:
    return {name: load(name) for name in dict.fromkeys(names) if name in known}
