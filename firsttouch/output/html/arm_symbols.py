# SPDX-License-Identifier: GPL-2.0
"""Arms on the page: their marks, and the style sheet of these for light, dark and print."""

from __future__ import annotations

from collections.abc import Iterable

from firsttouch.catalog.arms import Arm
from firsttouch.catalog.collection import Catalog
from firsttouch.output.html.svg import Symbol, Symbols

# An arm without a file here, from results of others.
_FOREIGN = Symbol("cross", True, "m-foreign")


def symbols(catalog: Catalog, arms: Iterable[str]) -> Symbols:
    """Return the marks of `arms`, in their order."""
    kinds = {arm.name: kind for kind, arm in _kinds(catalog)}
    return {
        name: Symbol(catalog.arms[name].mark.shape, catalog.arms[name].mark.filled, kinds[name])
        if name in kinds
        else _FOREIGN
        for name in sorted(arms, key=catalog.arm_order)
    }


def arm_style(catalog: Catalog) -> str:
    """Return the style sheet of the arms' marks."""
    kinds = _kinds(catalog)
    light = " ".join(f"--{kind}: {arm.mark.light};" for kind, arm in kinds)
    dark = " ".join(f"--{kind}: {arm.mark.dark};" for kind, arm in kinds)
    rules = []
    for kind, arm in kinds:
        filled = f"fill: var(--{kind}); stroke-width: 0;"
        hollow = "fill: var(--paper); fill-opacity: .6;"
        rules.append(
            f".{kind} {{ stroke: var(--{kind}); {filled if arm.mark.filled else hollow} }}"
        )
    return "\n".join([
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
        f"@media print {{ :root {{ {light} }} }}",
        *rules,
    ])  # fmt: skip


def _kinds(catalog: Catalog) -> list[tuple[str, Arm]]:
    """Return a class for each arm: a number, because a name may not be a valid class."""
    ordered = sorted(catalog.arms.values(), key=lambda arm: catalog.arm_order(arm.name))
    return [(f"m-{place}", arm) for place, arm in enumerate(ordered, 1)]
