# SPDX-License-Identifier: GPL-2.0
"""Caches as a PPTT describes them, right and wrong, and how many colours there must be.

Every case is two CPUs like the Neoverse N1 (L1D 64 KiB, 4-way, 64-byte lines:
4 colours) but for what its name says. `colors` is how many zero pages there
must be, and `cpu` the one whose L1D decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.linux import pptt

MAX_U32 = 0xFFFF_FFFF


@dataclass(frozen=True)
class Table:
    """A PPTT, as the bytes the guest finds."""

    name: str
    colors: int
    data: bytes
    cpu: int = 0


L1D = pptt.Cache(0x10000, 256, 64, 4, below=2)
L1I = replace(L1D, kind=pptt.INSTRUCTION)
L2 = pptt.Cache(0x100000, 2048, 64, 8, kind=pptt.UNIFIED)
N1 = pptt.Cpu((L1D, L1I, L2))
RIGHT = pptt.table((N1, N1))


def _caches(name: str, colors: int, l1d: pptt.Cache) -> Table:
    cpu = pptt.Cpu((l1d, L1I, L2))
    return Table(name, colors, pptt.table((cpu, cpu)))


GOOD_TABLES = (
    Table("as it is", 4, RIGHT),
    Table(
        "larger second CPU",
        4,
        pptt.table((pptt.Cpu((replace(L1D, sets=64, ways=16), L1I, L2)), N1)),
        cpu=1,
    ),
    Table(
        "smaller second CPU",
        4,
        pptt.table((N1, pptt.Cpu((replace(L1D, sets=128, ways=8), L1I, L2)))),
    ),
    _caches(
        "fully associative",
        1,
        replace(L1D, size=0x1000, sets=1, ways=64),
    ),
)

BAD_TABLES = (
    _caches("size not valid", 1, L1D.without(pptt.SIZE)),
    _caches("sets not valid", 1, L1D.without(pptt.SETS)),
    _caches("line not valid", 1, L1D.without(pptt.LINE)),
    _caches("ways not valid", 1, L1D.without(pptt.WAYS)),
    _caches("type not valid", 1, L1D.without(pptt.TYPE)),
    _caches("nothing valid", 1, replace(L1D, flags=0)),
    _caches("size zero", 1, replace(L1D, size=0)),
    _caches("sets zero", 1, replace(L1D, sets=0)),
    _caches("line zero", 1, replace(L1D, line=0)),
    _caches("ways zero", 1, replace(L1D, ways=0)),
    _caches("ways -1", 1, replace(L1D, ways=-1)),
    _caches("ways -4", 1, replace(L1D, ways=-4)),
    _caches("ways 3", 1, replace(L1D, ways=3)),
    _caches("sets doubled", 1, replace(L1D, sets=512)),
    _caches("100 sets", 1, replace(L1D, sets=100)),
    _caches("48-byte lines", 1, replace(L1D, line=48)),
    _caches("line 2^16-1", 1, replace(L1D, line=-1)),
    _caches(
        "size 2^31",
        1,
        replace(L1D, size=1 << 31),
    ),
    _caches(
        "size 2^32-1",
        1,
        replace(L1D, size=MAX_U32),
    ),
    _caches(
        "sets 2^31",
        1,
        replace(L1D, sets=1 << 31),
    ),
    _caches(
        "sets 2^32-1",
        1,
        replace(L1D, sets=MAX_U32),
    ),
    _caches(
        "a product of 2^32",
        1,
        replace(L1D, size=16, sets=1 << 26, ways=1),
    ),
    _caches(
        "all ones",
        1,
        replace(L1D, size=MAX_U32, sets=MAX_U32, ways=-1, line=-1),
    ),
    Table(
        "second CPU's ways not valid",
        1,
        pptt.table((N1, pptt.Cpu((L1D.without(pptt.WAYS), L1I, L2)))),
        cpu=1,
    ),
    Table(
        "second CPU without caches",
        1,
        pptt.table((N1, pptt.Cpu((), direct=0))),
        cpu=1,
    ),
    Table(
        "second CPU missing",
        1,
        pptt.table((N1,)),
        cpu=1,
    ),
    _caches("L1D its own next level", 4, replace(L1D, below=0)),
    Table(
        "L2 its own next level",
        4,
        pptt.table((pptt.Cpu((L1D, L1I, replace(L2, below=2))),) * 2),
    ),
    Table(
        "L2 followed by the L1D",
        4,
        pptt.table((pptt.Cpu((L1D, L1I, replace(L2, below=0))),) * 2),
    ),
    Table("package its own parent", 4, pptt.table((N1, N1), parent_is_itself=True)),
    _caches("next level beyond the table", 4, replace(L1D, below=1000)),
    Table("sum wrong", 1, RIGHT[:9] + bytes([RIGHT[9] ^ 1]) + RIGHT[10:]),
    Table("file shorter than its length", 1, RIGHT[:-40]),
    Table("file longer than its length", 1, RIGHT + bytes(40)),
    Table(
        "cut within the second CPU",
        1,
        pptt.sealed(RIGHT[:-20]),
        cpu=1,
    ),
    Table("cut after the header", 1, pptt.sealed(RIGHT[: pptt.HEADER.size])),
    Table("cut within the header", 1, RIGHT[:20]),
    Table(
        "structure of length zero",
        1,
        pptt.sealed(RIGHT[: pptt.HEADER.size + 1] + b"\0" + RIGHT[pptt.HEADER.size + 2 :]),
    ),
    Table(
        "structure longer than the table",
        1,
        pptt.sealed(RIGHT[: pptt.HEADER.size + 1] + b"\xff" + RIGHT[pptt.HEADER.size + 2 :]),
    ),
)
