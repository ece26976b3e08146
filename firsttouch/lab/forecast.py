# SPDX-License-Identifier: GPL-2.0
"""What a run would build and run, and how long that takes. A forecast builds and boots nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.disks import Disk
from firsttouch.build.durations import (
    GUEST,
    default_image_duration,
    guest_duration,
    image_duration,
    read_durations,
)
from firsttouch.build.images import KernelImage
from firsttouch.build.kernels import kernel_of
from firsttouch.build.outcomes import kept_outcome
from firsttouch.build.programs import stored_program, stored_scripts
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.arms import Kind
from firsttouch.catalog.experiments import KINDS
from firsttouch.catalog.releases import Release
from firsttouch.lab.cells import Cell
from firsttouch.lab.guests import (
    Parts,
    disk_of,
    kernels_of,
    make_job,
    needs_kinds,
    recorder_files,
    relinked_of,
)
from firsttouch.lab.plan import Plan

_KINDS: Mapping[Kind, str] = {
    "stock": "stock", "changed": "with linux/", "debian": "as Debian distributes it",
    "tiny-stock": "stock, tiny", "tiny-changed": "with linux/, tiny",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A kernel, program or disk for guests; `path` is its place in the store, None if missing."""

    title: str
    path: Path | None


@dataclass(frozen=True)
class Forecast:
    """What a run would do.

    `stored` and `missing` are the numbers of guests whose outcome the store has
    or lacks. `unknown` guests have a part that is not built yet, so that their
    keys are unknown. `seconds` estimates the whole run, `builds` the kernels in
    it; `measured` tells whether all durations in them were measured on this host.
    """

    parts: tuple[Part, ...]
    stored: int
    missing: int
    unknown: int
    seconds: float
    builds: float
    measured: bool


def forecast(plan: Plan, release: Release, source: KernelSource | None, at_once: int) -> Forecast:
    """Return what a run of `plan` would do; `source` is None if it is not fetched yet."""
    known = read_durations()
    images = {
        kernel: kernel_of(kernel, source).stored() if source else None
        for kernel in kernels_of(plan)
    }
    parts = [
        Part(f"kernel {release.name} {_KINDS[kernel.kind]} {kernel.label}".rstrip(), path)
        for kernel, path in images.items()
    ]
    wanted = [("bench", "ftbench"), ("guest", "init"), ("pmu", "libftpmu.so")]
    if needs_kinds(plan):
        wanted.append(("bench", KINDS))
    programs = {
        name: stored_program(folder, name, native=folder == "pmu") for folder, name in wanted
    }
    parts += [Part(name, path) for name, path in programs.items()]
    relinked = {
        (build, order): stored_program("bench", build, order=order)
        for build, order in relinked_of(plan)
    }
    parts += [Part(f"{build}, order {order}", relinked[build, order]) for build, order in relinked]
    disks: dict[Disk, Path | None] = {}
    for group in plan.groups:
        disk = disk_of(plan, group)
        if disk and disk not in disks:
            disks[disk] = disk.stored()
            parts.append(Part(disk.title, disks[disk]))
    ready = {kind: path / "Image" for kind, path in images.items() if path}
    made = None
    ftbench, init, pmu, *more = programs.values()
    if source and ftbench and init and pmu and all(more) and all(relinked.values()):
        have = {disk: path for disk, path in disks.items() if path}
        kinds = programs.get(KINDS)
        linked = {name: path for name, path in relinked.items() if path}
        made = Parts(
            source, ready, ftbench, init, pmu, have, _recorders(plan), kinds=kinds, relinked=linked
        )
    seconds = builds = 0.0
    measured = True
    for kernel, path in images.items():
        # What Debian built is fetched in seconds.
        if path is None and kernel.kind != "debian":
            name = image_duration(release.name)
            found = kernel_of(kernel, source) if source else None
            build = found.estimate() if isinstance(found, KernelImage) else None
            if build is None:
                build = known.get(name, default_image_duration(release.objects))
                measured &= name in known
            seconds += build
            builds += build
    counts = {True: 0, False: 0, None: 0}
    guests = 0.0
    for group in plan.groups:
        state = _is_stored(plan, group, made)
        counts[state] += 1
        if not state:
            name = guest_duration(group[0].experiment, group[0].params.get("size"))
            guests += known.get(name, GUEST)
            measured &= name in known
    seconds += guests / at_once
    return Forecast(
        tuple(parts), counts[True], counts[False], counts[None], seconds, builds, measured
    )


def _recorders(plan: Plan) -> dict[str, dict[str, Path]]:
    """Return what guests need to record programs, by experiment, where the store has it."""
    recorder = stored_program("recorder", "ftrecord")
    found = {}
    for name in dict.fromkeys(cell.experiment for cell in plan.cells):
        asked = plan.catalog.experiments[name].scripts
        scripts = stored_scripts(asked) if asked else None
        if recorder and scripts:
            found[name] = recorder_files(recorder, scripts)
    return found


def _is_stored(plan: Plan, group: tuple[Cell, ...], parts: Parts | None) -> bool | None:
    """Tell whether the store has the outcome of `group`; None if a part is not built yet."""
    disk = disk_of(plan, group)
    arm = plan.catalog.arms[group[0].arm]
    name = group[0].experiment
    if plan.catalog.experiments[name].scripts and (parts is None or name not in parts.recorders):
        return None
    if parts is None or arm.kernel not in parts.images or (disk and disk not in parts.disks):
        return None
    return kept_outcome(make_job(plan, group, parts).key) is not None
