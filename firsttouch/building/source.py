# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: Debian's source of a release, or any tree that a user names."""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.building.apt import Closure, Files, FromPackages, Package
from firsttouch.building.debian import Configuration
from firsttouch.building.store import Entry, read_manifest, store_root
from firsttouch.catalog.kernels import (
    DEFAULT_ARCHITECTURE,
    Release,
    load_release,
    release_names,
    version_of,
)
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_files
from firsttouch.processes import output
from firsttouch.progress import Reporter


@dataclass(frozen=True)
class _Tree(FromPackages):
    """The tree in Debian's package of a release."""

    release: Release

    def wanted(self) -> Closure:
        return Closure((self.release.package,), self.release.suites)

    def entry(self, files: Files) -> Entry:
        (package,) = files
        title = f"{package.name} {package.version}"
        return Entry("trees", {"package": package.sha256}, title, deep=False)

    def make(self, unpacked: Path, product: Path) -> None:
        (tarball,) = unpacked.glob("usr/src/linux-source-*.tar.*")
        output(["tar", "-xf", tarball, "--strip-components=1", "--no-same-owner", "-C", product])


@dataclass(frozen=True)
class KernelSource:
    """An unchanged kernel tree: that of Debian's `package`, or one that the user has `given`.

    `sha256` is that of the package, or of all files of the tree; `kind` says which.
    """

    release: Release
    version: str
    kind: Literal["package", "tree"]
    sha256: str
    reporter: Reporter
    given: Path | None = None
    package: Package | None = None

    @property
    def identity(self) -> str:
        return digest({self.kind: self.sha256})

    def configuration(self, architecture: str = DEFAULT_ARCHITECTURE, flavour: str = "") -> Path:
        return Configuration(self.release, architecture, flavour).obtain(self.reporter)

    def tree(self) -> Path:
        """Return the tree; fetch the package if the store lacks it."""
        if not self.package:
            assert self.given
            return self.given
        made = _Tree(self.release)
        if stored := made.entry((self.package,)).use():
            return stored
        # Debian may have moved on to another version.
        newest, _ = made.wanted().find()
        if newest[0].sha256 != self.sha256:
            raise HostError(
                f"{self.package.name} {self.package.version} is no longer in the archive: run "
                f"`firsttouch kernel fetch --release {self.release.name}` to use "
                f"{newest[0].version}."
            )
        return made.fetch(self.reporter)


def has_debian_source(release: Release) -> bool:
    """Whether the store has the tree that `debian_source` returns."""
    return bool(_Tree(release).stored())


def debian_source(release: Release, reporter: Reporter, *, newest: bool = False) -> KernelSource:
    """Return the source that was fetched last, so that results stay comparable, or the newest."""
    wanted = _Tree(release).wanted()
    files = () if newest else wanted.last()
    if not files:
        files, _ = wanted.find()
        wanted.remember(files)
    version = re.split(r"[-~+]", files[0].version)[0]
    return KernelSource(release, version, "package", files[0].sha256, reporter, None, files[0])


def user_source(path: Path, reporter: Reporter) -> KernelSource:
    """Return the kernel in a directory, with the hooks of the nearest release."""
    tree = path.resolve()
    release, version = tree_release(tree)
    return KernelSource(release, version, "tree", tree_digest(tree), reporter, tree)


def tree_release(tree: Path) -> tuple[Release, str]:
    """Return the release whose hooks are nearest to a kernel tree, and the tree's version."""
    try:
        head = (tree / "Makefile").read_text(errors="replace")[:2000]
    except OSError:
        head = ""
    numbers = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)", head, re.M))
    if len(numbers) < 3 or not (tree / "arch/arm64/mm/fault.c").is_file():
        raise UserError(f"{tree} holds no Linux kernel source: give the top of a kernel tree.")
    if (tree / ".config").exists() or (tree / "include/config").exists():
        raise UserError(f"{tree} contains a build: run `make mrproper` there first.")
    version = ".".join(numbers[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))

    def distance(name: str) -> int:
        # A major release has about 20 minor ones.
        (major, minor), (x, y) = version_of(name)[:2], version_of(version)[:2]
        return abs((major - x) * 20 + minor - y)

    return load_release(min(release_names(), key=distance)), version


@functools.cache
def tree_digest(tree: Path) -> str:
    """Return the digest of all files below `tree`, computed once: a kernel has 90,000.

    git knows most of a working tree's files already, and the store all of its own trees.
    """
    if tree.parent == (store_root() / "trees").resolve() and (manifest := read_manifest(tree)):
        return digest(manifest.recipe)
    try:
        return digest({"git tree": _git_tree(tree)})
    except HostError:
        # No git tree, or only a folder of one.
        pass
    return digest_files(tree, (path for path in tree.rglob("*") if path.is_file()))


def _git_tree(tree: Path) -> str:
    """Return git's name of all files in a working tree, ignored ones too; the tree stays as it is.

    Raises HostError if `tree` isn't the top of a working tree.
    """

    def git(*words: str, **env: str) -> str:
        return output(["git", "-C", tree, *words], env=env).strip()

    if Path(git("rev-parse", "--show-toplevel")) != tree:
        raise HostError(f"{tree} is a folder of another git tree: give its top.")
    index, objects = (tree / git("rev-parse", "--git-path", name) for name in ("index", "objects"))
    with tempfile.TemporaryDirectory(prefix="firsttouch-index-") as scratch:
        if index.exists():
            # With its time, by which git sees what changed in the same instant.
            shutil.copy2(index, f"{scratch}/index")
        Path(scratch, "objects").mkdir()
        environment = {
            "GIT_INDEX_FILE": f"{scratch}/index",
            "GIT_OBJECT_DIRECTORY": f"{scratch}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        git("add", "-A", "-f", **environment)
        return git("write-tree", **environment)
