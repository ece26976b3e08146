# SPDX-License-Identifier: GPL-2.0
"""What the guests of a plan are made from: kernels, programs, scripts and disks.

`parts_of` is the one list of them. A part can be asked for what the store has
of it, which a forecast does, and for itself, which builds or fetches it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.disks import FileDisk, RootDisk
from firsttouch.building.kernel import kernel_of, obtain_image
from firsttouch.building.patches import check_patches
from firsttouch.building.programs import PMU, RECORDER, Program, Scripts, ftbench, init_of
from firsttouch.building.source import KernelSource
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.experiments import Experiment, Packages, Params
from firsttouch.lab.cells import Cell, layout_of
from firsttouch.lab.plan import Plan
from firsttouch.progress import Reporter

Part = Kernel | Program | Scripts | FileDisk | RootDisk


@dataclass(frozen=True)
class Parts:
    """Parts of guests and where they are: for a kernel its image, for scripts their folder."""

    source: KernelSource
    places: Mapping[Part, Path]
    reporter: Reporter = field(default_factory=Reporter)

    def root(self, packages: Packages) -> Path:
        """Return the folder with packages, unpacked. The store takes seconds to check it."""
        return _unpacked(packages, self.reporter)


@functools.cache
def _unpacked(packages: Packages, reporter: Reporter) -> Path:
    return unpack(packages, reporter)


def parts_of(plan: Plan, cells: Iterable[Cell]) -> list[Part]:
    """Return the parts of the guests that run `cells` of a plan, each once."""
    cells = tuple(cells)
    kernels = kernels_of(plan, cells)
    parts: dict[Part, None] = dict.fromkeys(kernels)
    parts |= dict.fromkeys(init_of(kernel.architecture) for kernel in kernels)
    parts[PMU] = None
    for cell in cells:
        experiment = plan.catalog.experiments[cell.experiment]
        parts[program_of(cell, plan.arm(cell).kernel.architecture)] = None
        if disk := disk_of(experiment, cell.params):
            parts[disk] = None
        if experiment.scripts:
            parts |= {RECORDER: None, scripts_of(experiment): None}
    return list(parts)


def kernels_of(plan: Plan, cells: Iterable[Cell]) -> list[Kernel]:
    """Return the kernels that cells of `plan` boot, each once, in the order of their builds.

    Those with changes of the user's come first: they are the most likely to fail.
    """
    kernels = {plan.arm(cell).kernel for cell in cells}
    return sorted(sorted(kernels, reverse=True), key=lambda kernel: not kernel.label)


def program_of(cell: Cell, architecture: str = DEFAULT_ARCHITECTURE) -> Program:
    """Return the ftbench of a cell, linked in the order that its layout asks for."""
    return ftbench(layout_of(cell.layout).order, architecture=architecture)


def disk_of(experiment: Experiment, params: Params) -> FileDisk | RootDisk | None:
    """Return the disk of a cell; None if it needs none."""
    if experiment.file_size:
        return FileDisk(int(params[experiment.file_size]))
    return RootDisk(experiment.root) if experiment.root else None


def scripts_of(experiment: Experiment) -> Scripts:
    """Return the scripts of an experiment."""
    return Scripts(tuple(experiment.scripts.items()))


def stored_parts(parts: Iterable[Part], source: KernelSource | None) -> dict[Part, Path | None]:
    """Return where parts are; None for one that the store lacks, as without a `source`."""
    return {part: _stored(part, source) for part in parts}


def _stored(part: Part, source: KernelSource | None) -> Path | None:
    if not isinstance(part, Kernel):
        return part.stored()
    place = kernel_of(part, source).stored() if source else None
    return place / "Image" if place else None


def build_parts(
    source: KernelSource,
    plan: Plan,
    logs: Path,
    reporter: Reporter,
) -> Parts:
    """Return the parts that `plan` needs; build or fetch what the store lacks.

    Raises UserError if the user's patches do not apply, before anything is built.
    """
    parts = parts_of(plan, plan.cells)
    check_changes(parts, source)
    # Kernels last: their builds take longest, and all else may fail before.
    ordered = sorted(parts, key=lambda part: isinstance(part, Kernel))
    places = {
        part: obtain_image(part, source, reporter, logs)
        if isinstance(part, Kernel)
        else part.obtain(reporter)
        for part in ordered
    }
    return Parts(source, places, reporter)


def check_changes(parts: Collection[Part], source: KernelSource) -> None:
    """Raise UserError if patches of the user's for kernels that are not stored do not apply."""
    for part in parts:
        if isinstance(part, Kernel) and part.patches and not _stored(part, source):
            check_patches(part.patches, source)
