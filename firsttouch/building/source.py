# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: a tree of the user's, or Debian's of a release, with configurations and image."""

from __future__ import annotations

import contextlib
import functools
import lzma
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.building.apt import Closure, Files, FromPackages, Package
from firsttouch.building.store import Entry
from firsttouch.catalog.kernels import (
    DEFAULT_ARCHITECTURE,
    Release,
    load_architecture,
    load_release,
    release_names,
    version_of,
)
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, digest_files
from firsttouch.processes import output
from firsttouch.progress import Reporter

# An image, and next to it the addresses of its functions.
IMAGE, SYMBOLS = "Image", "System.map"
# Prints a line ADDRESS TYPE NAME for each symbol of an image.
_SYMBOL_FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
# Debian's flavours of both releases. The first is for servers in virtual machines; the lab's
# kernels start from its configuration.
FLAVOURS = ("cloud-arm64", "arm64", "arm64-16k")


@dataclass(frozen=True)
class DebianKernel(FromPackages):
    """The image that Debian distributes for the cloud, built from `version`.

    Its ``System.map`` has the symbols that the image itself holds for its messages.
    """

    release: Release
    version: str
    architecture: str = DEFAULT_ARCHITECTURE

    def wanted(self) -> Closure:
        architecture = load_architecture(self.architecture)
        name = self.release.binary.format(version=self.version, cloud=architecture.cloud)
        return Closure((name,), self.release.suites, architecture.debian)

    def entry(self, files: Files) -> Entry:
        recipe = {"image, symbols and configuration": files[0].sha256}
        return Entry("images", recipe, f"kernel of {files[0].file}", IMAGE)

    def make(self, unpacked: Path, product: Path) -> None:
        # In boot/ of linux-image-*, among the modules of linux-binary-*.
        shutil.copyfile(next(unpacked.rglob("vmlinuz*")), product / IMAGE)
        symbols = output([sys.executable, "-m", _SYMBOL_FINDER, product / IMAGE]).splitlines()
        (product / SYMBOLS).write_text("".join(f"{line}\n" for line in sorted(symbols)))


@dataclass(frozen=True)
class Configuration(FromPackages):
    """Debian's configuration of a release for one of FLAVOURS, or for the cloud."""

    release: Release
    architecture: str = DEFAULT_ARCHITECTURE
    flavour: str = ""

    @property
    def _packed(self) -> str:
        architecture = load_architecture(self.architecture)
        return f"config.{architecture.debian}_none_{self.flavour or architecture.cloud}.xz"

    def wanted(self) -> Closure:
        architecture = load_architecture(self.architecture)
        name = architecture.package(self.release.configuration)
        # Another flavour must not move kernels for the cloud on to another version.
        note = f"-{self.flavour}" if self.flavour not in ("", architecture.cloud) else ""
        return Closure((name,), self.release.suites, architecture.debian, note=note)

    def entry(self, files: Files) -> Entry:
        more = {"flavour": self.flavour} if self.wanted().note else {}
        recipe = {"configuration": files[0].sha256, **more}
        return Entry("packages", recipe, f"{self._packed} of {files[0].file}", "config")

    def make(self, unpacked: Path, product: Path) -> None:
        packed = unpacked / "usr/src" / self.release.configuration / self._packed
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    def give(self, given: Path) -> Path:
        """Take the file `given` as this configuration, and return the store's copy of it.

        For a host whose archive cannot be asked. It may be packed by xz, as in Debian's package.
        """
        try:
            data = given.read_bytes()
            text = lzma.decompress(data) if given.suffix == ".xz" else data
        except (OSError, lzma.LZMAError) as error:
            raise UserError(
                f"{given} cannot be read ({error}): give {self._packed}, or its text."
            ) from None
        files = (Package(given.name, len(data), digest_file(given)),)
        self.wanted().remember(files)
        return self.entry(files).keep(text)


@dataclass(frozen=True)
class DebianTree(FromPackages):
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
        made = DebianTree(self.release)
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


def debian_source(release: Release, reporter: Reporter, *, newest: bool = False) -> KernelSource:
    """Return the source that was fetched last, so that results stay comparable, or the newest."""
    tree = DebianTree(release)
    if newest or not tree.wanted().last():
        tree.fetch(reporter)
    (package,) = tree.wanted().last()
    version = re.split(r"[-~+]", package.version)[0]
    return KernelSource(release, version, "package", package.sha256, reporter, None, package)


def user_source(path: Path, reporter: Reporter) -> KernelSource:
    """Return the kernel in a directory, with the hooks of the nearest release."""
    tree = path.resolve()
    release, version = tree_release(tree)
    return KernelSource(release, version, "tree", tree_digest(tree), reporter, tree)


def tree_release(tree: Path) -> tuple[Release, str]:
    """Return the release whose hooks are nearest to a kernel tree, and the tree's version."""
    makefile = tree / "Makefile"
    head = makefile.read_text(errors="replace")[:2000] if makefile.is_file() else ""
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

    git knows most of a working tree's files already.
    """
    with contextlib.suppress(HostError):
        return digest({"git tree": _git_tree(tree)})
    # No git tree, or only a folder of one.
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
