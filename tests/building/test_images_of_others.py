# SPDX-License-Identifier: GPL-2.0
"""Kernels that another host's compiler built, copied into the store: for times alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.images import KernelImage
from firsttouch.building.kernels import images_of_others, kernel_of
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.releases import load_release

_STOCK, _CHANGED = Kernel("tiny-stock"), Kernel("tiny-changed")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelSource:
    """A source whose images are nowhere; the store is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return KernelSource(load_release("6.12"), "6.12.1", "package", "", Path, Path)


def _keep(kernel: Kernel, source: KernelSource, tools: str = "") -> Path:
    """Put an image of a compiler into the store, this host's by default."""
    made = kernel_of(kernel, source)
    assert isinstance(made, KernelImage)
    entry = made.entry()
    if tools:
        entry = replace(entry, recipe={**entry.recipe, "tools": tools})

    def make(_workplace: Path, product: Path) -> None:
        (product / "Image").write_text(f"{kernel.kind} {tools}")

    return entry.obtain(make, print)


def test_images_of_the_same_other_compiler_are_taken(source: KernelSource) -> None:
    both = [_STOCK, _CHANGED]
    assert images_of_others(both, source) == ("", {})
    stock = _keep(_STOCK, source, "gcc 14")
    _keep(_CHANGED, source, "gcc 15")
    # Arms of two compilers would differ in more than the change.
    assert images_of_others(both, source) == ("", {})
    changed = _keep(_CHANGED, source, "gcc 14")
    images = {_STOCK: stock / "Image", _CHANGED: changed / "Image"}
    assert images_of_others(both, source) == ("gcc 14", images)
    # Counts are of this host's compiler, which has built none.
    assert kernel_of(_STOCK, source).stored() is None
    (changed / "Image").write_text("damaged by the copy")
    assert images_of_others(both, source) == ("", {})


def test_what_this_host_has_built_goes_first(source: KernelSource) -> None:
    for kernel in (_STOCK, _CHANGED):
        _keep(kernel, source, "gcc 14")
    _keep(_STOCK, source)
    assert images_of_others([_STOCK, _CHANGED], source) == ("", {})
