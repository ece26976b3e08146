# SPDX-License-Identifier: GPL-2.0
"""Results of every experiment, made by formulas, so that what is drawn of them can be asserted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firsttouch.catalog.experiments import Experiment, load_experiment
from firsttouch.quantities import parse_size
from firsttouch.analysis.dataset import EXPERIMENTS

# Cache experiments with few values, whatever the plan of the day has.
_CACHES = {
    "set-conflict": ("color", {"n": list(range(1, 11)), "rounds": 1000, "stride": 16384}),
    "zero-conflict": (
        "color",
        {"hot_color": [0, 1, 2, 3], "level": ["l1d", "l2"], "rounds": 1000},
    ),
    "zero-scan": ("on", {"stride": [64, 4096], "working_set": [0, 65536], "rounds": 100}),
}
ZERO_COLOR = 2
COLORS = 4


def experiments(folder: Path) -> Path:
    """Return a copy of experiments/ in `folder`, with cache experiments of known shape."""
    copy = Path(shutil.copytree(EXPERIMENTS, folder / "experiments"))
    for name, (compare, parameters) in _CACHES.items():
        values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in parameters.items())
        metrics = "".join(
            f'[[metrics]]\nname = "{metric}"\nunit = "misses"\nshown = true\n'
            for metric in ("l1d_misses", "l2_misses")
        )
        (copy / f"{name}.toml").write_text(
            f'title = "{name}"\nquestion = "?"\ndefault = true\n'
            f'arms = ["stock", "{compare}"]\ncompare = "{compare}"\n'
            f"[parameters]\n{values}{metrics}"
        )
    return copy


def plan(folder: Path, names: Iterable[str] = (), **only: Any) -> list[dict[str, Any]]:
    """Return a result for each cell of the named experiments (all) whose params match `only`."""
    names = list(names) or [file.stem for file in sorted(folder.glob("*.toml"))]
    loaded = [load_experiment(name, folder) for name in names]
    return [
        result(experiment, params, arm)
        for experiment in loaded
        for params in experiment.combinations()
        if only.items() <= params.items()
        for arm in experiment.arms
    ]


def result(
    experiment: Experiment, params: dict[str, Any], arm: str, release: str = "6.12"
) -> dict[str, Any]:
    """Return the line of results.jsonl of one cell."""
    metrics = _metrics(experiment.name, params, arm)
    wanted = {metric.name for metric in experiment.metrics}
    missing = {name: f"no model of {name}" for name in sorted(wanted - metrics.keys())}
    if params.get("by") == "casp":
        metrics, missing = {}, dict.fromkeys(sorted(wanted), "this CPU has no CASP")
    made: dict[str, Any] = {
        "schema": 1,
        "cell": f"{experiment.name}{params}{arm}{release}",
        "release": release,
        "kernel_version": f"{release}.1",
        "arm": arm,
        "machine": "neoverse-n1",
        "experiment": experiment.name,
        "params": params,
        "metrics": metrics,
        "unavailable": sorted(missing),
        "reasons": missing,
        "provenance": {
            "qemu": "QEMU emulator version 7.2.22",
            "gcc": "aarch64-linux-gnu-gcc 12.2.0",
            "image": ("a" if arm == "stock" else "b") * 64,
            "init": "c" * 64,
            "files": {"/ftbench": "d" * 64},
            "disk": None,
            "boot": f"console=ttyAMA0 {arm}",
            "commands": [f"/ftbench {experiment.runs} {params}"],
            "command": f"firsttouch lab --release {release} --machine neoverse-n1 "
            f"--experiment {experiment.name} --arm {arm} "
            + " ".join(f"--set {name}={value}" for name, value in params.items()),
        },
    }
    if experiment.name == "fault-timeline":
        made |= {"timeline": _timeline(str(params["page"]), arm), "timeline_lost": 0}
    return made


def _metrics(name: str, params: dict[str, Any], arm: str) -> dict[str, int]:
    """Return what a cell measures: two faults for one where the arm lacks write-intent faults."""
    rounds = int(params.get("rounds", 1))
    if name == "set-conflict":
        n = int(params["n"])
        return {"l1d_misses": n if n <= 4 else n * rounds, "l2_misses": n}
    if name == "zero-conflict":
        if arm == "stock":
            misses = 9 * rounds if params["hot_color"] == ZERO_COLOR else 9
        else:
            misses = 9 * rounds // COLORS
        return {"l1d_misses": misses, "l2_misses": misses}
    if name == "zero-scan":
        # Five powers of ten apart, and none at all: what an axis must bear.
        misses = 16_400 * rounds if params["working_set"] else 20
        more = 1 if arm == "stock" else 4
        return {"l1d_misses": misses * more, "l2_misses": misses * (more - 1)}
    if name == "boot":
        return {"boot_us": 128_000 + 70 * (arm != "stock")}
    if name == "programs":
        return {"page_faults": 3000, "instructions_kernel": 30_000_000, "tlbi": 1000}
    if name == "openjdk-pretouch":
        heap = parse_size(str(params["heap"])) // 4096
        twice = {"stock": 2, "rmw": 2, "on": 1}[arm] if params["pretouch"] == "on" else 0
        faults = 5000 + heap * twice
        return {"page_faults": faults, "heap_pages": heap, "instructions_kernel": faults * 1000}
    size, page = int(params["size"]), parse_size(params.get("page", "4k"))
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


def write(directory: Path, results: Iterable[dict[str, Any]]) -> Path:
    """Write `directory`/results.jsonl; return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(result, sort_keys=True) + "\n" for result in results)
    (directory / "results.jsonl").write_text(lines)
    return directory
