# SPDX-License-Identifier: GPL-2.0
"""What a survey runs: one ftbench command a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firsttouch.survey.host import Facts

# The kinds of first touch, the floor last; "read" is a plain load.
KINDS = ("store", "load-store", "ldadd", "swp", "cas", "casp", "ldxr", "read", "madvise")
FLOOR = "madvise"
# On x86-64 the same names stand for locked instructions.
_X86_NAMES = {
    "ldadd": "LOCK XADD",
    "swp": "XCHG",
    "cas": "LOCK CMPXCHG",
    "casp": "LOCK CMPXCHG16B",
}
# The kinds whose difference huge pages can show.
_HUGE_KINDS = ("store", "ldadd", "ldxr", "madvise")
# Sizes of page as `ftbench populate --page` names them, in bytes; None: the kernel's own.
PAGES: dict[str, int | None] = {"base": None, "64k": 65536, "2m": 2 << 20}
LEVELS = ("l1d", "l2")
# Strides at which ways are looked for where the kernel tells no geometry:
# from the smallest way of a CPU that runs Linux to a large one.
_BLIND_STRIDES = {
    "l1d": tuple(1 << shift for shift in range(11, 17)),
    "l2": tuple(1 << shift for shift in range(14, 19)),
}
_BLIND_WAYS = 16
# ftbench steps over no more than this for set-conflict.
_SPAN = 64 << 20
# Processor time comes in us, so one read's takes many; a task is repeated in
# one process, which costs more to start than it takes to read.
_CONFLICT_ROUNDS = 20_000
_CONFLICT_REPEATS = 5
_COLOR_ROUNDS = 100_000
# Hot colours to be looked at besides the one that meets a single zero page.
_OTHER_COLORS = 3
COUNTER_SETS = ("core", "cache", "tlb")
_COUNTED_SIZE = 16 << 20


def kind_name(kind: str, facts: Facts) -> str:
    """Return what a kind of touch is called on the machine of `facts`."""
    if facts.architecture == "x86-64" and kind in _X86_NAMES:
        return _X86_NAMES[kind]
    return "MADV_POPULATE_WRITE" if kind == FLOOR else kind


@dataclass(frozen=True)
class Geometry:
    """The ways of a cache, and a way's bytes, that the experiments go by."""

    level: str
    ways: int
    way_size: int

    def colors(self, page_size: int) -> int:
        """Return how many pages of different colour there are."""
        return max(self.way_size // page_size, 1)


@dataclass(frozen=True, order=True)
class Task:
    """One command: `name` is unique in a survey; `arguments` are ftbench's."""

    name: str
    arguments: tuple[str, ...]


def told(facts: Facts) -> list[Geometry]:
    """Return the geometries that the kernel tells."""
    found = []
    for level in LEVELS:
        cache = facts.cache(level)
        if cache and cache.ways and cache.way_size:
            found.append(Geometry(level, cache.ways, cache.way_size))
    return found


def strides(level: str, facts: Facts) -> tuple[int, ...]:
    """Return the strides at which the ways of `level` are looked for.

    A way's size and its neighbours where the kernel tells it: half of it must
    show twice the ways, and double the same.
    """
    for geometry in told(facts):
        if geometry.level == level:
            return (geometry.way_size // 2, geometry.way_size, geometry.way_size * 2)
    return _BLIND_STRIDES[level]


def conflict_name(stride: int, n: int) -> str:
    """Return the name of the task that reads `n` places `stride` bytes apart."""
    return f"set-conflict {stride} {n}"


def geometry_tasks(facts: Facts) -> list[Task]:
    """Return the tasks whose times per read show the caches' ways."""
    ways = {geometry.level: geometry.ways for geometry in told(facts)}
    most = 2 * max(ways.get(level, _BLIND_WAYS) for level in LEVELS) + 2
    tasks = {
        _conflict(stride, n)
        for level in LEVELS
        for stride in strides(level, facts)
        for n in range(1, min(most, _SPAN // stride) + 1)
    }
    return sorted(tasks, key=lambda task: [int(word) for word in task.name.split()[1:]])


def _conflict(stride: int, n: int, repeats: int = _CONFLICT_REPEATS) -> Task:
    return Task(
        conflict_name(stride, n),
        ("set-conflict", "--n", str(n), "--stride", str(stride),
         "--rounds", str(_CONFLICT_ROUNDS), "--loads", "dependent", "--repeat", str(repeats)),
    )  # fmt: skip


def touch_name(kind: str, page: str) -> str:
    """Return the name of the task that touches pages of size `page` first by `kind`."""
    return f"touch {page} {kind}"


def touch_tasks(facts: Facts, size: int) -> list[Task]:
    """Return the first touches of `size` bytes, by each kind and page size the kernel may have."""
    tasks = []
    for page, bytes_ in PAGES.items():
        if bytes_ is not None and bytes_ not in (*facts.mthp, _pmd_size(facts)):
            continue
        for kind in KINDS if page == "base" else _HUGE_KINDS:
            name = touch_name(kind, page)
            if kind == "read":
                tasks.append(Task(name, ("read-fault", "--size", str(size))))
            else:
                arguments = ("populate", "--by", kind, "--page", page, "--size", str(size))
                tasks.append(Task(name, arguments))
    return tasks


def _pmd_size(facts: Facts) -> int:
    return int(facts.thp.get("hpage_pmd_size", "0"))


def color_name(level: str, colors: int, hot: int) -> str:
    """Return the name of the task with hot lines of colour `hot` and so many zero pages."""
    return f"colors {level} {colors} {hot}"


def hot_colors(colors: int) -> list[int]:
    """Return the hot colours to be measured: 0, which a single zero page has, and some others."""
    step = max(colors // (_OTHER_COLORS + 1), 1)
    return [0, *list(range(step, colors, step))[:_OTHER_COLORS]]


def color_tasks(geometries: Sequence[Geometry], page_size: int) -> list[Task]:
    """Return what shows the difference between one zero page and one of each colour."""
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


ZERO_PAGES = "zero pages"


def zero_pages_task() -> Task:
    """Return the task that shows how many zero pages the kernel has, to those who may see frames.

    The cache that it fills is the smallest there can be: its times mean nothing.
    """
    return Task(
        ZERO_PAGES,
        ("zero-conflict", "--ways", "1", "--way_size", "4096", "--rounds", "1"),
    )


def counted_name(counters: str, what: str) -> str:
    """Return the name of the task that reads the set `counters` while it does `what`."""
    return f"counters {counters} {what}"


def counter_tasks(geometries: Sequence[Geometry]) -> list[Task]:
    """Return the tasks that read hardware counters: two first touches, and a set conflict."""
    work: dict[str, tuple[str, ...]] = {
        kind: ("populate", "--by", kind, "--page", "base", "--size", str(_COUNTED_SIZE))
        for kind in ("store", "ldadd")
    }
    for geometry in geometries:
        if geometry.level == "l1d":
            for what, n in (("hits", geometry.ways), ("conflict", geometry.ways + 1)):
                work[what] = _conflict(geometry.way_size, n, 1).arguments
    return [
        Task(counted_name(counters, what), (*arguments, "--counters", counters))
        for counters in COUNTER_SETS
        for what, arguments in work.items()
    ]
