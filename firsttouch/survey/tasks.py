# SPDX-License-Identifier: GPL-2.0
"""The tasks of a survey, one ftbench command each, and their samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from firsttouch.catalog.experiments import Value
from firsttouch.lab.cells import HOST, Cell
from firsttouch.vm.host import LEVELS, Host

# The arm of cells on the host's own kernel.
ARM = "running"
# Kinds of first touch; "read" is a plain load, "shared" a store to shared memory that is there,
# and the floor is the cheapest way to populate.
KINDS = ("store", "load-store", "ldadd", "swp", "cas", "casp", "ldxr", "read", "shared", "madvise")
FLOOR = "madvise"
# How the name of a task without figures begins.
SETTLE = "settle"
# The names of these kinds on x86-64.
_X86_NAMES = {
    "ldadd": "LOCK XADD",
    "swp": "XCHG",
    "cas": "LOCK CMPXCHG",
    "casp": "LOCK CMPXCHG16B",
}
# The kinds to measure with huge pages.
_HUGE_KINDS = ("store", "ldadd", "ldxr", FLOOR)
# Page sizes in bytes by their names in `ftbench populate --page`; 0: the kernel's own.
PAGES = {"base": 0, "64k": 65536, "2m": 2 << 20}
# Bytes of a first touch: takes milliseconds, which the clock of processor time resolves.
SIZE = 32 << 20
# Processor time has a resolution of 1 us, so a task times many reads at once.
# Starting a process takes longer than the reads, so one process repeats them.
_CONFLICT = ("--rounds", "20000", "--loads", "dependent", "--repeat", "5")


@dataclass(frozen=True)
class Task:
    """One command: `name` is unique in a survey; `arguments` are ftbench's."""

    name: str
    arguments: tuple[str, ...]

    def cell(self, host: Host) -> Cell:
        """Return the cell that the task measures: its parameters are the arguments."""
        experiment, *words = self.arguments
        params: dict[str, Value] = {
            name[2:]: int(value) if value.isdigit() else value
            for name, value in zip(words[::2], words[1::2], strict=True)
        }
        return Cell(host.kernel, ARM, HOST, experiment, params, timing="host")


def kind_name(kind: str, host: Host) -> str:
    """Return the name of a kind of touch on the architecture of `host`."""
    if host.architecture == "x86-64" and kind in _X86_NAMES:
        return _X86_NAMES[kind]
    return {FLOOR: "MADV_POPULATE_WRITE", "shared": "store, shared"}.get(kind, kind)


def touch_name(kind: str, page: str) -> str:
    """Return the name of the task that touches pages of size `page` first by `kind`."""
    return f"touch {page} {kind}"


def all_tasks(host: Host) -> list[Task]:
    """Return all tasks of a survey, those without figures, too."""
    return [*touch_tasks(host), *conflict_tasks(host)]


def selected(
    experiments: Collection[str], settings: Mapping[str, Collection[str]]
) -> Callable[[Task, Cell], bool]:
    return lambda _, cell: (
        (not experiments or cell.experiment in experiments)
        and all(str(cell.params.get(name)) in values for name, values in settings.items())
    )


def touch_tasks(host: Host) -> list[Task]:
    """Return the first touches by each kind and page size of the kernel.

    The first task with huge pages after base pages has extra costs: in a virtual
    machine, for example, the host may have to provide the memory again. So a
    task without figures ("settle") runs before those that count.
    """
    tasks = []
    for page, size in PAGES.items():
        if size and not host.maps(size):
            continue
        if size:
            tasks.append(Task(f"{SETTLE} {page}", _touch(FLOOR, page)))
        for kind in _HUGE_KINDS if size else KINDS:
            tasks.append(Task(touch_name(kind, page), _touch(kind, page)))
    return tasks


def _touch(kind: str, page: str) -> tuple[str, ...]:
    if kind == "read":
        return ("read-fault", "--size", str(SIZE))
    if kind == "shared":
        return ("page-cache", "--operation", "stores", "--memory", "shmem", "--size", str(SIZE))
    return ("populate", "--by", kind, "--page", page, "--size", str(SIZE))


def conflict_name(level: str, lines: int) -> str:
    """Return the name of the task that reads `lines` lines of one set in turn."""
    return f"conflict {level} {lines}"


def conflict_tasks(host: Host) -> list[Task]:
    """Return reads of as many lines of one set as the cache has ways, and of one more."""
    return [
        Task(
            conflict_name(cache.level, lines),
            ("set-conflict", "--n", str(lines), "--stride", str(cache.way_size), *_CONFLICT),
        )
        for level in LEVELS
        if (cache := host.cache(level))
        for lines in (cache.ways, cache.ways + 1)
    ]


@dataclass(frozen=True)
class Sample:
    """One run of a task: what ftbench measured, why it is `unavailable` here, or its `error`.

    A task that repeats itself has several samples in one round. `round` counts
    from 0. Round 0 is a warm-up, because it takes memory from the allocator for
    the first time. Medians leave it out. `metrics` has the parameter ``size``, too.
    """

    task: str
    round: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    unavailable: str = ""
    error: str = ""

    @property
    def busy_ns(self) -> float:
        """The processor time in ns, user and kernel together.

        The scheduler accounts this sum exactly, without the time of other
        tasks. Most kernels divide it into user and system time by ticks.
        """
        return self.metrics["user_ns"] + self.metrics["sys_ns"]


@dataclass(frozen=True)
class Survey:
    """The tasks of a survey and their samples.

    `ftbench` is the digest of the program that ran. `interrupted` is true if the user
    ended the survey before its time.
    """

    host: Host
    tasks: tuple[Task, ...]
    samples: tuple[Sample, ...]
    ftbench: str = ""
    interrupted: bool = False

    def measured(self, task: str) -> list[Sample]:
        """Return the samples of a task with figures; the warm-up if time ran out in round 0."""
        samples = [sample for sample in self.samples if sample.task == task and sample.metrics]
        return [sample for sample in samples if sample.round] or samples

    def reason(self, task: str) -> str:
        """Return why a task has no figures."""
        for sample in self.samples:
            if sample.task == task:
                return sample.error or sample.unavailable or "nothing was measured"
        if self.interrupted:
            return "the survey was interrupted"
        return "not enough time, use a larger --seconds"
