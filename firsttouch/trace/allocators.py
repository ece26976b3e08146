# SPDX-License-Identifier: GPL-2.0
"""Allocators of memory: how a process shows its own, and what makes it keep freed memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Allocator:
    """An allocator; `mark` is the beginning of a file that the process maps, or of a name.

    `environment` makes it keep what is freed, `advice` says it if no variable does.
    `huge` makes it ask for huge pages, where the kernel gives them to who asks, from the
    version `huge_since` on. One that is `beside` malloc(3) of the C library leaves that in use.
    `keeps` tells whether its setting keeps memory of the C library's malloc(3), and other memory.
    """

    name: str
    mark: str
    environment: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    huge: Mapping[str, str] = field(default_factory=dict)
    huge_since: str = ""
    beside: bool = False
    keeps: tuple[bool, bool] = (True, True)


# Neither mmap(2) for large blocks, nor a top of the heap that shrinks: 1 TiB is never free.
GLIBC = Allocator(
    "glibc",
    "libc.so.6",
    {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776"},
    huge={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    huge_since=" 2.35+",
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
