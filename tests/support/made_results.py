# SPDX-License-Identifier: GPL-2.0
"""Results of every experiment, made by formulas, so that tests can assert what is drawn."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset, read_dataset
from firsttouch.catalog.experiments import Experiment, Params, Value, load_catalog, load_experiment
from firsttouch.files import EXPERIMENTS
from firsttouch.lab.cells import Cell
from firsttouch.lab.results import Provenance, Result, read_results, write_results
from firsttouch.quantities import parse_size
from firsttouch.tables import Json, names_in

_DIGESTS = {
    "initial RAM disk": "c" * 64,
    "ftbench": "d" * 64,
    "device tree": "e" * 64,
    "PMU": "f" * 64,
}


@dataclass(frozen=True)
class Made:
    """A result before it is one."""

    experiment: str
    params: Params
    arm: str
    metrics: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)
    release: str = "6.12"
    machine: str = "neoverse-n1"
    setting: str = ""
    kernel_version: str = "6.12.1"
    qemu: str = "QEMU emulator version 7.2.22"
    digests: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()
    more: Mapping[str, Json] = field(default_factory=dict)

    def result(self) -> Result:
        """Return the result of the cell, whose command printed one line."""
        platform = self.release, self.arm, self.machine
        cell = Cell(*platform, self.experiment, self.params, setting=self.setting)
        line = {"metrics": self.metrics, "unavailable": self.missing, **self.more}
        image = ("a" if self.arm in ("stock", "thp-madvise", "mthp-16k", "mthp-64k") else "b") * 64
        made = Provenance(
            self.kernel_version, self.qemu, "aarch64-linux-gnu-gcc 12.2.0",
            {"kernel image": image, **_DIGESTS, **self.digests}, f"console=ttyAMA0 {self.arm}",
            tuple(self.commands) or (f"/ftbench {self.experiment} {self.params}",), cell.command(),
        )  # fmt: skip
        return Result(f"key of {cell.title}", cell, (line,), None, made)


def experiments(folder: Path) -> Path:
    """Return a copy of experiments/ in `folder`, without those whose cells a machine decides."""
    copy = Path(shutil.copytree(EXPERIMENTS, folder / "experiments"))
    for name in names_in(copy):
        if '"@' in (copy / f"{name}.toml").read_text():
            (copy / f"{name}.toml").unlink()
    return copy


def plan(folder: Path, names: Iterable[str] = (), **only: Value) -> list[Made]:
    """Return a result for each cell of the named experiments (all) whose params match `only`."""
    loaded = [load_experiment(name, folder) for name in names or names_in(folder)]
    return [
        _made(experiment, params, arm)
        for experiment in loaded
        for params in experiment.combinations()
        if only.items() <= params.items()
        for arm in experiment.arms
    ]


def _made(experiment: Experiment, params: Params, arm: str) -> Made:
    metrics = _metrics(experiment.name, params, arm)
    wanted = {metric.name for metric in experiment.metrics}
    missing = {name: f"no model of {name}" for name in sorted(wanted - metrics.keys())}
    if params.get("by") == "casp":
        metrics, missing = {}, dict.fromkeys(sorted(wanted), "this CPU has no CASP")
    more: dict[str, Json] = {}
    if experiment.name == "fault-timeline":
        more = {"timeline": _timeline(str(params["page"]), arm)}
    return Made(experiment.name, params, arm, metrics, missing, more=more)


def _metrics(name: str, params: Params, arm: str) -> dict[str, int]:
    """Return what a cell measures: two faults for one where the arm lacks write-intent faults."""
    if name == "boot":
        return {"boot_us": 128_000 + 70 * (arm != "stock")}
    if name == "doubles":
        return {"faults": 3000, "doubles": 30 if arm == "stock" else 20, "doubles_atomic": 10}
    if name == "waste":
        pages = 1000 if arm == "thp-madvise" else 1020
        return {"page_faults": 900, "anon_pages": pages, "zero_filled_pages": pages - 990}
    if not {"size", "heap"} & params.keys():
        return {"page_faults": 3000, "instructions_kernel": 30_000_000, "tlbi": 1000}
    if "heap" in params:
        heap = parse_size(params["heap"]) // 4096
        twice = {"on": 1}.get(arm, 2) if params["pretouch"] == "on" else 0
        faults = 5000 + heap * twice
        return {"page_faults": faults, "heap_pages": heap, "instructions_kernel": faults * 1000}
    return _touched(params, arm)


def _touched(params: Params, arm: str) -> dict[str, int]:
    asked = str(params.get("page", "4k"))
    size, page = int(params["size"]), parse_size("2m" if asked == "hugetlb" else asked)
    pages, small = size // page, page // 4096
    atomic = params.get("by", "store") not in ("store", "madvise", "load-store")
    twice = params.get("by") == "load-store" or (atomic and arm in ("stock", "off"))
    faults = pages * (1 if not twice else 2 if small == 1 else small + 1)
    time = faults * 1000 + pages * small * 600 + (pages if arm == "off" else 0)
    return {
        "page_faults": faults,
        "sys_ns": time,
        "instructions_kernel": time,
        "elapsed_ns": time + faults,
        "tlbi": pages if twice else 0,
    }


def _timeline(page: str, arm: str) -> list[list[int]]:
    """Return samples of 512 base pages: read and write, or one write alone."""
    if arm != "stock":
        return [[100_000, 0, 1]] if page == "2m" else [[2000 * i, i, 1] for i in range(512)]
    if page == "2m":
        return [[500, 0, 0], *([90_000 + 3000 * i, i, 1] for i in range(512))]
    return [[4000 * i + 1500 * write, i, write] for i in range(512) for write in (0, 1)]


def write(directory: Path, results: Iterable[Made]) -> Path:
    """Write `directory`/results.jsonl; return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    write_results(directory, [made.result() for made in results])
    return directory


def dataset(directory: Path, results: Iterable[Made], folder: Path | None = None) -> Dataset:
    """Return the dataset of `results`, written to `directory` and read again.

    The experiments are those of `folder`, if it is given, in place of the project's.
    """
    write(directory, results)
    if folder is None:
        return read_dataset(directory)
    every = sorted(
        (load_experiment(name, folder) for name in names_in(folder)),
        key=lambda experiment: (experiment.order, experiment.name),
    )
    read = read_results(directory)
    cells = [result.cell for result in read]
    loaded = load_catalog((), (cell.machine for cell in cells), (cell.arm for cell in cells))
    return make_dataset(read, replace(loaded, experiments={each.name: each for each in every}))
