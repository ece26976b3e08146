# SPDX-License-Identifier: GPL-2.0
"""A configuration that the user gives stands for Debian's, where no archive can be asked."""

import lzma
from pathlib import Path

import pytest

from firsttouch.building.debian import (
    DebianKernel,
    debian_configuration,
    given_configuration,
    stored_configuration,
)
from firsttouch.catalog.releases import load_release
from firsttouch.errors import HostError, UserError
from firsttouch.progress import Reporter

_TEXT = b"# of arm64\nCONFIG_ARM64=y\nCONFIG_MEMCG=y\n"


@pytest.mark.parametrize("name", ["config", "config.arm64_none_cloud-arm64.xz"])
def test_what_is_given_is_what_kernels_start_from(
    own_cache: Path, tmp_path: Path, reporter: Reporter, name: str
) -> None:
    release = load_release("6.12")
    assert stored_configuration(release) is None
    file = tmp_path / name
    file.write_bytes(lzma.compress(_TEXT) if file.suffix == ".xz" else _TEXT)
    stored = given_configuration(release, file, reporter)
    assert stored.is_relative_to(own_cache)
    assert stored.read_bytes() == _TEXT
    # Nothing is fetched: the store has it.
    assert debian_configuration(release, reporter) == stored_configuration(release) == stored
    assert stored_configuration(load_release("7.3")) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("config", b"CONFIG_X86_64=y\n"),
        ("config.xz", b"not packed"),
        ("config", b"# CONFIG_ARM64=y is only a comment\n"),
    ],
)
def test_what_is_no_configuration_of_arm64_is_refused(
    own_cache: Path, tmp_path: Path, reporter: Reporter, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    release = load_release("6.12")
    with pytest.raises(UserError, match=r"give config\.arm64_none_cloud-arm64\.xz"):
        given_configuration(release, tmp_path / name, reporter)
    assert stored_configuration(release) is None


@pytest.mark.long
def test_an_image_that_the_archive_dropped_is_one_sentence_with_its_remedy(
    own_cache: Path, reporter: Reporter
) -> None:
    with pytest.raises(HostError, match=r"newer one than 6\.12\.1, `firsttouch kernel fetch"):
        DebianKernel(load_release("6.12"), "6.12.1").obtain(reporter)
