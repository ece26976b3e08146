# SPDX-License-Identifier: GPL-2.0
"""What differs between kernels where they serve first touches with huge pages."""

from __future__ import annotations

import re
from dataclasses import dataclass

# mm/huge_memory.c, do_huge_zero_wp_pmd().
_REPLACES_ZERO = (6, 13)
# CONFIG_PT_RECLAIM: of x86-64 alone, and of all architectures that can.
_FREES_TABLES_X86, _FREES_TABLES = (6, 14), (7, 0)


@dataclass(frozen=True)
class KernelRules:
    """The rules of a kernel.

    `splits_zero`: a write to the huge zero page splits it, and each page is replaced for itself.
    `keeps_tables`: a page table that madvise(2) has emptied stays, and no huge page comes there
    before it is unmapped.
    """

    splits_zero: bool = False
    keeps_tables: bool = False


NEWEST = KernelRules()


def rules_of(kernel: str, machine: str) -> KernelRules:
    """Return the rules of a kernel by its release and machine, as uname(2) gives them.

    An old recording has no release.
    """
    release = release_of(kernel)
    if not release:
        return NEWEST
    frees = _FREES_TABLES_X86 if machine == "x86_64" else _FREES_TABLES
    return KernelRules(release < _REPLACES_ZERO, release < frees)


def release_of(kernel: str) -> tuple[int, ...]:
    """Return the first two numbers of a kernel's release, such as 6.12.9-amd64."""
    return tuple(int(number) for number in re.findall(r"\d+", kernel)[:2])
