# SPDX-License-Identifier: GPL-2.0
"""Architectures: one file each, and what was built before there were two keeps its name."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.host_tools import QEMU, cross_compile
from firsttouch.building.kernel import KernelImage, kernel_of
from firsttouch.building.overlay import patches_of
from firsttouch.catalog.arms import Kernel, load_arm
from firsttouch.catalog.kernels import load_architecture
from firsttouch.errors import UserError
from firsttouch.files import ARCHITECTURES
from firsttouch.tables import names_in
from firsttouch.vm.guest import port_for
from tests.support.sources import fake_source


def test_each_architecture_has_a_file_that_can_be_read() -> None:
    assert names_in(ARCHITECTURES) == ["arm64", "x86-64"]
    assert load_architecture().qemu == QEMU
    with pytest.raises(UserError, match="unknown architecture 'x86_64'"):
        load_architecture("x86_64")


def test_the_tools_have_no_prefix_on_a_host_of_the_architecture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert (cross_compile(), cross_compile("x86-64")) == ("aarch64-linux-gnu-", "")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert (cross_compile(), cross_compile("x86-64")) == ("", "x86_64-linux-gnu-")


def test_an_image_is_of_its_architectures_configuration_and_tools(tmp_path: Path) -> None:
    source = fake_source(tmp_path)
    images = [
        kernel_of(Kernel("changed", architecture=name), source) for name in names_in(ARCHITECTURES)
    ]
    built = [image for image in images if isinstance(image, KernelImage)]
    assert [[file.name for file in image.fragments_in_order()] for image in built] == [
        ["lab", "lab-6.12", "color-zero-page", "write-intent", "fault-ahead"],
        ["lab", "lab-x86-64", "lab-6.12", "fault-ahead"],
    ]
    assert [image.title for image in built] == [
        "6.12.1 with linux/", "6.12.1 with linux/ for x86-64",
    ]  # fmt: skip
    assert len({image.entry().path for image in built}) == 2
    assert [port_for(Kernel("stock", architecture=name)) for name in names_in(ARCHITECTURES)] == [
        "mmio", "pci",
    ]  # fmt: skip


def test_a_kernel_may_have_one_series_alone(tmp_path: Path) -> None:
    source = fake_source(tmp_path)
    kernels = [load_arm(name).kernel for name in ("on", "rmw-alone", "inorder-alone")]
    built = [image for each in kernels if isinstance(image := kernel_of(each, source), KernelImage)]
    assert [[file.name for file in image.fragments_in_order()][2:] for image in built] == [
        ["color-zero-page", "write-intent", "fault-ahead"], ["write-intent"], ["fault-ahead"],
    ]  # fmt: skip
    assert [image.title for image in built] == [
        "6.12.1 with linux/", "6.12.1 with linux/ (write-intent alone)",
        "6.12.1 with linux/ (fault-ahead alone)",
    ]  # fmt: skip
    recipes = [image.entry().recipe for image in built]
    assert len({str(recipe["overlay"]) for recipe in recipes}) == 3
    patches = [patches_of(source.release, image.kernel.series) for image in built]
    assert {patch.series for patch in patches[1]} == {("write-intent",)}
    assert set(map(str, patches[1] + patches[2])) < set(map(str, patches[0]))
    with pytest.raises(UserError, match="changed rmw kernels are not for arm64: give arms"):
        kernel_of(Kernel("changed", series="rmw"), source)
    with pytest.raises(UserError, match="changed write-intent kernels are not for x86-64: give"):
        kernel_of(replace(kernels[1], architecture="x86-64"), source)


def test_a_kernel_that_an_architecture_has_not_is_refused(tmp_path: Path) -> None:
    kernel = Kernel("tiny-stock", architecture="x86-64")
    with pytest.raises(UserError, match="tiny-stock kernels are not for x86-64: give arms"):
        kernel_of(kernel, fake_source(tmp_path))
