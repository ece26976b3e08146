# SPDX-License-Identifier: GPL-2.0
"""The guests of a plan, one for each group of cells."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.debian import SYMBOLS
from firsttouch.building.host_tools import cross_compile, version
from firsttouch.building.kernel import kernel_of
from firsttouch.building.patches import check_patches
from firsttouch.building.program_root import RootArchive
from firsttouch.building.programs import BENCH, INIT, PMU, RECORDER, FileDisk, Program, RootDisk
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Arm, Kernel
from firsttouch.catalog.contract import COMBINED, COUNTED, MODELLED
from firsttouch.catalog.experiments import Experiment, Packages, Params
from firsttouch.catalog.kernels import load_architecture
from firsttouch.lab.cells import Cell, layout_of
from firsttouch.lab.plan import Plan
from firsttouch.lab.results import Provenance
from firsttouch.progress import Reporter
from firsttouch.vm.guest import MEMORY, Guest, Pmu, port_for
from firsttouch.vm.qemu import file_digest, guest_key, inputs

Part = Kernel | Program | FileDisk | RootDisk | RootArchive


@dataclass(frozen=True)
class Parts:
    """Parts of guests and where they are: for a kernel its image."""

    source: KernelSource
    places: Mapping[Part, Path]


def parts_of(plan: Plan, cells: Iterable[Cell]) -> list[Part]:
    """Return what guests of cells need, each part once, in the order in which it is made.

    Kernels come last, as their builds take longest; those with changes of the user's, which are
    the most likely to fail, are the first of them.
    """
    parts: dict[Part, None] = {PMU: None}
    kernels = set()
    for cell in cells:
        experiment, kernel = plan.catalog.experiments[cell.experiment], plan.arm(cell).kernel
        kernels.add(kernel)
        wanted: list[Part] = [_init_of(kernel), program_of(cell, kernel)]
        wanted += [disk] if (disk := disk_of(experiment, cell.params)) else []
        if experiment.program:
            wanted.append(RootArchive(experiment.program))
        elif experiment.scripts:
            wanted.append(RECORDER)
        parts |= dict.fromkeys(wanted)
    ordered = sorted(sorted(kernels, reverse=True), key=lambda kernel: not kernel.label)
    return [*parts, *ordered]


def _init_of(kernel: Kernel) -> Program:
    return replace(INIT, architecture=kernel.architecture)


def program_of(cell: Cell, kernel: Kernel) -> Program:
    order = layout_of(cell.layout).order
    return replace(BENCH, order=order, architecture=kernel.architecture)


def disk_of(experiment: Experiment, params: Params) -> FileDisk | RootDisk | None:
    if experiment.file_size:
        return FileDisk(int(params[experiment.file_size]))
    return RootDisk(experiment.root) if experiment.root else None


def stored_part(part: Part, source: KernelSource | None) -> Path | None:
    if not isinstance(part, Kernel):
        return part.stored()
    return kernel_of(part, source).stored() if source else None


def build_parts(source: KernelSource, plan: Plan, reporter: Reporter) -> Parts:
    parts = parts_of(plan, plan.cells)
    check_changes(parts, source)
    makers = [kernel_of(part, source) if isinstance(part, Kernel) else part for part in parts]
    places = {part: maker.obtain(reporter) for part, maker in zip(parts, makers, strict=True)}
    return Parts(source, places)


def check_changes(parts: Collection[Part], source: KernelSource) -> None:
    """Raise UserError if patches of the user's for kernels that are not stored do not apply."""
    for part in parts:
        if isinstance(part, Kernel) and part.patches and not stored_part(part, source):
            check_patches(part.patches, source)


FTBENCH = "/ftbench"
# bench/experiments/doubles.c names these.
_RECORDER, _SCRIPTS = "/ftrecord", "/scripts"


@dataclass(frozen=True)
class Job:
    """A guest that is to be run under the digest `key`, and its cells: one for each command."""

    guest: Guest
    key: str
    cells: tuple[Cell, ...]
    source: KernelSource
    arm: Arm
    experiment: Experiment

    @property
    def recorded(self) -> Packages | None:
        """The packages of the programs whose page faults the guest records."""
        return self.experiment.root if self.experiment.scripts else None

    def provenance(self, cell: Cell) -> Provenance:
        program, tried = self.experiment.program, self.arm if self.arm.tried else None
        return Provenance(
            kernel_version=self.source.version,
            qemu=version(load_architecture(self.guest.machine.architecture).qemu),
            compiler=version(f"{cross_compile()}gcc"),
            digests={"kernel source": self.source.sha256, **self._digests},
            boot=self.guest.command_line(),
            commands=self.guest.commands,
            command=program.command(cell.release, cell.arm)
            if program
            else cell.command(self.source.given, tried),
            tried=tried.meaning if tried else "",
        )

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        """The digests that all cells of the guest share; computed once, which is slow."""
        ftbench = self.guest.files[FTBENCH]
        assert isinstance(ftbench, Path)
        kernel = self.arm.kernel
        return {
            **{f"patch {file.name}": file_digest(file) for file in kernel.patches},
            **{f"fragment {file.name}": file_digest(file) for file in kernel.fragments},
            **inputs(self.guest).digests(),
            "init": file_digest(self.guest.init),
            "ftbench": file_digest(ftbench),
        }


def make_jobs(plan: Plan, parts: Parts) -> list[Job]:
    return [make_job(plan, cells, parts) for cells in plan.groups]


def make_job(plan: Plan, cells: tuple[Cell, ...], parts: Parts) -> Job:
    guest, experiment = _guest(cells, plan, parts), plan.catalog.experiments[cells[0].experiment]
    return Job(guest, guest_key(guest), cells, parts.source, plan.arm(cells[0]), experiment)


def _guest(cells: tuple[Cell, ...], plan: Plan, parts: Parts) -> Guest:
    first = cells[0]
    experiment, arm = plan.catalog.experiments[first.experiment], plan.arm(first)
    setting = plan.around[first.setting]
    disk = disk_of(experiment, first.params)
    program = experiment.program
    root = RootArchive(program) if program else None
    more = "".join(f" {part.arguments}" for part in (disk, root) if part)
    wanted = {metric.name for metric in experiment.metrics}
    pmu = None
    if first.profile:
        symbols = parts.places[arm.kernel].with_name(SYMBOLS)
        pmu = Pmu(parts.places[PMU], caches=True, symbols=symbols)
    elif not wanted.isdisjoint({*COUNTED, *COMBINED, *MODELLED}):
        pmu = Pmu(parts.places[PMU], caches=not wanted.isdisjoint(MODELLED))
    machine = plan.catalog.machines[first.machine]
    layout = layout_of(first.layout)
    return Guest(
        image=parts.places[arm.kernel],
        init=parts.places[_init_of(arm.kernel)],
        machine=machine,
        boot=(*machine.boot_words(arm.boot), *layout.words),
        commands=tuple(f"{arguments(experiment, cell.params)}{more}" for cell in cells),
        files={
            FTBENCH: parts.places[program_of(first, arm.kernel)],
            **_recorder(experiment, cells, parts),
            # Without one it would wait for keys of the console.
            **({"/input": program.input or Path(os.devnull)} if program else {}),
        },
        disk=parts.places[disk] if disk else None,
        archive=parts.places[root] if root else None,
        memory=program.memory if program else MEMORY,
        nodes=program.nodes if program else 1,
        cpus=first.cpus if "cpus" in first.params else setting.cpus or 1,
        board=(*machine.board, *setting.board),
        pmu=pmu,
        port=port_for(arm.kernel),
        kaslr_seed=layout.kaslr_seed,
    )


def _recorder(
    experiment: Experiment, cells: tuple[Cell, ...], parts: Parts
) -> dict[str, Path | bytes]:
    """Return the recorder and the scripts of `cells` alone: others must not change their key."""
    if not experiment.scripts:
        return {}
    names = {str(cell.params["program"]) for cell in cells}
    scripts: dict[str, Path | bytes] = {
        f"{_SCRIPTS}/{name}": experiment.scripts[name].encode() for name in sorted(names)
    }
    return scripts if experiment.program else {_RECORDER: parts.places[RECORDER], **scripts}


def arguments(experiment: Experiment, params: Params) -> str:
    words = [FTBENCH, experiment.runs, *experiment.options]
    for name, value in params.items():
        words += [f"--{name}", str(value)]
    return " ".join(words)
