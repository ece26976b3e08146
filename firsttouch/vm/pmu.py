# SPDX-License-Identifier: GPL-2.0
"""The modelled PMU of a guest: what QEMU is asked for, and what it counted, by region.

What each count means stands in pmu/README.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.catalog.machines import Cache, CpuKind, Machine

# Metrics of the PMU by what they need: counting alone, or modelled caches.
COUNTED = ("instructions_user", "instructions_kernel", "tlbi", "dsb")
MODELLED = ("l1d_accesses", "l1d_misses", "l2_accesses", "l2_misses")


@dataclass(frozen=True)
class Pmu:
    """The plugin built for the QEMU in use; `caches`: model the machine's, or count alone."""

    plugin: Path
    caches: bool

    def options(self, machine: Machine, cpus: int) -> list[str]:
        """Return what the plugin is asked for, but for its output."""
        if not self.caches:
            return []
        options = []
        kinds = itertools.islice(itertools.cycle(machine.cpu_kinds()), cpus)
        for number, kind in enumerate(kinds):
            options += [f"{level}@{number}={_asked(cache)}" for level, cache in _private(kind)]
        if machine.l3:
            options.append(f"l3={_asked(machine.l3)}")
        return options

    def argument(self, machine: Machine, cpus: int, out: Path) -> str:
        """Return QEMU's ``-plugin`` argument for a guest whose counts go to `out`."""
        return ",".join([f"file={self.plugin}", f"out={out}", *self.options(machine, cpus)])


def _private(kind: CpuKind) -> list[tuple[str, Cache]]:
    return [("l1i", kind.l1i), ("l1d", kind.l1d), *([("l2", kind.l2)] if kind.l2 else [])]


def _asked(cache: Cache) -> str:
    return f"{cache.size}:{cache.ways}:{cache.line}:{cache.policy}"


# Accesses that the caches saw for each that they may have missed.
_SEEN_PER_UNSEEN = 10_000


def region_metrics(region: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the metrics of one region, and why the others are not to be had.

    `region` is an entry of ``regions`` in the plugin's JSON. Cache counts
    that leave out more than one access in 10,000 are no metrics: at the
    kernel's ticks an old QEMU always hides a few.
    """
    user, kernel = region["user"], region["kernel"]
    metrics = {
        "instructions_user": user["instructions"],
        "instructions_kernel": kernel["instructions"],
        "tlbi": region["tlbi"]["total"],
        "dsb": user["dsb"] + kernel["dsb"],
    }
    levels = [name for name in ("l1d", "l2") if name in kernel]
    unseen = _unseen(region)
    if unseen:
        return metrics, {
            f"{level}_{what}": unseen for level in levels for what in ("accesses", "misses")
        }
    for level in levels:
        for what in ("accesses", "misses"):
            metrics[f"{level}_{what}"] = user[level][what] + kernel[level][what]
    return metrics, {}


def _unseen(region: Mapping[str, Any]) -> str:
    """Return why the caches did not see all accesses of a region; empty if they did."""
    user, kernel = region["user"], region["kernel"]
    if "l1d" not in kernel:
        return ""
    zva = user["dc_zva"] + kernel["dc_zva"]
    if not region["dc_zva_modelled"]:
        unplaced = zva
    else:
        unplaced = user["dc_zva_unplaced"] + kernel["dc_zva_unplaced"]
    lost = user["untranslated_accesses"] + kernel["untranslated_accesses"]
    # Each may be a miss that was not counted and, with LRU, the cause of one more.
    if (unplaced + lost) * _SEEN_PER_UNSEEN <= user["l1d"]["accesses"] + kernel["l1d"]["accesses"]:
        return ""
    if unplaced:
        return f"this QEMU does not show where {unplaced:,} DC ZVA of the region wrote"
    return f"QEMU withheld the address of {lost:,} accesses"


def read_regions(counts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the regions of the plugin's JSON, each with whether DC ZVA is modelled."""
    modelled = "dc_zva_lines" not in counts["not_modelled"]
    return [{**region, "dc_zva_modelled": modelled} for region in counts["regions"]]
