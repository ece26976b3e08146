# SPDX-License-Identifier: GPL-2.0
"""Results of every experiment, made by formulas, so that tests can assert what is drawn."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset, read_dataset
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.experiments import (
    Experiment,
    Params,
    Value,
    experiment_names,
    load_experiment,
)
from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import FILE_NAME, read_results
from firsttouch.quantities import parse_size
from firsttouch.tables import Json

_DIGESTS = {
    "initial RAM disk": "c" * 64,
    "ftbench": "d" * 64,
    "device tree": "e" * 64,
    "PMU": "f" * 64,
}


@dataclass(frozen=True)
class Made:
    """One line of results.jsonl before it is one."""

    experiment: str
    params: Params
    arm: str
    metrics: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)
    release: str = "6.12"
    machine: str = "neoverse-n1"
    kernel_version: str = "6.12.1"
    qemu: str = "QEMU emulator version 7.2.22"
    digests: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()
    more: Mapping[str, Json] = field(default_factory=dict)

    def document(self) -> dict[str, Json]:
        """Return the line as an object of schema 2."""
        sets = " ".join(f"--set {name}={value}" for name, value in self.params.items())
        image = ("a" if self.arm in ("stock", "thp-madvise", "mthp-16k", "mthp-64k") else "b") * 64
        return {
            "schema": 2,
            "key": f"{self.experiment}{self.params}{self.arm}{self.release}",
            "cell": {
                "release": self.release,
                "arm": self.arm,
                "machine": self.machine,
                "experiment": self.experiment,
                "params": dict(self.params),
            },
            "lines": [
                {"metrics": dict(self.metrics), "unavailable": dict(self.missing), **self.more}
            ],
            "counts": None,
            "provenance": {
                "kernel_version": self.kernel_version,
                "qemu": self.qemu,
                "compiler": "aarch64-linux-gnu-gcc 12.2.0",
                "digests": {"kernel image": image, **_DIGESTS, **self.digests},
                "boot": f"console=ttyAMA0 {self.arm}",
                "commands": list(self.commands or [f"/ftbench {self.experiment} {self.params}"]),
                "command": f"firsttouch lab --release {self.release} --machine {self.machine} "
                f"--experiment {self.experiment} --arm {self.arm} {sets}",
            },
        }


def experiments(folder: Path) -> Path:
    """Return a copy of experiments/ in `folder`, without those whose cells a machine decides."""
    copy = Path(shutil.copytree(EXPERIMENTS, folder / "experiments"))
    for name in experiment_names(copy):
        if '"@' in (copy / f"{name}.toml").read_text():
            (copy / f"{name}.toml").unlink()
    return copy


def plan(folder: Path, names: Iterable[str] = (), **only: Value) -> list[Made]:
    """Return a result for each cell of the named experiments (all) whose params match `only`."""
    loaded = [load_experiment(name, folder) for name in names or experiment_names(folder)]
    return [
        result(experiment, params, arm)
        for experiment in loaded
        for params in experiment.combinations()
        if only.items() <= params.items()
        for arm in experiment.arms
    ]


def result(experiment: Experiment, params: Params, arm: str, release: str = "6.12") -> Made:
    """Return what came of one cell."""
    metrics = _metrics(experiment.name, params, arm)
    wanted = {metric.name for metric in experiment.metrics}
    missing = {name: f"no model of {name}" for name in sorted(wanted - metrics.keys())}
    if params.get("by") == "casp":
        metrics, missing = {}, dict.fromkeys(sorted(wanted), "this CPU has no CASP")
    more: dict[str, Json] = {}
    if experiment.name == "fault-timeline":
        more = {"timeline": _timeline(str(params["page"]), arm)}
    return Made(
        experiment.name, params, arm, metrics, missing, release,
        kernel_version=f"{release}.1", more=more,
    )  # fmt: skip


def without_metrics(made: Made, why: Mapping[str, str]) -> Made:
    """Return a result of the same cell that measured nothing, and why."""
    return replace(made, metrics={}, missing=why)


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
    lines = "".join(json.dumps(made.document()) + "\n" for made in results)
    (directory / FILE_NAME).write_text(lines)
    return directory


def dataset(directory: Path, results: Iterable[Made], folder: Path | None = None) -> Dataset:
    """Return the dataset of `results`, written to `directory` and read again."""
    write(directory, results)
    return read(directory, folder) if folder else read_dataset(directory)


def read(directory: Path, folder: Path) -> Dataset:
    """Return the dataset of results, by the experiments of `folder` in place of the project's."""
    results = read_results(directory)
    every = sorted(
        (load_experiment(name, folder) for name in experiment_names(folder)),
        key=lambda experiment: (experiment.order, experiment.name),
    )
    cells = [result.cell for result in results]
    loaded = load_catalog((), (cell.machine for cell in cells), (cell.arm for cell in cells))
    return make_dataset(results, replace(loaded, experiments={each.name: each for each in every}))
