# SPDX-License-Identifier: GPL-2.0
"""Arms on the page: their marks, and the classes by which a style colours them."""

from __future__ import annotations

from collections.abc import Iterable

from firsttouch.catalog.arms import Arm
from firsttouch.catalog.collection import Catalog
from firsttouch.views.html.svg import Symbol, Symbols

# An arm without a file here, from results of others.
_FOREIGN = Symbol("cross", True, "m-foreign")


def symbols(catalog: Catalog, arms: Iterable[str]) -> Symbols:
    """Return the marks of `arms`, in their order."""
    kinds = {arm.name: kind for kind, arm in arm_kinds(catalog)}
    return {
        name: Symbol(catalog.arms[name].mark.shape, catalog.arms[name].mark.filled, kinds[name])
        if name in kinds
        else _FOREIGN
        for name in sorted(arms, key=catalog.arm_order)
    }


def arm_kinds(catalog: Catalog) -> list[tuple[str, Arm]]:
    """Return a class for each arm: a number, because a name may not be a valid class."""
    ordered = sorted(catalog.arms.values(), key=lambda arm: catalog.arm_order(arm.name))
    return [(f"m-{place}", arm) for place, arm in enumerate(ordered, 1)]
