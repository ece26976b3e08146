# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: Debian's source of a release, or any tree that a user names."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch import processes
from firsttouch.building.configuration import debian_configuration
from firsttouch.building.packages import Package, fetch_package, last_package
from firsttouch.building.store import Entry
from firsttouch.catalog.releases import Release, load_release, release_names, version_of
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file
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
    wanted = package

    def tree() -> Path:
        entry = Entry(
            "trees", {"package": wanted.sha256}, f"{wanted.name} {wanted.version}", deep=False
        )
        if entry.path in _checked:
            return entry.path

        def unpack(workplace: Path, product: Path) -> None:
            deb = wanted
            if deb.entry.use() is None:
                deb = fetch_package(release.package, release.suites, reporter)
            if deb.sha256 != wanted.sha256:
                raise HostError(
                    f"{release.package} {wanted.version} is no longer in the archive: run "
                    f"`firsttouch kernel fetch --release {release.name}` to use {deb.version}."
                )
            _unpack(deb, workplace, product, reporter)

        _checked.add(entry.obtain(unpack, reporter.say))
        return entry.path

    version = re.split(r"[-~+]", package.version)[0]
    configuration = functools.partial(
        debian_configuration, release, version, reporter, newest=newest
    )
    return KernelSource(release, version, "package", package.sha256, tree, configuration)


def _unpack(package: Package, workplace: Path, product: Path, reporter: Reporter) -> None:
    """Unpack the kernel tree, which `package` contains as an archive, into `product`."""
    archive = next(package.unpack(workplace).glob("usr/src/linux-source-*.tar.xz"))
    size = archive.stat().st_size
    with (
        reporter.step(f"Unpacking {package.name} {package.version}", "MiB", size >> 20) as step,
        archive.open("rb") as file,
        subprocess.Popen(
            ["tar", "-xJ", "--strip-components=1", "--no-same-owner", "-C", str(product)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as tar,
    ):
        assert tar.stdin is not None and tar.stderr is not None
        try:
            while chunk := file.read(1 << 20):
                tar.stdin.write(chunk)
                step.at(file.tell() >> 20)
            tar.stdin.close()
        except BrokenPipeError:
            pass
        message = tar.stderr.read().decode(errors="replace").strip().splitlines()
    if tar.returncode:
        raise HostError(
            f"unpacking {package.name} below {product.parent.parent} failed: see tar's message "
            "below.",
            message[-3:],
        )


def user_source(path: Path, reporter: Reporter) -> KernelSource:
    """Return the kernel in a directory or an archive, with the hooks of the nearest release.

    Raises UserError as `source_tree` and `tree_release` do.
    """
    tree = source_tree(path, reporter).resolve()
    release, version = tree_release(tree)
    configuration = functools.partial(debian_configuration, release, version, reporter)
    if path.is_dir():
        return KernelSource(
            release,
            version,
            "tree",
            _tree_digest(tree),
            lambda: tree,
            configuration,
            path.resolve(),
        )
    return KernelSource(
        release,
        version,
        "package" if path.suffix == ".deb" else "archive",
        digest_file(path),
        lambda: tree,
        configuration,
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
    sha256 = digest_file(path)

    def unpack(workplace: Path, product: Path) -> None:
        tarball = path
        if path.suffix == ".deb":
            outer = workplace / "package"
            shutil.rmtree(outer, ignore_errors=True)
            try:
                processes.output(["dpkg-deb", "-x", path, outer])
                tarball = next(outer.glob("usr/src/linux-source-*.tar.*"))
            except (HostError, StopIteration):
                raise UserError(f"{path} has no usr/src/linux-source-*.tar.xz in it: give "
                                "Debian's linux-source-6.12 or a tarball.") from None  # fmt: skip
        reporter.say(f"Unpacking {tarball.name}")
        try:
            processes.output(
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

    entry = Entry("trees", {"archive": sha256}, f"kernel tree of {path.name}", deep=False)
    try:
        return entry.obtain(unpack, reporter.say)
    except UserError as error:
        raise UserError(str(error).replace(str(entry.path.with_suffix(".making") / "kept"),
                                           str(path))) from None  # fmt: skip


def _is_archive(file: Path) -> bool:
    """Tell whether tar can list the whole file; if so, the disk is why unpacking it failed."""
    try:
        processes.output(["tar", "-tf", file])
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
    """Return the release with hooks that is nearest to MAJOR.MINOR."""

    def distance(name: str) -> int:
        # A major release has about 20 minor ones.
        here = version_of(name)
        return abs((here[0] - major) * 20 + here[1] - minor)

    return load_release(min(release_names(), key=distance))


def _tree_digest(tree: Path) -> str:
    """Return the digest of all files below `tree`, without those of git."""
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
