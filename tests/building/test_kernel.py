# SPDX-License-Identifier: GPL-2.0
"""What decides a kernel's image and package."""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch import progress
from firsttouch.building.kernel import KernelImage
from firsttouch.building.source import FLAVOURS
from firsttouch.building.store import locked, store_root
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.catalog.kernels import release_names
from firsttouch.files import LINUX
from tests.support.sources import fake_source


def test_each_kernel_has_a_place_of_its_own(configured_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_text("a patch\n")
    source, given = fake_source(tmp_path), (tmp_path / "a.patch",)
    other = replace(source, sha256="1" * 64)
    kinds: tuple[Kind, ...] = ("stock", "changed")
    kernels = [KernelImage(source, Kernel("changed", series="fault-ahead"))]
    kernels += [KernelImage(source, Kernel(kind)) for kind in ("tiny-stock", "tiny-changed")]
    for kind in kinds:
        each = [Kernel(kind), Kernel(kind, fragments=given), Kernel(kind, patches=given)]
        kernels += [KernelImage(source, kernel) for kernel in each]
        kernels += [KernelImage(source, Kernel(kind), flavour) for flavour in FLAVOURS]
        kernels.append(KernelImage(other, Kernel(kind)))
    assert len({kernel.entry().path for kernel in kernels}) == len(kernels)
    names = [word for kernel in kernels for word in kernel.target if word.startswith("LOCALV")]
    assert len(set(names)) == len(names) == 2 * len(FLAVOURS)
    assert {"LOCALVERSION=-first-touch-cloud-arm64", "LOCALVERSION=-stock-arm64"} < set(names)


def test_a_package_has_the_features_and_none_of_the_laboratorys_options() -> None:
    package = KernelImage(fake_source(), Kernel("changed"), "arm64")
    text, stock = (
        "".join(file.read_text() for file in each.fragments_in_order())
        for each in (package, replace(package, kernel=Kernel("stock")))
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


def test_waiting_reports_how_far_the_other_run_is(
    configured_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    monkeypatch.setattr(KernelImage, "_build", lambda *_: None)
    kernel, said = KernelImage(fake_source(tmp_path), Kernel("stock")), io.StringIO()
    making = kernel.entry().path.with_suffix(".making")
    making.mkdir(parents=True)
    (making / "build.log").write_text("  CC      mm/memory.o\n  AR      mm/built-in.a\n" * 700)
    with ThreadPoolExecutor() as pool:
        with locked(making.with_suffix(".lock")):
            image = pool.submit(kernel.obtain, progress.Reporter(Console(file=said)))
            while ": 700 of " not in said.getvalue():
                pass
        assert image.result() == kernel.entry().path / "Image"


@pytest.mark.kernel
@pytest.mark.parametrize("release", release_names())
def test_an_image_does_not_depend_on_where_the_store_is(
    images: Callable[[str, bool], Path], release: str
) -> None:
    image = images(release, True).read_bytes()
    assert f"Linux version {release}.".encode() in image
    assert str(store_root()).encode() not in image
