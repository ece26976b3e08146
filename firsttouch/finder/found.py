# SPDX-License-Identifier: GPL-2.0
"""What the faults of a recording show: pairs of places, and columns of all faults."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from firsttouch.finder.spaces import Place, Space

# What a double is.
ATOMIC, EXCLUSIVE, LOAD_STORE, APART = "atomic", "load-exclusive", "load-store", "apart"
KINDS = (ATOMIC, EXCLUSIVE, LOAD_STORE, APART)


class Pair(NamedTuple):
    """What the doubles of one site have in common: both places, what they are, which memory."""

    kind: str
    memory: str
    read: Place
    write: Place
    reading: str
    writing: str


@dataclass
class Faults:
    """Columns of all faults, one entry each: ns since the start, page, and the index of a stack.

    `double` holds the index of a pair in `pairs` plus 1 for the second fault of
    a double, else 0. `space` is the index of the address space in `names`.
    """

    time: array[int] = field(default_factory=lambda: array("q"))
    page: array[int] = field(default_factory=lambda: array("Q"))
    space: array[int] = field(default_factory=lambda: array("I"))
    stack: array[int] = field(default_factory=lambda: array("I"))
    double: array[int] = field(default_factory=lambda: array("I"))


@dataclass
class Found:
    """All that the faults of a recording show.

    `repeats` counts, by pair, the doubles at a pc that had one before in the
    same address space. `stacks` are chains of places, the pc first. `reads`
    holds, by address space, the pages of anonymous memory that were read and
    not written. `upgrades` are the faults that the kernel upgraded, as places in
    `faults`. `names` are those of the address spaces: the command, or the
    program executed; `spaces` what they mapped in the end. `in_kernel` counts
    the faults taken in the kernel. `detached` names the programs that the kernel
    traces no more once they are executed, since they have other rights.
    """

    faults: Faults = field(default_factory=Faults)
    pairs: list[Pair] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    repeats: Counter[int] = field(default_factory=Counter)
    stacks: list[tuple[Place, ...]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    spaces: dict[int, Space] = field(default_factory=dict)
    reads: dict[int, set[int]] = field(default_factory=dict)
    upgrades: set[int] = field(default_factory=set)
    detached: list[str] = field(default_factory=list)
    anonymous: int = 0
    in_kernel: int = 0
    undecoded: int = 0
