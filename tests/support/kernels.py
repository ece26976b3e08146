# SPDX-License-Identifier: GPL-2.0
"""Kernels that only tests boot: other configurations of the lab's."""

import pytest
from _pytest.mark import ParameterSet

from firsttouch.building.kernel import KernelImage
from firsttouch.building.overlay import EVERY
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.catalog.kernels import release_names
from firsttouch.files import LINUX

_VARIANTS = LINUX / "configs/variants"


def variant_names() -> list[str]:
    """Return the names of the variants of the lab's configuration."""
    return sorted(path.name for path in _VARIANTS.iterdir())


def releases_with_stock() -> list[ParameterSet]:
    """The releases, for tests that boot a stock kernel; all but the oldest for `make regress`.

    Kernels are most of what `make test` takes from nothing, so it builds the
    changed kernel of each release, and one stock kernel.
    """
    oldest, *newer = release_names()
    return [pytest.param(oldest), *(pytest.param(n, marks=pytest.mark.regress) for n in newer)]


def with_variant(
    source: KernelSource, changed: bool, variant: str | None, series: str = ""
) -> KernelImage:
    """Return the lab's kernel, or in the configuration of `variant` one with every series.

    A release may have more of a variant: linux/configs/VARIANT-RELEASE.
    """
    kind: Kind = "changed" if changed else "stock"
    if variant is None:
        return KernelImage(source, Kernel(kind, series=series))
    series = EVERY if changed else ""
    more = LINUX / "configs" / f"{variant}-{source.release.name}"
    fragments = (_VARIANTS / variant, *[more] * more.exists())
    return KernelImage(source, Kernel(kind, fragments=fragments, series=series))
