# SPDX-License-Identifier: GPL-2.0
"""Caches as a PPTT describes them, right and wrong, and what the kernel must say of each.

Every case is two CPUs like the Neoverse N1 (L1D 64 KiB, 4-way, 64-byte lines:
4 colours) but for what its name says. `says` is the one line the kernel writes
to its log, after ``zero page: ``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.linux import pptt

MAX_U32 = 0xFFFF_FFFF
FOUR_BY_PPTT = "4 colors, L1D way 16 KiB from PPTT (cpu0)"
# QEMU's own table says nothing about the caches.
NO_CACHES = "1 color, L1D size 0 is missing or zero in PPTT (cpu0)"


@dataclass(frozen=True)
class Table:
    """A PPTT, as the bytes the guest finds."""

    name: str
    says: str
    data: bytes


L1D = pptt.Cache(0x10000, 256, 64, 4, below=2)
L1I = replace(L1D, kind=pptt.INSTRUCTION)
L2 = pptt.Cache(0x100000, 2048, 64, 8, kind=pptt.UNIFIED)
N1 = pptt.Cpu((L1D, L1I, L2))
RIGHT = pptt.table((N1, N1))


def _caches(name: str, says: str, l1d: pptt.Cache) -> Table:
    cpu = pptt.Cpu((l1d, L1I, L2))
    return Table(name, says, pptt.table((cpu, cpu)))


def _wrong(what: str, cpu: int = 0) -> str:
    return f"1 color, L1D {what} in PPTT (cpu{cpu})"


GOOD_TABLES = (
    Table("as it is", FOUR_BY_PPTT, RIGHT),
    Table(
        "larger second CPU",
        "4 colors, L1D way 16 KiB from PPTT (cpu1)",
        pptt.table((pptt.Cpu((replace(L1D, sets=64, ways=16), L1I, L2)), N1)),
    ),
    Table(
        "smaller second CPU",
        FOUR_BY_PPTT,
        pptt.table((N1, pptt.Cpu((replace(L1D, sets=128, ways=8), L1I, L2)))),
    ),
    _caches(
        "fully associative",
        "1 color, L1D way 64 bytes from PPTT (cpu0)",
        replace(L1D, size=0x1000, sets=1, ways=64),
    ),
)

BAD_TABLES = (
    _caches("size not valid", _wrong("size 0 is missing or zero"), L1D.without(pptt.SIZE)),
    _caches(
        "sets not valid", _wrong("number of sets 0 is missing or zero"), L1D.without(pptt.SETS)
    ),
    _caches("line not valid", _wrong("line size 0 is missing or zero"), L1D.without(pptt.LINE)),
    _caches("ways not valid", _wrong("associativity 0 is missing or zero"), L1D.without(pptt.WAYS)),
    _caches("type not valid", _wrong("size 0 is missing or zero"), L1D.without(pptt.TYPE)),
    _caches("nothing valid", _wrong("size 0 is missing or zero"), replace(L1D, flags=0)),
    _caches("size zero", _wrong("size 0 is missing or zero"), replace(L1D, size=0)),
    _caches("sets zero", _wrong("number of sets 0 is missing or zero"), replace(L1D, sets=0)),
    _caches("line zero", _wrong("line size 0 is missing or zero"), replace(L1D, line=0)),
    _caches("ways zero", _wrong("associativity 0 is missing or zero"), replace(L1D, ways=0)),
    _caches("ways -1", _wrong("size 65536 is not sets x ways x line size"), replace(L1D, ways=-1)),
    _caches("ways -4", _wrong("size 65536 is not sets x ways x line size"), replace(L1D, ways=-4)),
    _caches("ways 3", _wrong("size 65536 is not sets x ways x line size"), replace(L1D, ways=3)),
    _caches(
        "sets doubled", _wrong("size 65536 is not sets x ways x line size"), replace(L1D, sets=512)
    ),
    _caches("100 sets", _wrong("number of sets 100 is not a power of two"), replace(L1D, sets=100)),
    _caches("48-byte lines", _wrong("line size 48 is no line size"), replace(L1D, line=48)),
    _caches("line 2^16-1", _wrong("line size 65535 is no line size"), replace(L1D, line=-1)),
    _caches(
        "size 2^31",
        _wrong("size 2147483648 is not sets x ways x line size"),
        replace(L1D, size=1 << 31),
    ),
    _caches(
        "size 2^32-1",
        _wrong("size 4294967295 is not sets x ways x line size"),
        replace(L1D, size=MAX_U32),
    ),
    _caches(
        "sets 2^31",
        _wrong("number of sets 2147483648 is too large"),
        replace(L1D, sets=1 << 31),
    ),
    _caches(
        "sets 2^32-1",
        _wrong("number of sets 4294967295 is not a power of two"),
        replace(L1D, sets=MAX_U32),
    ),
    _caches(
        "a product of 2^32",
        _wrong("number of sets 67108864 is too large"),
        replace(L1D, size=16, sets=1 << 26, ways=1),
    ),
    _caches(
        "all ones",
        _wrong("number of sets 4294967295 is not a power of two"),
        replace(L1D, size=MAX_U32, sets=MAX_U32, ways=-1, line=-1),
    ),
    Table(
        "second CPU's ways not valid",
        _wrong("associativity 0 is missing or zero", cpu=1),
        pptt.table((N1, pptt.Cpu((L1D.without(pptt.WAYS), L1I, L2)))),
    ),
    Table(
        "second CPU without caches",
        _wrong("size 0 is missing or zero", cpu=1),
        pptt.table((N1, pptt.Cpu((), direct=0))),
    ),
    Table(
        "second CPU missing",
        _wrong("size 0 is missing or zero", cpu=1),
        pptt.table((N1,)),
    ),
    _caches("L1D its own next level", FOUR_BY_PPTT, replace(L1D, below=0)),
    Table(
        "L2 its own next level",
        FOUR_BY_PPTT,
        pptt.table((pptt.Cpu((L1D, L1I, replace(L2, below=2))),) * 2),
    ),
    Table(
        "L2 followed by the L1D",
        FOUR_BY_PPTT,
        pptt.table((pptt.Cpu((L1D, L1I, replace(L2, below=0))),) * 2),
    ),
    Table("package its own parent", FOUR_BY_PPTT, pptt.table((N1, N1), parent_is_itself=True)),
    _caches("next level beyond the table", FOUR_BY_PPTT, replace(L1D, below=1000)),
    Table("sum wrong", NO_CACHES, RIGHT[:9] + bytes([RIGHT[9] ^ 1]) + RIGHT[10:]),
    Table("file shorter than its length", NO_CACHES, RIGHT[:-40]),
    Table("file longer than its length", NO_CACHES, RIGHT + bytes(40)),
    Table(
        "cut within the second CPU",
        _wrong("size 0 is missing or zero", cpu=1),
        pptt.sealed(RIGHT[:-20]),
    ),
    Table("cut after the header", NO_CACHES, pptt.sealed(RIGHT[: pptt.HEADER.size])),
    Table("cut within the header", NO_CACHES, RIGHT[:20]),
    Table(
        "structure of length zero",
        NO_CACHES,
        pptt.sealed(RIGHT[: pptt.HEADER.size + 1] + b"\0" + RIGHT[pptt.HEADER.size + 2 :]),
    ),
    Table(
        "structure longer than the table",
        NO_CACHES,
        pptt.sealed(RIGHT[: pptt.HEADER.size + 1] + b"\xff" + RIGHT[pptt.HEADER.size + 2 :]),
    ),
)
