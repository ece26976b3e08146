# SPDX-License-Identifier: GPL-2.0
"""What decides the package of a kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.debian import FLAVOURS
from firsttouch.building.kernel import KernelImage, KernelPackage
from firsttouch.building.source import KernelSource
from firsttouch.catalog.releases import load_release
from firsttouch.places import LINUX


@pytest.fixture
def package(configured_cache: Path, tmp_path: Path) -> KernelPackage:
    (tmp_path / "config").write_text("CONFIG_ARM64=y\n")
    source = KernelSource(
        load_release("6.12"), "6.12.1", "package", "0" * 64,
        lambda: tmp_path, lambda *_: tmp_path / "config",
    )  # fmt: skip
    return KernelPackage(source, changed=True)


def test_each_package_has_a_name_and_a_place_of_its_own(package: KernelPackage) -> None:
    packages = [
        replace(package, changed=changed, flavour=flavour)
        for changed in (True, False)
        for flavour in FLAVOURS
    ]
    names = {word for each in packages for word in each.target if word.startswith("LOCALVERSION")}
    assert len(names) == len({each.entry().path for each in packages}) == 2 * len(FLAVOURS)
    assert "LOCALVERSION=-first-touch-cloud-arm64" in names
    assert "LOCALVERSION=-stock-arm64" in names
    image = KernelImage(package.source, changed=True)
    assert image.entry().path != package.entry().path


def test_a_package_has_the_features_and_none_of_the_laboratorys_options(
    package: KernelPackage,
) -> None:
    text, stock = (
        "".join(file.read_text() for file in each.fragments_in_order())
        for each in (package, replace(package, changed=False))
    )
    # A series without options is built in, too.
    fragments = list((LINUX / "configs/features").iterdir())
    of_series = "".join(file.read_text() for file in fragments)
    options = [line for line in of_series.splitlines() if "=y" in line and "KUNIT" not in line]
    # Fault-ahead has no option of its own.
    assert len(options) == len(fragments) - 1
    for option in options:
        assert option in text.splitlines()
        assert option not in stock
    assert "KUNIT" not in text
    assert "COLOR_ZERO_PAGE_MAX" not in text
