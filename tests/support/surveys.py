# SPDX-License-Identifier: GPL-2.0
"""Surveys to test with: recorded ones, and those of machines that are simulated."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.survey.host import Cache, Facts
from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.tasks import Task, color_tasks, geometry_tasks, told
from firsttouch.survey.samples import Sample
from firsttouch.survey.sentences import conclude

RECORDED = Path(__file__).parent.parent / "survey/recorded"


def read_survey(file: Path) -> tuple[Facts, list[Sample], bool]:
    """Return the facts and samples of a survey.json, and whether its time is virtual."""
    survey = json.loads(file.read_text())
    assert survey["schema"] == 1
    fields = survey["facts"]
    fields["caches"] = tuple(Cache(**cache) for cache in fields["caches"])
    fields["mthp"] = {int(size): policy for size, policy in fields["mthp"].items()}
    samples = [Sample(**sample) for sample in survey["samples"]]
    return Facts(**fields), samples, survey["where"]["kind"] == "guest"


def recorded(name: str) -> Findings:
    """Return the findings of recorded/survey-`name`.json."""
    facts, samples, virtual_time = read_survey(RECORDED / f"survey-{name}.json")
    return examine(facts, samples, virtual_time=virtual_time)


def texts(findings: Findings, about: str) -> str:
    """Return all that is said about one question."""
    return " ".join(s.text for s in conclude(findings) if s.about == about)


def facts(caches: Iterable[Cache] = (), *, architecture: str = "arm64", **changes: Any) -> Facts:
    """Return a machine with these caches and nothing else of note."""
    fields: dict[str, Any] = {
        "architecture": architecture,
        "processor": "a CPU",
        "cpu": 0,
        "cpus": 4,
        "kernel": "6.12",
        "page_size": 4096,
        "memory": 1 << 30,
        "caches": tuple(caches),
        "thp": {},
        "mthp": {},
        "write_intent": None,
        "zero_page_colors": None,
        "virtual": False,
        "governor": None,
        "load": 0.1,
        "perf_event_paranoid": 2,
    }
    return Facts(**{**fields, **changes})


def cache(level: str, ways: int | None, way_size: int) -> Cache:
    """Return a cache as a kernel tells it; without `ways`, as one that tells the size alone."""
    if ways is None:
        return Cache(level, 4 * way_size, None, None, None)
    return Cache(level, ways * way_size, ways, 64, way_size // 64)


@dataclass(frozen=True)
class Silicon:
    """Two caches that are there, whatever the kernel tells: LRU, a page's time aside."""

    l1_ways: int
    l1_way: int
    l2_ways: int
    l2_way: int

    def read_ns(self, stride: int, n: int) -> float:
        """Return the time of a dependent read of `n` places in turn, `stride` bytes apart."""
        if n <= self.l1_ways * max(self.l1_way // stride, 1):
            return 1.5
        if n <= self.l2_ways * max(self.l2_way // stride, 1):
            return 5.0
        return 20.0

    def conflict_samples(
        self, machine: Facts, noise: dict[str, float] | None = None
    ) -> list[Sample]:
        """Return what the geometry tasks measure; `noise` adds ns per read to tasks by name."""
        samples = []
        for task in geometry_tasks(machine):
            _, stride, n = task.name.split()
            time = self.read_ns(int(stride), int(n)) + (noise or {}).get(task.name, 0.0)
            samples += [
                line(
                    task,
                    number,
                    {"user_ns": time * 1000 * int(n), "sys_ns": 0, "reads": 1000 * int(n)},
                )
                for number in range(3)
            ]
        return samples


def line(task: Task, number: int, metrics: dict[str, float], **params: Any) -> Sample:
    """Return a sample as ftbench prints it."""
    return Sample(
        task.name,
        number,
        {"experiment": task.arguments[0], "params": params, "metrics": metrics, "unavailable": {}},
    )


def color_samples(machine: Facts, meeting: float, apart: float, spread: float) -> list[Sample]:
    """Return what the colour tasks measure, given ns a round for each case."""
    samples = []
    for task in color_tasks(told(machine), machine.page_size):
        _, _level, colors, hot = task.name.split()
        time = spread if colors != "1" else meeting if hot == "0" else apart
        samples += [
            line(task, number, {"user_ns": time * 1000, "sys_ns": 0}, rounds=1000)
            for number in range(4)
        ]
    return samples
