# SPDX-License-Identifier: GPL-2.0
"""Results made by hand, for tests of what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firsttouch.catalog.experiments import Params
from firsttouch.lab.cells import make_cell
from firsttouch.lab.results import Counts, Provenance, Result
from firsttouch.tables import Json

POPULATE: Params = {"by": "ldadd", "page": "4k", "size": 1 << 30, "threads": 1}


def make_result(
    metrics: Mapping[str, float] | None = None,
    arm: str = "stock",
    *,
    experiment: str = "populate",
    params: Params = POPULATE,
    machine: str = "neoverse-n1",
    unavailable: Mapping[str, str] | None = None,
    regions: Sequence[Mapping[str, Json]] | None = None,
    not_modelled: Sequence[str] = (),
) -> Result:
    """Return what a cell came to whose command printed one line."""
    cell = make_cell("6.12", arm, machine, experiment, params)
    line: dict[str, Json] = {"metrics": dict(metrics or {}), "unavailable": dict(unavailable or {})}
    counts = None if regions is None else Counts(tuple(regions), tuple(not_modelled))
    made = Provenance("6.12.1", "QEMU 7.2", "gcc 12", {"QEMU": "q" * 64}, "console=ttyAMA0",
                      ("/ftbench populate",), cell.command())  # fmt: skip
    return Result(f"key of {cell.title}", cell, (line,), counts, made)


def make_region(
    changed: Mapping[str, Json] | None = None, *, caches: bool = True
) -> dict[str, Json]:
    """Return a region as the plugin writes it, where everything happened three times."""
    names = ("instructions", "dsb", "dc_zva", "dc_zva_unplaced", "untranslated_accesses")
    mode: dict[str, Json] = {**dict.fromkeys(names, 0), "instructions": 3, "dsb": 3, "isb": 2}
    if caches:
        level: dict[str, Json] = {"accesses": 3, "misses": 2, "writebacks": 0}
        mode |= {"l1d": level, "l2": level}
    return {
        "user": {**mode, **(changed or {})},
        "kernel": dict(mode),
        "tlbi": {"total": 4, "by_kind": {"vae1is": 4}},
    }
