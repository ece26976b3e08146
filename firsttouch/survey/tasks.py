# SPDX-License-Identifier: GPL-2.0
"""The tasks of a survey: one ftbench command each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from firsttouch.catalog.experiments import Experiment
from firsttouch.output.names import format_params, varying
from firsttouch.survey.host import LEVELS, Geometry, Host

# Kinds of first touch; "read" is a plain load, and the floor is the cheapest way to populate.
KINDS = ("store", "load-store", "ldadd", "swp", "cas", "casp", "ldxr", "read", "madvise")
FLOOR = "madvise"
# The names of these kinds on x86-64.
_X86_NAMES = {
    "ldadd": "LOCK XADD",
    "swp": "XCHG",
    "cas": "LOCK CMPXCHG",
    "casp": "LOCK CMPXCHG16B",
}
# The kinds to measure with huge pages.
_HUGE_KINDS = ("store", "ldadd", "ldxr", "madvise")
# Page sizes in bytes by their names in `ftbench populate --page`; None: the kernel's own.
PAGES: dict[str, int | None] = {"base": None, "64k": 65536, "2m": 2 << 20}
# Strides to try if sysfs has no geometry: from the smallest way size of a CPU
# that runs Linux to a large one.
_BLIND_STRIDES = {
    "l1d": tuple(1 << shift for shift in range(11, 17)),
    "l2": tuple(1 << shift for shift in range(14, 19)),
}
_BLIND_WAYS = 16
# Bytes that ftbench maps for set-conflict at most.
_SPAN = 64 << 20
# Processor time has a resolution of 1 us, so a task times many reads at once.
# Starting a process takes longer than the reads, so one process repeats them.
_CONFLICT_ROUNDS = 20_000
_CONFLICT_REPEATS = 5
_COLOR_ROUNDS = 100_000
# The number of hot colours to measure besides that of the single zero page.
_OTHER_COLORS = 3
COUNTER_SETS = ("core", "cache", "tlb")
_COUNTED_SIZE = 16 << 20
# Sizes of first touches in bytes: smaller ones are too short, larger ones show nothing new.
_SIZES = tuple(1 << shift for shift in range(23, 29))
PROBE_SIZE = _SIZES[0]
# The size is chosen so that this number of rounds fits into the time.
_WANTED_ROUNDS = 12
# Mean cost of a touch over all kinds, as a multiple of a store's.
_COST_IN_STORES = 1.5
ZERO_PAGES = "zero pages"
# The metric of an experiment that measures operations of mm.
_OPERATIONS = "operations"
# Options of experiments: what changes the host is left out, and a file is where anybody may write.
_SETS_THP, _DIRECTORY = "--set-thp", "--dir"
_OPERATION = "operation "


@dataclass(frozen=True, order=True)
class Task:
    """One command: `name` is unique in a survey; `arguments` are ftbench's."""

    name: str
    arguments: tuple[str, ...]


def kind_name(kind: str, host: Host) -> str:
    """Return the name of a kind of touch on the architecture of `host`."""
    if host.architecture == "x86-64" and kind in _X86_NAMES:
        return _X86_NAMES[kind]
    return "MADV_POPULATE_WRITE" if kind == FLOOR else kind


def strides(level: str, host: Host) -> tuple[int, ...]:
    """Return the strides that are tried to find the ways of `level`.

    If sysfs has the way size, they are half of it, which must show twice the
    ways, the way size, and twice of it, which must show the same ways.
    """
    geometry = host.geometry(level)
    if geometry:
        return (geometry.way_size // 2, geometry.way_size, geometry.way_size * 2)
    return _BLIND_STRIDES[level]


def conflict_name(stride: int, n: int) -> str:
    """Return the name of the task that reads `n` lines `stride` bytes apart."""
    return f"set-conflict {stride} {n}"


def most_lines(stride: int, host: Host) -> int:
    """Return the largest number of lines to read in turn, `stride` bytes apart."""
    ways = {geometry.level: geometry.ways for geometry in host.geometries}
    most = 2 * max(ways.get(level, _BLIND_WAYS) for level in LEVELS) + 2
    return min(most, _SPAN // stride)


def geometry_tasks(host: Host) -> list[Task]:
    """Return the tasks whose time per read shows the ways of the caches.

    The most important come first: those with a stride of a way size.
    """
    ways = [geometry.way_size for geometry in host.geometries]
    tried = {stride for level in LEVELS for stride in strides(level, host)}
    return [
        _conflict(stride, n)
        for stride in sorted(tried, key=lambda stride: (stride not in ways, stride))
        for n in range(1, most_lines(stride, host) + 1)
    ]


def _conflict(stride: int, n: int, repeats: int = _CONFLICT_REPEATS) -> Task:
    return Task(
        conflict_name(stride, n),
        ("set-conflict", "--n", str(n), "--stride", str(stride),
         "--rounds", str(_CONFLICT_ROUNDS), "--loads", "dependent", "--repeat", str(repeats)),
    )  # fmt: skip


def touch_name(kind: str, page: str) -> str:
    """Return the name of the task that touches pages of size `page` first by `kind`."""
    return f"touch {page} {kind}"


def touch_tasks(host: Host, size: int) -> list[Task]:
    """Return the first touches of `size` bytes, by each kind and page size of the kernel.

    The first task with huge pages after base pages has extra costs: in a virtual
    machine, for example, the host may have to provide the memory again. So a
    task without figures ("settle") runs before those that count.
    """
    tasks = []
    for page, fixed_size in PAGES.items():
        if fixed_size is not None and fixed_size not in (*host.mthp, host.pmd_size):
            continue
        if fixed_size is not None:
            settle = ("populate", "--by", FLOOR, "--page", page, "--size", str(size))
            tasks.append(Task(f"settle {page} {FLOOR}", settle))
        for kind in KINDS if page == "base" else _HUGE_KINDS:
            name = touch_name(kind, page)
            if kind == "read":
                tasks.append(Task(name, ("read-fault", "--size", str(size))))
            else:
                arguments = ("populate", "--by", kind, "--page", page, "--size", str(size))
                tasks.append(Task(name, arguments))
    return tasks


def operation_tasks(experiments: Iterable[Experiment]) -> list[Task]:
    """Return the cells of the quick forms of experiments that measure operations of mm.

    Those that need a device, the files of a guest or several CPUs are left out: a survey keeps
    to one CPU.
    """
    tasks = []
    for experiment in experiments:
        counted = any(metric.name == _OPERATIONS for metric in experiment.metrics)
        options = [option for option in experiment.options if option != _SETS_THP]
        if not counted or experiment.root or options[:1] not in ([], [_DIRECTORY]):
            continue
        if options:
            options = [_DIRECTORY, tempfile.gettempdir()]
        quick = experiment.quickly()
        for params in quick.combinations():
            if params.get("cpus", 1) != 1:
                continue
            words = [word for name, value in params.items() for word in (f"--{name}", str(value))]
            name = f"{_OPERATION}{experiment.name} {format_params(varying(quick, params))}"
            tasks.append(Task(name, (experiment.runs, *options, *words)))
    return tasks


def operation_of(task: Task) -> str:
    """Return what a task of `operation_tasks` measures; "" for another task."""
    return task.name.removeprefix(_OPERATION) if task.name.startswith(_OPERATION) else ""


def probe_task() -> Task:
    """Return the task whose time decides the size of the first touches; see `touch_size`."""
    arguments = ("populate", "--by", "store", "--page", "base", "--size", str(PROBE_SIZE))
    return Task("probe", (*arguments, "--repeat", "3"))


def touch_size(host: Host, probe_ns: float, seconds: float) -> int:
    """Return the number of bytes to touch so that the wanted rounds fit into `seconds`.

    `probe_ns` is the time of the probe: PROBE_SIZE bytes, first touched by stores.
    """
    touches = len(touch_tasks(host, 0))
    per_byte = probe_ns / PROBE_SIZE * _COST_IN_STORES
    fits = seconds * 1e9 / (_WANTED_ROUNDS * touches * per_byte)
    # At most a quarter of the available memory, so that nothing is swapped out.
    most = min(fits, host.memory / 4)
    return max((size for size in _SIZES if size <= most), default=_SIZES[0])


def color_name(level: str, colors: int, hot: int) -> str:
    """Return the name of the task with hot lines of colour `hot` and `colors` zero pages."""
    return f"colors {level} {colors} {hot}"


def hot_colors(colors: int) -> list[int]:
    """Return the hot colours to measure: 0, the colour of a single zero page, and some others."""
    step = max(colors // (_OTHER_COLORS + 1), 1)
    return [0, *list(range(step, colors, step))[:_OTHER_COLORS]]


def color_tasks(geometries: Sequence[Geometry], page_size: int) -> list[Task]:
    """Return the tasks with one zero page, and with one zero page of each colour."""
    return [
        Task(
            color_name(geometry.level, zero_pages, hot),
            ("colors-here", "--colors", str(zero_pages), "--hot_color", str(hot),
             "--level", geometry.level, "--ways", str(geometry.ways),
             "--way_size", str(geometry.way_size), "--rounds", str(_COLOR_ROUNDS)),
        )
        for geometry in geometries
        if (colors := geometry.colors(page_size)) > 1
        for zero_pages in (1, colors)
        for hot in hot_colors(colors)
    ]  # fmt: skip


def zero_pages_task() -> Task:
    """Return the task that counts the kernel's zero pages by page frame, which only root sees.

    Its cache has the smallest possible size, so its times mean nothing.
    """
    return Task(
        ZERO_PAGES,
        ("zero-conflict", "--ways", "1", "--way_size", "4096", "--rounds", "1"),
    )


def counted_name(counters: str, work: str) -> str:
    """Return the name of the task that reads the set `counters` during `work`."""
    return f"counters {counters} {work}"


def counter_tasks(geometries: Sequence[Geometry]) -> list[Task]:
    """Return the tasks that read hardware counters: two kinds of touch, and a set conflict."""
    works: dict[str, tuple[str, ...]] = {
        kind: ("populate", "--by", kind, "--page", "base", "--size", str(_COUNTED_SIZE))
        for kind in ("store", "ldadd")
    }
    for geometry in geometries:
        if geometry.level == "l1d":
            for work, n in (("hits", geometry.ways), ("conflict", geometry.ways + 1)):
                works[work] = _conflict(geometry.way_size, n, 1).arguments
    return [
        Task(counted_name(counters, work), (*arguments, "--counters", counters))
        for counters in COUNTER_SETS
        for work, arguments in works.items()
    ]
