# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: Debian's source of a release, or any tree that a user names."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.building.debian import (
    Package,
    debian_configuration,
    fetch_package,
    last_package,
    unpack_kernel,
)
from firsttouch.building.store import Entry, read_manifest, store_root
from firsttouch.catalog.releases import Release, load_release, release_names, version_of
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Trees of the store that this process has checked: their many files take seconds.
_checked: set[Path] = set()


@dataclass(frozen=True)
class KernelSource:
    """An unchanged kernel tree.

    `sha256` is that of the package or the archive that it comes from, or of all
    files of a tree; `kind` says which. `tree` returns its directory, and unpacks
    it first if necessary. `configuration` returns the file of Debian's
    configuration of the release for an architecture, which may be its argument,
    and fetches it first if necessary. `given` is
    the path that the user named, None for Debian's source.
    """

    release: Release
    version: str
    kind: Literal["package", "archive", "tree"]
    sha256: str
    tree: Callable[[], Path]
    configuration: Callable[..., Path]
    given: Path | None = None

    @property
    def identity(self) -> str:
        """What stands for the source in the recipe of a kernel image."""
        return digest({self.kind: self.sha256})


def debian_source(release: Release, reporter: Reporter, *, newest: bool = False) -> KernelSource:
    """Return Debian's source of `release`.

    The version that was fetched last is used again, so that results stay
    comparable, unless `newest` asks for the archive's newest version.
    """
    package = None if newest else last_package(release.package)
    if package is None:
        package = fetch_package(release.package, release.suites, reporter)
    version = re.split(r"[-~+]", package.version)[0]
    return KernelSource(
        release,
        version,
        "package",
        package.sha256,
        functools.partial(_debian_tree, release, package, reporter),
        functools.partial(debian_configuration, release, version, reporter, newest=newest),
    )


def _debian_tree(release: Release, wanted: Package, reporter: Reporter) -> Path:
    entry = Entry(
        "trees", {"package": wanted.sha256}, f"{wanted.name} {wanted.version}", deep=False
    )
    if entry.path in _checked:
        return entry.path

    def unpack(workplace: Path, product: Path) -> None:
        package = wanted
        if package.entry.use() is None:
            package = fetch_package(release.package, release.suites, reporter)
        if package.sha256 != wanted.sha256:
            raise HostError(
                f"{release.package} {wanted.version} is no longer in the archive: run "
                f"`firsttouch kernel fetch --release {release.name}` to use {package.version}."
            )
        unpack_kernel(package, workplace, product, reporter)

    _checked.add(entry.obtain(unpack, reporter.say))
    return entry.path


def user_source(path: Path, reporter: Reporter) -> KernelSource:
    """Return the kernel in a directory or an archive, with the hooks of the nearest release.

    Raises UserError as `source_tree` and `tree_release` do.
    """
    tree = source_tree(path, reporter).resolve()
    release, version = tree_release(tree)
    kind: Literal["package", "archive", "tree"] = "archive"
    if path.is_dir():
        kind = "tree"
    elif path.suffix == ".deb":
        kind = "package"
    return KernelSource(
        release,
        version,
        kind,
        tree_digest(tree) if kind == "tree" else digest_file(path),
        lambda: tree,
        functools.partial(debian_configuration, release, version, reporter),
        path.resolve(),
    )


def source_tree(path: Path, reporter: Reporter) -> Path:
    """Return the kernel tree at `path`; an archive is unpacked into the store.

    An archive is a tarball with one directory at its top, such as
    linux-6.12.1.tar.xz or linux_6.12.1.orig.tar.xz, or Debian's package
    linux-source-6.12, which contains one. Raises UserError if it is neither.
    """
    if not path.is_file():
        return path

    def unpack(workplace: Path, product: Path) -> None:
        tarball = path
        if path.suffix == ".deb":
            outer = workplace / "package"
            shutil.rmtree(outer, ignore_errors=True)
            try:
                output(["dpkg-deb", "-x", path, outer])
                tarball = next(outer.glob("usr/src/linux-source-*.tar.*"))
            except (HostError, StopIteration):
                raise UserError(f"{path} has no usr/src/linux-source-*.tar.xz in it: give "
                                "Debian's linux-source-6.12 or a tarball.") from None  # fmt: skip
        reporter.say(f"Unpacking {tarball.name}")
        try:
            output(
                ["tar", "-xf", tarball, "--strip-components=1", "--no-same-owner", "-C", product]
            )
        except HostError as error:
            if _is_archive(tarball):
                raise
            raise UserError(
                f"tar cannot read {path}: give a kernel tree, its tarball or "
                f"Debian's linux-source package ({error.detail[0] if error.detail else error})."
            ) from None
        # Raises UserError, so that the store keeps only kernel trees.
        tree_release(product)

    entry = Entry("trees", {"archive": digest_file(path)}, f"kernel tree of {path.name}",
                  deep=False)  # fmt: skip
    try:
        return entry.obtain(unpack, reporter.say)
    except UserError as error:
        raise UserError(str(error).replace(str(entry.path.with_suffix(".making") / "kept"),
                                           str(path))) from None  # fmt: skip


def _is_archive(file: Path) -> bool:
    """Tell whether tar can list the whole file; if so, the disk is why unpacking it failed."""
    try:
        output(["tar", "-tf", file])
    except HostError:
        return False
    return True


def tree_release(tree: Path) -> tuple[Release, str]:
    """Return the release whose hooks are nearest to a kernel tree, and the tree's version.

    Raises UserError if `tree` is not a kernel tree, or contains a build.
    """
    tree = tree.resolve()
    makefile = tree / "Makefile"
    if not makefile.is_file() or not (tree / "arch/arm64/mm/fault.c").is_file():
        raise UserError(f"{tree} holds no Linux kernel source: give the top of a kernel tree.")
    head = makefile.read_text(errors="replace")[:2000]
    numbers = [
        match[1] if (match := re.search(rf"^{name} *= *(\d+)", head, re.M)) else ""
        for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    ]
    if not all(numbers):
        raise UserError(f"{makefile} states no kernel version: give the top of a kernel tree.")
    if (tree / ".config").exists() or (tree / "include/config").exists():
        raise UserError(f"{tree} contains a build: run `make mrproper` there first.")
    return _nearest_release(int(numbers[0]), int(numbers[1])), ".".join(numbers)


def _nearest_release(major: int, minor: int) -> Release:
    def distance(name: str) -> int:
        # A major release has about 20 minor ones.
        here = version_of(name)
        return abs((here[0] - major) * 20 + here[1] - minor)

    return load_release(min(release_names(), key=distance))


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
