# SPDX-License-Identifier: GPL-2.0
"""A kept kernel source by --source: a tarball, or Debian's package that has one in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from firsttouch.building.source import source_tree, user_source
from firsttouch.errors import UserError
from firsttouch.progress import Reporter


def _tarball(tree: Path, archive: Path) -> Path:
    subprocess.run(["tar", "-caf", archive, "-C", tree.parent, tree.name], check=True)
    return archive


@pytest.mark.parametrize("name", ["linux-6.12.1.tar.xz", "linux_6.12.1.orig.tar.gz"])
def test_a_tarball_is_unpacked_once_under_its_digest(
    fake_linux: Path, own_cache: Path, tmp_path: Path, reporter: Reporter, name: str
) -> None:
    archive = _tarball(fake_linux, tmp_path / name)
    source = user_source(archive, reporter)
    assert source.tree().is_relative_to(own_cache / "trees")
    assert (source.tree() / "Makefile").read_bytes() == (fake_linux / "Makefile").read_bytes()
    before = (source.tree() / "Makefile").stat().st_ino
    # Moved and renamed it is the same source.
    moved = archive.rename(tmp_path / f"kept-{name}")
    again = user_source(moved, reporter)
    assert again.identity == source.identity
    assert (again.tree() / "Makefile").stat().st_ino == before


def test_another_tarball_is_another_source(
    fake_linux: Path, own_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    first = user_source(_tarball(fake_linux, tmp_path / "one.tar.xz"), reporter)
    (fake_linux / "README").write_text("changed")
    second = user_source(_tarball(fake_linux, tmp_path / "two.tar.xz"), reporter)
    assert first.identity != second.identity
    assert (second.tree() / "README").read_text() == "changed"


def test_debians_package_has_its_tarball_in_it(
    fake_linux: Path, own_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    root = tmp_path / "root"
    (root / "usr/src").mkdir(parents=True)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        "Package: linux-source-6.12\nVersion: 6.12.1-1\nArchitecture: all\n"
        "Maintainer: A <a@example.org>\nDescription: kernel source\n"
    )
    _tarball(fake_linux, root / "usr/src/linux-source-6.12.tar.xz")
    package = tmp_path / "linux-source-6.12_6.12.1-1_all.deb"
    subprocess.run(["dpkg-deb", "-b", root, package], check=True, capture_output=True)
    tree = source_tree(package, reporter)
    assert (tree / "arch/arm64/mm/fault.c").is_file()


def test_what_is_no_kernel_is_refused_by_its_own_name(
    own_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a").write_text("a")
    others = _tarball(tmp_path / "notes", tmp_path / "notes.tar.xz")
    text = tmp_path / "linux.tar.xz"
    text.write_text("no archive")
    package = tmp_path / "linux.deb"
    package.write_text("no package")
    for file in (others, text, package):
        with pytest.raises(UserError, match=str(file)):
            user_source(file, reporter)
    # Nothing of it is kept.
    assert not list((own_cache / "trees").glob("*/manifest.json"))
