# SPDX-License-Identifier: GPL-2.0
"""What a run would build and run, and how long that takes. A forecast builds and boots nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.building.durations import (
    GUEST,
    default_image_duration,
    guest_duration,
    image_duration,
    read_durations,
)
from firsttouch.building.outcomes import stored_outcome
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.catalog.releases import Release
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import make_job
from firsttouch.lab.parts import Part, Parts, parts_of, stored_parts
from firsttouch.lab.plan import Plan

_KINDS: Mapping[Kind, str] = {
    "stock": "stock", "changed": "with linux/", "debian": "as Debian distributes it",
    "tiny-stock": "stock, tiny", "tiny-changed": "with linux/, tiny",
}  # fmt: skip


@dataclass(frozen=True)
class Forecast:
    """What a run would do.

    `parts` has the names of what guests need, and whether the store has it.
    `stored` and `missing` are the numbers of guests whose outcome the store has
    or lacks. `unknown` guests have a part that is not built yet, so that their
    keys are unknown. `seconds` estimates the whole run, `builds` the kernels in
    it; `measured` tells whether all durations in them were measured on this host.
    """

    parts: tuple[tuple[str, bool], ...]
    stored: int
    missing: int
    unknown: int
    seconds: float
    builds: float
    measured: bool


def forecast(plan: Plan, release: Release, source: KernelSource | None, at_once: int) -> Forecast:
    """Return what a run of `plan` would do; `source` is None if it is not fetched yet."""
    durations = read_durations()
    places = stored_parts(parts_of(plan, plan.cells), source)
    made = None
    if source:
        made = Parts(source, {part: place for part, place in places.items() if place})
    seconds = builds = 0.0
    measured = True
    for kernel, place in places.items():
        # What Debian built is fetched in seconds.
        if isinstance(kernel, Kernel) and not place and kernel.kind != "debian":
            name = image_duration(release.name)
            build = durations.get(name, default_image_duration(release.objects))
            measured &= name in durations
            seconds += build
            builds += build
    counts = {True: 0, False: 0, None: 0}
    guests = 0.0
    for group in plan.groups:
        state = _is_stored(plan, group, made)
        counts[state] += 1
        if not state:
            name = guest_duration(group[0].experiment, group[0].params.get("size"))
            guests += durations.get(name, GUEST)
            measured &= name in durations
    seconds += guests / at_once
    named = tuple((_title(part, release), bool(place)) for part, place in places.items())
    return Forecast(named, counts[True], counts[False], counts[None], seconds, builds, measured)


def _title(part: Part, release: Release) -> str:
    if isinstance(part, Kernel):
        return f"kernel {release.name} {_KINDS[part.kind]} {part.label}".rstrip()
    return part.title


def _is_stored(plan: Plan, group: tuple[Cell, ...], parts: Parts | None) -> bool | None:
    """Tell whether the store has the outcome of `group`; None if a part is not built yet."""
    if parts is None or not parts.places.keys() >= set(parts_of(plan, group)):
        return None
    return stored_outcome(make_job(plan, group, parts).key) is not None
