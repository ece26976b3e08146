# SPDX-License-Identifier: GPL-2.0
"""The guests of a plan, one for each group of cells."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.host_tools import cross_compile, version
from firsttouch.building.kernel import kernel_of
from firsttouch.building.patches import check_patches
from firsttouch.building.program_root import RootArchive
from firsttouch.building.programs import BENCH, INIT, PMU, RECORDER, FileDisk, Program, RootDisk
from firsttouch.building.source import SYMBOLS, KernelSource
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
# Parts of guests and where they are: for a kernel its image.
Places = Mapping[Part, Path]


def parts_of(plan: Plan) -> list[Part]:
    """Return what the guests of a plan need, each part once, in the order in which it is made.

    Kernels come last, as their builds take longest; those with changes of the user's, which are
    the most likely to fail, are the first of them.
    """
    parts: dict[Part, None] = {}

    def want(part: Part) -> Path:
        parts[part] = None
        return Path("part")

    for cells in plan.groups:
        _guest(cells, plan, want)
    kernels = [part for part in parts if isinstance(part, Kernel)]
    others = [part for part in parts if not isinstance(part, Kernel)]
    return [*others, *sorted(kernels, key=lambda kernel: not kernel.label)]


def stored_part(part: Part, source: KernelSource | None) -> Path | None:
    if not isinstance(part, Kernel):
        return part.stored()
    return kernel_of(part, source).stored() if source else None


def build_parts(source: KernelSource, plan: Plan, reporter: Reporter) -> Places:
    parts = parts_of(plan)
    check_changes(parts, source)
    makers = [kernel_of(part, source) if isinstance(part, Kernel) else part for part in parts]
    return {part: maker.obtain(reporter) for part, maker in zip(parts, makers, strict=True)}


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


def make_jobs(plan: Plan, source: KernelSource, places: Places) -> list[Job]:
    return [make_job(plan, cells, source, places) for cells in plan.groups]


def make_job(plan: Plan, cells: tuple[Cell, ...], source: KernelSource, places: Places) -> Job:
    """Return the job of a group of cells; KeyError without one of its parts."""
    guest = _guest(cells, plan, places.__getitem__)
    experiment = plan.catalog.experiments[cells[0].experiment]
    return Job(guest, guest_key(guest), cells, source, plan.arm(cells[0]), experiment)


def _guest(cells: tuple[Cell, ...], plan: Plan, place: Callable[[Part], Path]) -> Guest:
    """Return the guest of `cells`; `place` returns where a part is."""
    first = cells[0]
    experiment, arm = plan.catalog.experiments[first.experiment], plan.arm(first)
    setting, machine = plan.around[first.setting], plan.catalog.machines[first.machine]
    layout, architecture = layout_of(first.layout), arm.kernel.architecture
    files: dict[str, Path | bytes] = {
        FTBENCH: place(replace(BENCH, order=layout.order, architecture=architecture))
    }
    # The scripts of these cells alone: others must not change the key.
    for name in sorted({str(cell.params["program"]) for cell in cells if experiment.scripts}):
        files[f"{_SCRIPTS}/{name}"] = os.fsencode(experiment.scripts[name])
    disk: FileDisk | RootDisk | None = None
    if experiment.file_size:
        disk = FileDisk(int(first.params[experiment.file_size]))
    elif experiment.root:
        disk = RootDisk(experiment.root)
    program, root = experiment.program, None
    if program:
        root = RootArchive(program)
        # Without one it would wait for keys of the console.
        files["/input"] = program.input or Path(os.devnull)
    elif experiment.scripts:
        files[_RECORDER] = place(RECORDER)
    more = "".join(f" {part.arguments}" for part in (disk, root) if part)
    image = place(arm.kernel)
    wanted = {metric.name for metric in experiment.metrics}
    pmu = None
    if first.profile:
        pmu = Pmu(place(PMU), caches=True, symbols=image.with_name(SYMBOLS))
    elif not wanted.isdisjoint({*COUNTED, *COMBINED, *MODELLED}):
        pmu = Pmu(place(PMU), caches=not wanted.isdisjoint(MODELLED))
    return Guest(
        image=image,
        init=place(replace(INIT, architecture=architecture)),
        machine=machine,
        boot=(*machine.boot_words(arm.boot), *layout.words),
        commands=tuple(f"{arguments(experiment, cell.params)}{more}" for cell in cells),
        files=files,
        disk=place(disk) if disk else None,
        archive=place(root) if root else None,
        memory=program.memory if program else MEMORY,
        nodes=program.nodes if program else 1,
        cpus=first.cpus if "cpus" in first.params else setting.cpus or 1,
        board=(*machine.board, *setting.board),
        pmu=pmu,
        port=port_for(arm.kernel),
        kaslr_seed=layout.kaslr_seed,
    )


def arguments(experiment: Experiment, params: Params) -> str:
    words = [FTBENCH, experiment.runs, *experiment.options]
    for name, value in params.items():
        words += [f"--{name}", str(value)]
    return " ".join(words)
