# SPDX-License-Identifier: GPL-2.0
"""What a run would build and run. A forecast builds and boots nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.building.host_tools import processors
from firsttouch.building.source import KernelSource
from firsttouch.building.store import stored_outcome
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.catalog.releases import Release
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import Part, Parts, make_job, parts_of, stored_parts
from firsttouch.lab.plan import Plan

_KINDS: Mapping[Kind, str] = {
    "stock": "stock", "changed": "with linux/", "debian": "as Debian distributes it",
    "tiny-stock": "stock, tiny", "tiny-changed": "with linux/, tiny",
}  # fmt: skip
# Seconds that a CPU takes for an object of a kernel, and that a guest takes. Rounded from an
# x86-64 host at 2.5 GHz.
_OBJECT, _GUEST = 1.0, 10.0


@dataclass(frozen=True)
class Forecast:
    """What a run would do.

    `parts` has the names of what guests need, and whether the store has it.
    `stored` is the number of guests whose outcome the store has, `missing` that
    of the others: of a guest with a part that is not built, the outcome cannot
    be there. `builds` is the number of kernels that are built. `seconds` is a
    rough estimate of the whole run.
    """

    parts: tuple[tuple[str, bool], ...]
    stored: int
    missing: int
    builds: int
    seconds: float


def forecast(plan: Plan, release: Release, source: KernelSource | None, at_once: int) -> Forecast:
    """Return what a run of `plan` would do; `source` is None if it is not fetched yet."""
    places = stored_parts(parts_of(plan, plan.cells), source)
    made = None
    if source:
        made = Parts(source, {part: place for part, place in places.items() if place})
    # What Debian built is fetched in seconds.
    builds = sum(
        isinstance(part, Kernel) and part.kind != "debian" and not place
        for part, place in places.items()
    )
    stored = sum(_is_stored(plan, group, made) for group in plan.groups)
    missing = len(plan.groups) - stored
    seconds = builds * release.objects * _OBJECT / processors() + missing * _GUEST / at_once
    named = tuple((_title(part, release), bool(place)) for part, place in places.items())
    return Forecast(named, stored, missing, builds, seconds)


def _title(part: Part, release: Release) -> str:
    if isinstance(part, Kernel):
        return f"kernel {release.name} {_KINDS[part.kind]} {part.label}".rstrip()
    return part.title


def _is_stored(plan: Plan, group: tuple[Cell, ...], parts: Parts | None) -> bool:
    if parts is None or not parts.places.keys() >= set(parts_of(plan, group)):
        return False
    return stored_outcome(make_job(plan, group, parts).key) is not None
