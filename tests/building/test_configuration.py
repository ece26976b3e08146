# SPDX-License-Identifier: GPL-2.0
"""A configuration that the user gives stands for Debian's, where no archive can be asked."""

import lzma
from pathlib import Path

import pytest

from firsttouch.building.source import Configuration, DebianKernel
from firsttouch.catalog.kernels import load_release
from firsttouch.errors import HostError, UserError
from firsttouch.progress import Reporter

_TEXT = b"# of arm64\nCONFIG_ARM64=y\nCONFIG_MEMCG=y\n"


@pytest.mark.parametrize("name", ["config", "config.arm64_none_cloud-arm64.xz"])
def test_what_is_given_is_what_kernels_start_from(
    own_cache: Path, tmp_path: Path, reporter: Reporter, name: str
) -> None:
    wanted = Configuration(load_release("6.12"))
    assert wanted.stored() is None
    file = tmp_path / name
    file.write_bytes(lzma.compress(_TEXT) if file.suffix == ".xz" else _TEXT)
    stored = wanted.give(file)
    assert stored.is_relative_to(own_cache)
    assert stored.read_bytes() == _TEXT
    # Nothing is fetched: the store has it.
    assert wanted.obtain(reporter) == wanted.stored() == stored
    assert Configuration(load_release("7.3")).stored() is None


def test_a_configuration_that_cannot_be_unpacked_is_refused(
    own_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    (tmp_path / "config.xz").write_bytes(b"not packed")
    with pytest.raises(UserError, match=r"give config\.arm64_none_cloud-arm64\.xz"):
        Configuration(load_release("6.12")).give(tmp_path / "config.xz")


@pytest.mark.long
def test_an_image_that_the_archive_dropped_is_one_sentence_with_its_remedy(
    own_cache: Path, reporter: Reporter
) -> None:
    with pytest.raises(HostError, match=r"not offer linux-image-6\.12\.1.*kernel fetch"):
        DebianKernel(load_release("6.12"), "6.12.1").obtain(reporter)
