# SPDX-License-Identifier: GPL-2.0
"""Surveys to test with: a recorded one, and those of made-up hosts."""

from collections.abc import Mapping
from pathlib import Path

from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import ATOMICS
from firsttouch.survey.tasks import PAGES, SETTLE, SIZE, Sample, Survey, all_tasks
from firsttouch.vm.host import Condition, Host, HostCache

# Recorded on a virtual machine.
SURVEY = Path(__file__).parent.parent / "data/survey.jsonl"
HOST = Host(
    architecture="arm64",
    processor="a CPU",
    kernel="6.12",
    cpus=("0",),
    before=Condition(0.1, 0, ""),
    online=4,
    page_size=4096,
    caches=(HostCache("l1d", 64 << 10, 4, 64), HostCache("l2", 1 << 20, 8, 64)),
    thp={"enabled": "madvise", "hpage_pmd_size": str(2 << 20)},
    mthp={},
    virtual=False,
)
TWICE = dict.fromkeys(ATOMICS, 2.0)
SLOWER = dict.fromkeys(ATOMICS, 800.0)


def recorded() -> Survey:
    """Return the recorded survey."""
    return read_survey(SURVEY)


def made(
    host: Host = HOST,
    faults: Mapping[str, float] | None = None,
    nanoseconds: Mapping[str, float] | None = None,
    *,
    jitter: float = 0.0,
    rounds: int = 6,
    unavailable: Mapping[str, str] | None = None,
) -> Survey:
    """Return a survey: `faults` and ns a page by kind (others: 1 and 500); without 0 rounds.

    A kind in huge pages is called ``2m store``. A read takes 1.5, 5 and 20 ns if it hits in
    the L1D, in the L2 and in neither.
    """
    tasks = tuple(task for task in all_tasks(host) if not task.name.startswith(SETTLE))
    samples = []
    for task in tasks:
        first, *words = task.name.split()
        kind = " ".join(words).removeprefix("base ")
        if unavailable and kind in unavailable:
            samples.append(Sample(task.name, 0, unavailable=unavailable[kind]))
            continue
        for number in range(rounds):
            busy = 1 + jitter * (number % 3)
            if first == "conflict":
                time = 20.0 if kind == "l2 9" else 5.0 if kind == "l1d 5" else 1.5
                metrics = {"user_ns": time * busy * 1000, "sys_ns": 0.0, "reads": 1000.0}
            else:
                pages = SIZE // (PAGES[words[0]] or host.page_size)
                busy *= (nanoseconds or {}).get(kind, 500) * pages
                metrics = {
                    "page_faults": (faults or {}).get(kind, 1) * pages,
                    "elapsed_ns": busy * 1.1,
                    "user_ns": 0.0,
                    "sys_ns": busy,
                    "size": SIZE,
                }
            samples.append(Sample(task.name, number, metrics))
    return Survey(host, tasks, tuple(samples))
