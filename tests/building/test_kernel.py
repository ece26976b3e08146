# SPDX-License-Identifier: GPL-2.0
"""What decides a kernel's image and package."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.debian import FLAVOURS
from firsttouch.building.kernel import KernelImage
from firsttouch.building.store import store_root
from firsttouch.catalog.releases import release_names
from firsttouch.files import LINUX
from tests.support.sources import fake_source


def test_each_kernel_has_a_place_of_its_own(configured_cache: Path, tmp_path: Path) -> None:
    image = KernelImage(fake_source(tmp_path), changed=True)
    (tmp_path / "a.patch").write_text("a patch\n")
    kernels = [
        image, replace(image, tiny=True), replace(image, series="fault-ahead"),
        replace(image, fragments=(tmp_path / "a.patch",)),
        replace(image, patches=(tmp_path / "a.patch",)),
        replace(image, source=replace(image.source, sha256="1" * 64)),
        *(replace(image, flavour=flavour) for flavour in FLAVOURS),
    ]  # fmt: skip
    kernels += [replace(kernel, changed=False) for kernel in kernels if not kernel.series]
    assert len({kernel.entry().path for kernel in kernels}) == len(kernels)
    assert replace(image, label="other").entry().path == image.entry().path
    names = [word for kernel in kernels for word in kernel.target if word.startswith("LOCALV")]
    assert len(set(names)) == len(names) == 2 * len(FLAVOURS)
    assert {"LOCALVERSION=-first-touch-cloud-arm64", "LOCALVERSION=-stock-arm64"} < set(names)


def test_a_package_has_the_features_and_none_of_the_laboratorys_options() -> None:
    package = KernelImage(fake_source(), changed=True, flavour="arm64")
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
    assert set(options) <= set(text.splitlines())
    assert not set(options) & set(stock.splitlines())
    assert "KUNIT" not in text
    assert "COLOR_ZERO_PAGE_MAX" not in text


@pytest.mark.kernel
@pytest.mark.parametrize("release", release_names())
def test_an_image_does_not_depend_on_where_the_store_is(
    images: Callable[[str, bool], Path], release: str
) -> None:
    image = images(release, True).read_bytes()
    assert f"Linux version {release}.".encode() in image
    assert str(store_root()).encode() not in image
