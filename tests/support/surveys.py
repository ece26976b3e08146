# SPDX-License-Identifier: GPL-2.0
"""Surveys to test with: recorded ones, and those of simulated hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import ATOMICS, Findings, examine
from firsttouch.survey.host import Cache, Host
from firsttouch.survey.samples import Line, Sample, Survey, read_line
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import PAGES, Task, color_tasks, geometry_tasks, touch_tasks
from firsttouch.tables import Json

K = 1024
# Bytes of a simulated first touch.
SIZE = 1 << 21
RECORDED = Path(__file__).parent.parent / "survey/recorded"
SOME_HOST = Host(
    architecture="arm64",
    processor="a CPU",
    cpu=0,
    cpus=4,
    kernel="6.12",
    page_size=4096,
    memory=1 << 30,
    caches=(),
    thp={},
    mthp={},
    write_intent=None,
    virtual=False,
    governor=None,
    load=0.1,
    perf_event_paranoid=2,
)


def recorded(name: str) -> Survey:
    """Return tests/survey/recorded/survey-`name`.json."""
    return read_survey(RECORDED / f"survey-{name}.json")


def examined(host: Host, samples: Iterable[Sample]) -> Findings:
    """Return the findings of a survey of `host` itself."""
    return examine(Survey(host, (), tuple(samples)))


def texts(findings: Findings, about: str) -> str:
    """Return all that is said about one question."""
    return " ".join(s.text for s in conclude(findings) if s.about == about)


def host_with(*caches: Cache) -> Host:
    """Return a host with these caches and nothing else of note."""
    return dataclasses.replace(SOME_HOST, caches=caches)


def cache(level: str, ways: int | None, way_size: int) -> Cache:
    """Return a cache as sysfs has it; without `ways`, with its size alone."""
    if ways is None:
        return Cache(level, 4 * way_size, None, None, None)
    return Cache(level, ways * way_size, ways, 64, way_size // 64)


@dataclass(frozen=True)
class Silicon:
    """The two caches that a CPU really has, whatever sysfs says: both LRU."""

    l1_ways: int
    l1_way: int
    l2_ways: int
    l2_way: int

    def read_ns(self, stride: int, n: int) -> float:
        """Return the time of a dependent read of `n` lines in turn, `stride` bytes apart."""
        if n <= self.l1_ways * max(self.l1_way // stride, 1):
            return 1.5
        if n <= self.l2_ways * max(self.l2_way // stride, 1):
            return 5.0
        return 20.0

    def conflict_samples(
        self, host: Host, noise: Mapping[str, float] | None = None
    ) -> list[Sample]:
        """Return what the geometry tasks measure; `noise` adds ns per read to tasks by name."""
        samples = []
        for task in geometry_tasks(host):
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


def line(task: Task, number: int, metrics: Mapping[str, float], **params: int | str) -> Sample:
    """Return a sample as ftbench prints it."""
    printed: dict[str, Json] = {
        "experiment": task.arguments[0],
        "params": params,
        "metrics": metrics,
        "unavailable": {},
    }
    return Sample(task.name, number, read_line(printed))


def color_samples(host: Host, meeting: float, apart: float, spread: float) -> list[Sample]:
    """Return what the colour tasks measure, given ns a round for each case."""
    samples = []
    for task in color_tasks(host.geometries, host.page_size):
        _, _level, colors, hot = task.name.split()
        time = spread if colors != "1" else meeting if hot == "0" else apart
        samples += [
            line(task, number, {"user_ns": time * 1000, "sys_ns": 0}, rounds=1000)
            for number in range(4)
        ]
    return samples


N1 = Silicon(4, 16 * K, 8, 128 * K)
N1_HOST = host_with(cache("l1d", 4, 16 * K), cache("l2", 8, 128 * K))


def touches(
    host: Host,
    faults: Mapping[str, float],
    nanoseconds: Mapping[str, float],
    *,
    jitter: float = 0.0,
    rounds: int = 6,
    unavailable: Mapping[str, str] | None = None,
) -> list[Sample]:
    """Return first touches: `faults` and ns a page by kind (others: 1 and 500).

    A kind in huge pages is called ``2m store``.
    """
    samples = []
    for task in touch_tasks(host, SIZE):
        _, page, kind = task.name.split()
        pages = SIZE // (PAGES[page] or host.page_size)
        kind = kind if page == "base" else f"{page} {kind}"
        if unavailable and kind in unavailable:
            void = Line({}, {}, {"page_faults": unavailable[kind]}, {})
            samples.append(Sample(task.name, 0, void))
            continue
        for number in range(rounds):
            busy = nanoseconds.get(kind, 500) * pages * (1 + jitter * (number % 3))
            metrics = {
                "page_faults": faults.get(kind, 1) * pages,
                "elapsed_ns": busy * 1.1,
                "user_ns": 0,
                "sys_ns": busy,
            }
            samples.append(line(task, number, metrics, size=SIZE))
    return samples


def doubled(host: Host, *, jitter: float = 0.0, rounds: int = 6) -> Findings:
    """Return the findings of a host whose atomics fault twice, at 800 ns against 500."""
    faults, nanoseconds = dict.fromkeys(ATOMICS, 2.0), dict.fromkeys(ATOMICS, 800.0)
    return examined(host, touches(host, faults, nanoseconds, jitter=jitter, rounds=rounds))
