# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: Debian's source of a release, or any tree that a user names."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.building.apt import Closure, Files, Package, Unpack, obtain
from firsttouch.building.debian import debian_configuration
from firsttouch.building.store import Entry, read_manifest, store_root
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE
from firsttouch.catalog.releases import Release, load_release, release_names, version_of
from firsttouch.errors import HostError, UserError
from firsttouch.files import check_room, digest, digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Trees of the store that this process has checked: their many files take seconds.
_checked: set[Path] = set()


@dataclass(frozen=True)
class KernelSource(ABC):
    """An unchanged kernel tree.

    `sha256` is that of the package or the archive that it comes from, or of all files of a
    tree; `kind` says which. `given` is the path that the user named, None for Debian's source.
    """

    release: Release
    version: str
    kind: Literal["package", "archive", "tree"]
    sha256: str
    reporter: Reporter
    given: Path | None

    @property
    def identity(self) -> str:
        return digest({self.kind: self.sha256})

    @abstractmethod
    def tree(self) -> Path:
        """Return the tree, unpacked if necessary."""

    def configuration(self, architecture: str = DEFAULT_ARCHITECTURE, flavour: str = "") -> Path:
        return debian_configuration(self.release, self.reporter, architecture, flavour=flavour)


@dataclass(frozen=True)
class DebianSource(KernelSource):
    """Debian's `package` of a release."""

    package: Package

    def tree(self) -> Path:
        """Return the tree; fetch the package if the store lacks it."""
        entry = _tree_entry(self.package)
        if entry.path not in _checked:
            # `kernel fetch` may have moved on to another version.
            _checked.add(
                entry.use()
                or obtain(_wanted(self.release), self._entry, self._unpack, self.reporter)
            )
        return entry.path

    def _entry(self, files: Files) -> Entry:
        if files[0].sha256 != self.sha256:
            raise HostError(
                f"{self.package.name} {self.package.version} is no longer in the archive: run "
                f"`firsttouch kernel fetch --release {self.release.name}` to use "
                f"{files[0].version}."
            )
        return _tree_entry(files[0])

    def _unpack(self, unpack: Unpack, product: Path) -> None:
        folder = product.parent / "package"
        unpack(folder)
        (tarball,) = folder.glob("usr/src/linux-source-*.tar.*")
        _unpack(tarball, product, self.reporter)


@dataclass(frozen=True)
class GivenSource(KernelSource):
    """A tree of the user's, or one unpacked from an archive of theirs, in `folder`."""

    folder: Path

    def tree(self) -> Path:
        return self.folder


def _wanted(release: Release) -> Closure:
    return Closure((release.package,), release.suites)


def _tree_entry(package: Package) -> Entry:
    title = f"{package.name} {package.version}"
    return Entry("trees", {"package": package.sha256}, title, deep=False)


def has_debian_source(release: Release) -> bool:
    """Whether the store has the tree that `debian_source` returns."""
    files = _wanted(release).last()
    return bool(files) and _tree_entry(files[0]).path.exists()


def debian_source(release: Release, reporter: Reporter, *, newest: bool = False) -> KernelSource:
    """Return Debian's source of `release`.

    The version that was fetched last is used again, so that results stay
    comparable, unless `newest` asks for the archive's newest version.
    """
    wanted = _wanted(release)
    files = () if newest else wanted.last()
    if not files:
        files, _ = wanted.find()
        wanted.remember(files)
    version = re.split(r"[-~+]", files[0].version)[0]
    return DebianSource(release, version, "package", files[0].sha256, reporter, None, files[0])


def user_source(path: Path, reporter: Reporter) -> KernelSource:
    """Return the kernel in a directory or an archive, with the hooks of the nearest release."""
    tree = source_tree(path, reporter).resolve()
    release, version = tree_release(tree)
    kind: Literal["archive", "tree"] = "tree" if path.is_dir() else "archive"
    sha256 = tree_digest(tree) if kind == "tree" else digest_file(path)
    return GivenSource(release, version, kind, sha256, reporter, path.resolve(), tree)


def source_tree(path: Path, reporter: Reporter) -> Path:
    """Return the kernel tree at `path`; an archive is unpacked into the store.

    An archive is a tarball with one directory at its top, such as
    linux-6.12.1.tar.xz or linux_6.12.1.orig.tar.xz. Raises UserError if it is not one.
    """
    if not path.is_file():
        return path

    def unpack(_: Path, product: Path) -> None:
        try:
            _unpack(path, product, reporter)
        except HostError as error:
            check_room(product)
            raise UserError(
                f"{path} is no archive of a kernel: give a kernel tree or its tarball "
                f"({error.detail[0] if error.detail else error})."
            ) from None
        # Raises UserError, so that the store keeps only kernel trees.
        tree_release(product, path)

    recipe = {"archive": digest_file(path)}
    entry = Entry("trees", recipe, f"kernel tree of {path.name}", deep=False)
    return entry.obtain(unpack, reporter.say)


def _unpack(tarball: Path, product: Path, reporter: Reporter) -> None:
    reporter.say(f"Unpacking {tarball.name}")
    output(["tar", "-xf", tarball, "--strip-components=1", "--no-same-owner", "-C", product])


def tree_release(tree: Path, shown: Path | None = None) -> tuple[Release, str]:
    """Return the release whose hooks are nearest to a kernel tree, and the tree's version."""
    tree = tree.resolve()
    shown = shown or tree
    makefile = tree / "Makefile"
    if not makefile.is_file() or not (tree / "arch/arm64/mm/fault.c").is_file():
        raise UserError(f"{shown} holds no Linux kernel source: give the top of a kernel tree.")
    head = makefile.read_text(errors="replace")[:2000]
    numbers = [
        match[1] if (match := re.search(rf"^{name} *= *(\d+)", head, re.M)) else ""
        for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    ]
    if not all(numbers):
        raise UserError(f"the Makefile of {shown} states no kernel version: give the top of a "
                        "kernel tree.")  # fmt: skip
    if (tree / ".config").exists() or (tree / "include/config").exists():
        raise UserError(f"{shown} contains a build: run `make mrproper` there first.")

    def distance(name: str) -> int:
        # A major release has about 20 minor ones.
        major, minor = version_of(name)[:2]
        return abs((major - int(numbers[0])) * 20 + minor - int(numbers[1]))

    return load_release(min(release_names(), key=distance)), ".".join(numbers)


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
        pass
    contents: dict[str, str] = {}
    for folder, folders, files in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        for name in files:
            path = Path(folder, name)
            contents[str(path.relative_to(tree))] = (
                f"-> {path.readlink()}" if path.is_symlink() else digest_file(path)
            )
    return digest(contents)


def _git_tree(tree: Path) -> str:
    """Return git's name of all files in a working tree, ignored ones too.

    git adds them to a copy of the index, and to objects that are removed afterwards. Raises
    HostError if `tree` isn't the top of a working tree.
    """

    def git(*words: str, **env: str) -> str:
        return output(["git", "-C", tree, *words], env=env).strip()

    if Path(git("rev-parse", "--show-toplevel")) != tree:
        raise HostError(f"{tree} is a folder of another git tree: give its top.")
    index, objects = (tree / git("rev-parse", "--git-path", name) for name in ("index", "objects"))
    with tempfile.TemporaryDirectory(prefix="firsttouch-index-") as scratch:
        copy = Path(scratch, "index")
        if index.exists():
            # With its time, by which git sees what changed in the same instant.
            shutil.copy2(index, copy)
        (Path(scratch) / "objects").mkdir()
        environment = {
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(Path(scratch, "objects")),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        git("add", "-A", "-f", **environment)
        return git("write-tree", **environment)
