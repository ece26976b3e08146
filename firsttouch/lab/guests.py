# SPDX-License-Identifier: GPL-2.0
"""The guests of a plan: the parts that they are made from, and a guest per group of cells."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.build.disks import Disk, FileDisk, RootDisk
from firsttouch.build.host_tools import compiler_version, qemu_version
from firsttouch.build.images import SYMBOLS
from firsttouch.build.kernels import kernel_of, obtain_image
from firsttouch.build.packages import unpack
from firsttouch.build.patching import check_patches
from firsttouch.build.programs import (
    build_ftbench,
    build_init,
    build_kinds,
    build_pmu,
    build_recorder,
    keep_scripts,
)
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.arms import Arm, Kernel
from firsttouch.catalog.contract import COMBINED, COUNTED, MODELLED, WATCHED
from firsttouch.catalog.experiments import KINDS, Experiment, Params
from firsttouch.errors import HostError
from firsttouch.files import digest
from firsttouch.lab.cells import Cell
from firsttouch.lab.layouts import layout_of
from firsttouch.lab.plan import Plan
from firsttouch.lab.results import Provenance
from firsttouch.lab.traces import finder_digest
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.pmu import Pmu
from firsttouch.vm.qemu import file_digest, guest_key, inputs

FTBENCH = "/ftbench"
# bench/experiments/doubles.c names these.
_RECORDER, _SCRIPTS = "/ftrecord", "/scripts"


@dataclass(frozen=True)
class Parts:
    """The built parts of a run's guests; `images` are by `Arm.kernel`.

    `recorders` has by experiment the files that its guests need to record
    programs, `roots` what returns the folder with these, unpacked: only a guest
    that runs needs it, and the store takes seconds to check it. `kinds` is the
    build of ftbench of that name, if a cell of the plan needs it. `relinked` has
    the builds for layouts whose order is not 0, by build and order.
    """

    source: KernelSource
    images: Mapping[Kernel, Path]
    ftbench: Path
    init: Path
    pmu: Path
    disks: Mapping[Disk, Path]
    recorders: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)
    roots: Mapping[str, Callable[[], Path]] = field(default_factory=dict)
    kinds: Path | None = None
    relinked: Mapping[tuple[str, int], Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Traced:
    """How the recordings of a guest are read.

    `root` returns the folder with the programs that were recorded. `key` is the
    digest of all that decides what is found in them: the guest and the finder.
    """

    key: str
    root: Callable[[], Path]


@dataclass(frozen=True)
class Job:
    """A guest that is to be run, and its cells: one for each of its commands, in order.

    `key` is the digest of everything that decides what the guest does. `traced`
    is of a guest that records programs. `several` tells whether the experiment's
    file asks for several layouts.
    """

    guest: Guest
    key: str
    cells: tuple[Cell, ...]
    source: KernelSource
    arm: Arm
    traced: Traced | None = None
    several: bool = False

    def cell_key(self, position: int) -> str:
        """Return the key of the cell at `position`."""
        return digest([self.key, position])

    def provenance(self, cell: Cell) -> Provenance:
        """Return what decided the result of `cell`."""
        return Provenance(
            kernel_version=self.source.version,
            qemu=qemu_version(),
            compiler=compiler_version(),
            digests={"kernel source": self.source.sha256, **self._digests},
            boot=self.guest.command_line(),
            commands=self.guest.commands,
            command=cell.command(
                self.source.given, self.arm if self.arm.tried else None, several=self.several
            ),
            tried=self.arm.meaning if self.arm.tried else "",
        )

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        """The digests that all cells of the guest share; computed once, which is slow."""
        kernel = self.arm.kernel
        return {
            **{f"patch {file.name}": file_digest(file) for file in kernel.patches},
            **{f"fragment {file.name}": file_digest(file) for file in kernel.fragments},
            **inputs(self.guest).digests(),
            "init": file_digest(self.guest.init),
            "ftbench": file_digest(self.guest.files[FTBENCH]),
        }


def build_parts(source: KernelSource, plan: Plan, logs: Path, reporter: Reporter) -> Parts:
    """Return the kernels, programs and disks that `plan` needs; build what the store lacks.

    Raises UserError if the user's patches do not apply, before anything is built.
    """
    kernels = kernels_of(plan)
    check_changes(plan, source)
    ftbench, init = build_ftbench(reporter), build_init(reporter)
    kinds = build_kinds(reporter) if needs_kinds(plan) else None
    images = {kernel: obtain_image(kernel, source, reporter, logs) for kernel in kernels}
    disks = {}
    for group in plan.groups:
        disk = disk_of(plan, group)
        if disk and disk not in disks:
            disks[disk] = disk.obtain(reporter)
    recorders, roots = {}, {}
    for name in dict.fromkeys(cell.experiment for cell in plan.cells):
        experiment = plan.catalog.experiments[name]
        if experiment.scripts and experiment.root:
            recorders[name] = recorder_files(
                build_recorder(reporter, native=False), keep_scripts(experiment.scripts, reporter)
            )
            roots[name] = functools.cache(functools.partial(unpack, experiment.root, reporter))
    pmu = build_pmu(reporter)
    relinked = {
        (build, order): (build_kinds if build == KINDS else build_ftbench)(reporter, order=order)
        for build, order in relinked_of(plan)
    }
    return Parts(source, images, ftbench, init, pmu, disks, recorders, roots, kinds, relinked)


def check_changes(plan: Plan, source: KernelSource) -> None:
    """Raise UserError if patches of the user's for kernels that are not stored do not apply."""
    for kernel in kernels_of(plan):
        if kernel.patches and not kernel_of(kernel, source).stored():
            check_patches(kernel.patches, source)


def needs_kinds(plan: Plan) -> bool:
    """Tell whether a cell of `plan` needs the build of ftbench that takes a second compiler."""
    experiments = {cell.experiment for cell in plan.cells}
    return any(plan.catalog.experiments[name].build == KINDS for name in experiments)


def relinked_of(plan: Plan) -> list[tuple[str, int]]:
    """Return the builds and orders of ftbench that layouts of `plan` need beside the first."""
    found = {
        (plan.catalog.experiments[cell.experiment].build, layout_of(cell.layout).order)
        for cell in plan.cells
    }
    return sorted((build, order) for build, order in found if order)


def recorder_files(recorder: Path, scripts: Mapping[str, Path]) -> dict[str, Path]:
    """Return the recorder and the scripts of an experiment, by their paths in a guest."""
    return {_RECORDER: recorder, **{f"{_SCRIPTS}/{name}": file for name, file in scripts.items()}}


def kernels_of(plan: Plan) -> list[Kernel]:
    """Return the kernels that the arms of `plan` boot, each once, in the order of their builds.

    Those with changes of the user's come first: they are the most likely to fail.
    """
    kernels = {plan.catalog.arms[cell.arm].kernel for cell in plan.cells}
    return sorted(sorted(kernels, reverse=True), key=lambda kernel: not kernel.label)


def make_jobs(plan: Plan, parts: Parts) -> list[Job]:
    """Return the guests that run the cells of `plan`."""
    return [make_job(plan, cells, parts) for cells in plan.groups]


def make_job(plan: Plan, cells: tuple[Cell, ...], parts: Parts) -> Job:
    """Return the guest that runs one group of the plan's cells."""
    guest = _guest(cells, plan, parts)
    key, root = guest_key(guest), parts.roots.get(cells[0].experiment)
    traced = Traced(digest([key, finder_digest()]), root) if root else None
    several = plan.catalog.experiments[cells[0].experiment].layouts > 1
    arm = plan.catalog.arms[cells[0].arm]
    return Job(guest, key, cells, parts.source, arm, traced, several)


def disk_of(plan: Plan, cells: tuple[Cell, ...]) -> Disk | None:
    """Return the disk of a group of cells; None if it needs none."""
    return _disk(plan.catalog.experiments[cells[0].experiment], cells[0].params)


def _guest(cells: tuple[Cell, ...], plan: Plan, parts: Parts) -> Guest:
    """Return the guest that runs `cells`, which differ only in their parameters."""
    first = cells[0]
    experiment, arm = plan.catalog.experiments[first.experiment], plan.catalog.arms[first.arm]
    disk = _disk(experiment, first.params)
    more = f" {disk.arguments}" if disk else ""
    wanted = {metric.name for metric in experiment.metrics}
    pmu = None
    if first.profile:
        pmu = Pmu(parts.pmu, caches=True, symbols=_symbols_of(arm, parts))
    elif not wanted.isdisjoint({*COUNTED, *COMBINED, *MODELLED, *WATCHED}):
        # Other experiments count such pages themselves.
        pages = bool(experiment.scripts) and not wanted.isdisjoint(WATCHED)
        pmu = Pmu(parts.pmu, caches=not wanted.isdisjoint(MODELLED), pages=pages)
    machine = plan.catalog.machines[first.machine]
    layout = layout_of(first.layout)
    ftbench = parts.ftbench
    if layout.order:
        ftbench = parts.relinked[experiment.build, layout.order]
    elif experiment.build == KINDS and parts.kinds:
        ftbench = parts.kinds
    return Guest(
        image=parts.images[arm.kernel],
        init=parts.init,
        machine=machine,
        boot=(*machine.boot_words(arm.boot), *layout.words),
        commands=tuple(f"{arguments(experiment, cell.params)}{more}" for cell in cells),
        files={FTBENCH: ftbench, **_recorder(cells, parts)},
        disk=parts.disks[disk] if disk else None,
        cpus=first.cpus,
        board=machine.board,
        pmu=pmu,
        port=port_for(arm.kernel),
        kaslr_seed=layout.kaslr_seed,
    )


def _recorder(cells: tuple[Cell, ...], parts: Parts) -> dict[str, Path]:
    """Return the recorder and the scripts of `cells` alone: others must not change their key."""
    found = parts.recorders.get(cells[0].experiment, {})
    scripts = {f"{_SCRIPTS}/{cell.params['program']}" for cell in cells if found}
    return {name: file for name, file in found.items() if name in scripts | {_RECORDER}}


def _symbols_of(arm: Arm, parts: Parts) -> Path:
    """Return the System.map of the kernel that `arm` boots; HostError if the store has none."""
    symbols = parts.images[arm.kernel].with_name(SYMBOLS)
    if symbols.exists():
        return symbols
    raise HostError(
        f"the stored kernel of {arm.name} has no {SYMBOLS}, because an older firsttouch built "
        f"it: remove {symbols.parent} and run the same command again, which builds it."
    )


def arguments(experiment: Experiment, params: Params) -> str:
    """Return the command that the guest runs for a cell."""
    words = [FTBENCH, experiment.runs, *experiment.options]
    for name, value in params.items():
        words += [f"--{name}", str(value)]
    return " ".join(words)


def _disk(experiment: Experiment, params: Params) -> Disk | None:
    """Return the disk of a cell; None if it needs none."""
    if experiment.file_size:
        return FileDisk(int(params[experiment.file_size]))
    return RootDisk(experiment.root) if experiment.root else None
