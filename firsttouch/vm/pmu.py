# SPDX-License-Identifier: GPL-2.0
"""The modelled PMU of a guest: the plugin's options, and the counts that it writes.

pmu/README.md explains each count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.catalog.machines import Machine
from firsttouch.tables import Json, parse_json


@dataclass(frozen=True)
class Pmu:
    """The plugin, built for the QEMU in use; `caches` tells whether it models caches too.

    With `symbols`, the System.map of the guest's kernel, it also counts by
    function and by call.
    """

    plugin: Path
    caches: bool
    symbols: Path | None = None

    def options(self, machine: Machine, cpus: int) -> list[str]:
        """Return the plugin's options, without those that name files."""
        levels = [
            (f"{level}@{number}", cache)
            for number, kind in enumerate(machine.kinds_of(cpus))
            for level, cache in (("l1i", kind.l1i), ("l1d", kind.l1d), ("l2", kind.l2))
        ]
        return [
            f"{level}={cache.size}:{cache.ways}:{cache.line}:{cache.policy}"
            for level, cache in (*levels, ("l3", machine.l3))
            if cache and self.caches
        ]


@dataclass(frozen=True)
class PmuCounts:
    """What the plugin counted: an object for each region, in the order of the markers.

    `not_modelled` names the kinds of access that QEMU does not show to plugins.
    """

    regions: tuple[Mapping[str, Json], ...]
    not_modelled: tuple[str, ...]


def read_counts(text: str) -> PmuCounts:
    """Return the counts in `text`, which the plugin wrote; UserError if it is malformed."""
    table = parse_json(text, "the PMU's counts")
    return PmuCounts(table.objects("regions"), table.strings("not_modelled"))
