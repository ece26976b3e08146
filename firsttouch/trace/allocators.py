# SPDX-License-Identifier: GPL-2.0
"""Allocators of memory: how a process shows its own, and what makes it keep freed memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from firsttouch.trace.totals import Outcome


@dataclass(frozen=True)
class Allocator:
    """An allocator; `mark` is the beginning of a file that the process maps, or of a name.

    `environment` makes it keep what is freed, `advice` says it if no variable does.
    `huge` makes it ask for huge pages, where the kernel gives them to who asks, from the
    version `huge_since` on. One with a `heap` takes memory by brk(2), the others map it. One
    that is `beside` malloc(3) of the C library leaves that in use. `keeps` tells whether its
    setting keeps memory of the C library's malloc(3), and other memory.
    """

    name: str
    mark: str
    environment: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    huge: Mapping[str, str] = field(default_factory=dict)
    huge_since: str = ""
    heap: bool = False
    beside: bool = False
    keeps: tuple[bool, bool] = (True, True)


# Neither mmap(2) for large blocks, nor a top of the heap that shrinks: 1 TiB is never free.
GLIBC = Allocator(
    "glibc",
    "libc.so.6",
    {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776"},
    huge={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    huge_since=" 2.35+",
    heap=True,
    keeps=(True, False),
)

# Its program is known by a section, too: memory has names where the kernel has them, from 1.25 on.
# The setting makes it give back by MADV_FREE, after which a page stays until memory is short.
GO = Allocator("Go", "[anon: Go", {"GODEBUG": "madvdontneed=0"}, beside=True, keeps=(False, True))

# The first whose mark there is counts: these replace malloc of the C library, the last one.
ALLOCATORS = (
    Allocator(
        "JVM",
        "libjvm.so",
        {},
        "java with -Xms as large as -Xmx",
        huge={"JAVA_TOOL_OPTIONS": "-XX:+UseTransparentHugePages"},
        beside=True,
        keeps=(False, True),
    ),
    GO,
    Allocator(
        "jemalloc",
        "libjemalloc",
        {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"},
        huge={"MALLOC_CONF": "thp:always"},
    ),
    # It unmaps large blocks whatever its setting.
    Allocator("mimalloc", "libmimalloc", keeps=(False, False)),
    Allocator("tcmalloc", "libtcmalloc", {"TCMALLOC_RELEASE_RATE": "0"}),
    GLIBC,
)


def allocator_with(used: Allocator | None, path: str) -> Allocator | None:
    """Return the allocator of a process that had `used`, and maps a file or named memory, too."""
    return next((each for each in ALLOCATORS if each is used or is_of(each, path)), None)


def is_of(used: Allocator, path: str) -> bool:
    return (path if path.startswith("[") else path.rpartition("/")[2]).startswith(used.mark)


def allocator(name: str) -> Allocator | None:
    return next((each for each in ALLOCATORS if each.name == name), None)


@dataclass
class Part:
    """Pages of malloc(3) from the first to before the end; `large`: a block that it maps.

    `there` of them take no fault if malloc keeps what is freed.
    """

    first: int
    end: int
    large: bool
    there: int = 0


class Malloc:
    """The memory of malloc(3) of the C library, by pages, and what it would keep.

    A new part takes pages that were freed before, however they lie: glibc takes the smallest
    block that is large enough, and joins free ones. `touched` counts the pages with faults
    between two.
    """

    def __init__(self, touched: Callable[[int, int], int]) -> None:
        self._touched = touched
        self._starts: list[int] = []
        self._parts: list[Part] = []
        self._free = 0

    def fork(self, touched: Callable[[int, int], int]) -> Malloc:
        child = Malloc(touched)
        child._starts = self._starts.copy()
        child._parts = [Part(part.first, part.end, part.large) for part in self._parts]
        return child

    def at(self, page: int) -> Part | None:
        index = bisect_right(self._starts, page) - 1
        return self._parts[index] if index >= 0 and page < self._parts[index].end else None

    def take(self, first: int, end: int, outcome: Outcome, *, large: bool, new: int = -1) -> None:
        """Take new pages, or only `new` of them, for malloc's."""
        there = min(self._free, end - first if new < 0 else new)
        self._free -= there
        outcome.bring(-there)
        if not large:
            # A heap grows as it is used.
            outcome.saved += there
            there = 0
        low, high = bisect_left(self._starts, first), bisect_left(self._starts, end)
        # What is older was given back unseen.
        self._starts[low:high] = [first]
        self._parts[low:high] = [Part(first, end, large, there)]

    def give_back(self, first: int, end: int, outcome: Outcome) -> None:
        """Keep what a block has had of the pages that are unmapped: all, or its end."""
        part = self.at(first)
        if part is None:
            return
        touched = self._touched(first, min(end, part.end))
        kept = max(part.there, touched) if first == part.first else touched
        self._free += kept
        outcome.bring(kept)
        if first == part.first:
            outcome.saved += min(part.there, touched)
            self._remove(part)
        else:
            part.end = first

    def move(self, first: int, to: int, end: int, outcome: Outcome) -> None:
        """Let mremap(2) move a block from the first page on, or let it grow."""
        part = self.at(first)
        if part and part.first == first:
            self._remove(part)
            more = max(end - to - (part.end - first), 0)
            self.take(to, end, outcome, large=part.large, new=more)
            moved = self.at(to)
            if moved:
                moved.there += part.there

    def _remove(self, part: Part) -> None:
        index = bisect_left(self._starts, part.first)
        del self._starts[index], self._parts[index]

    def close(self, outcome: Outcome) -> None:
        for part in self._parts:
            outcome.saved += min(part.there, self._touched(part.first, part.end))
            part.there = 0
        outcome.bring(-self._free)
        self._free = 0
