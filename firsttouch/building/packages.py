# SPDX-License-Identifier: GPL-2.0
"""Debian packages in the store: single packages, and arm64 packages with their dependencies."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from firsttouch import processes
from firsttouch.building.apt import (
    INSTALL,
    Listed,
    apt_get,
    host_archives,
    listed_files,
    mirror_archive,
    private_root,
)
from firsttouch.building.store import Entry, store_root
from firsttouch.catalog.experiments import ARM64, Packages
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json, parse_json
from firsttouch.typed import read


@dataclass(frozen=True)
class Package:
    """One version of a package: its file's name, size in bytes and SHA-256."""

    name: str
    file: str
    size: int
    sha256: str

    @property
    def version(self) -> str:
        """The Debian version, from the file's name."""
        return self.file.split("_")[1].replace("%3a", ":")

    @property
    def entry(self) -> Entry:
        """The entry of the store that holds the file."""
        return Entry("packages", {"package": self.sha256}, f"package {self.name} {self.version}")

    def unpack(self, workplace: Path) -> Path:
        """Unpack the file, which the store has, below `workplace`; return the folder."""
        folder = workplace / "package"
        shutil.rmtree(folder, ignore_errors=True)
        processes.output(["dpkg-deb", "-x", self.entry.path / "package.deb", folder])
        return folder


def last_package(name: str) -> Package | None:
    """Return the version of `name` that was fetched last; None if none was."""
    try:
        table = parse_json(_pointer(name).read_text(), _pointer(name))
        return read(table, Package, strict=False, name=_name(table.take("file", str)))
    except (OSError, UserError):
        return None


def _name(file: str) -> str:
    """Return the name of the package that a .deb is of."""
    return file.split("_")[0]


def find_package(
    name: str, suites: Sequence[str], *, architecture: str = ""
) -> tuple[Package, list[str]]:
    """Find the newest version of `name`: in the host's own archives, then in each of `suites`.

    `name` may be a pattern that one package matches. The package is for Debian's
    `architecture`, or for this host. The suites are those of the host's mirror.
    Returns the package and the apt options that find it. Raises HostError if
    no archive has it.
    """
    for archives in (host_archives(), *([mirror_archive(suite)] for suite in suites)):
        options = private_root(archives, architecture=architecture)
        listed = apt_get([*options, "download", "--print-uris", name])
        files = listed_files(listed.stdout)
        if listed.returncode == 0 and files:
            newest = files[0]
            return Package(_name(newest.file), newest.file, newest.size, newest.sha256), options
    # A kernel tree is no remedy for what Debian has for one: a configuration, an image.
    tree = "" if architecture else ", or give a kernel tree by --source"
    raise HostError(
        f"no package source of this host offers {name}, nor does its mirror in "
        f"{', '.join(suites)}: check the network and /etc/apt{tree}."
    )


def fetch_package(
    name: str, suites: Sequence[str], reporter: Reporter, *, architecture: str = ""
) -> Package:
    """Download the newest version of package `name` into the store and return it."""
    package, options = find_package(name, suites, architecture=architecture)

    def download(workplace: Path, product: Path) -> None:
        partial_folder = workplace / "download"
        shutil.rmtree(partial_folder, ignore_errors=True)
        partial_folder.mkdir()
        log = workplace / "apt.log"
        title = f"Fetching {package.name} {package.version}"
        with (
            log.open("w") as sink,
            reporter.step(title, "MiB", package.size >> 20) as step,
            processes.child_process(
                ["apt-get", *options, "download", name], cwd=partial_folder, stdout=sink
            ) as apt,
        ):
            while apt.poll() is None:
                time.sleep(0.2)
                step.at(sum(file.stat().st_size for file in partial_folder.glob("*")) >> 20)
            step.at(package.size >> 20)
        files = list(partial_folder.glob("*.deb"))
        if apt.returncode or not files or digest_file(files[0]) != package.sha256:
            raise HostError(
                f"fetching {name} failed: check the network, then run the same command again.",
                log.read_text().strip().splitlines()[-5:],
            )
        files[0].rename(product / "package.deb")

    package.entry.obtain(download, reporter.say)
    note_package(name, package)
    return package


def note_package(name: str, package: Package) -> None:
    """Note `package` as the version of `name` that `last_package` returns."""
    write_atomically(_pointer(name), dump_json(asdict(package)))


@dataclass(frozen=True)
class Closure:
    """Packages of one suite and architecture, with all packages that they depend on, in `files`."""

    packages: Packages
    files: tuple[Listed, ...]

    def download(self, folder: Path, reporter: Reporter) -> list[Path]:
        """Download the packages that `folder` lacks; return the paths of all, in order.

        Raises HostError if the mirror cannot be reached, or replaced one of them meanwhile.
        """
        (folder / "partial").mkdir(parents=True, exist_ok=True)
        paths = [folder / listed.file for listed in self.files]
        total = sum(listed.size for listed in self.files) >> 20
        root = _root_of(self.packages)
        with (
            (folder / "apt.log").open("w") as sink,
            reporter.step(f"Fetching {', '.join(self.packages.names)}", "MiB", total) as step,
            processes.child_process(
                ["apt-get", *root, f"-oDir::Cache::Archives={folder}", "--download-only",
                 *INSTALL, *self.packages.names],
                stdout=sink,
            ) as apt,
        ):  # fmt: skip
            while apt.poll() is None:
                time.sleep(0.2)
                step.at(sum(path.stat().st_size for path in paths if path.exists()) >> 20)
            step.at(total)
        for path, listed in zip(paths, self.files, strict=True):
            if not path.exists() or digest_file(path) != listed.sha256:
                raise HostError(
                    f"fetching {listed.file} of {self.packages.suite} failed: check the network, "
                    "then run the same command again, which takes the version that is there now.",
                    (folder / "apt.log").read_text().strip().splitlines()[-5:],
                )
        return paths

    def unpack(self, archives: Path, folder: Path, reporter: Reporter) -> None:
        """Download the packages into `archives`; unpack them in `folder`, without their scripts."""
        for package in self.download(archives, reporter):
            processes.output(["dpkg-deb", "-x", package, folder])


def last_closure(packages: Packages) -> Closure | None:
    """Return what `find_closure` found last for these packages; None if it never did."""
    place = _closure_pointer(packages)
    try:
        table = parse_json(place.read_text(), place)
        return Closure(packages, tuple(read(entry, Listed) for entry in table.tables("files")))
    except (OSError, UserError):
        return None


def find_closure(packages: Packages) -> Closure:
    """Find packages and their dependencies in the archive; HostError if it lacks one."""
    root = _root_of(packages)
    listed = apt_get([*root, "--print-uris", *INSTALL, *packages.names])
    closure = Closure(packages, tuple(listed_files(listed.stdout)))
    if listed.returncode or not closure.files:
        raise HostError(
            f"{packages.suite} of this host's mirror does not offer {', '.join(packages.names)} "
            f"for {packages.architecture}: check the network and /etc/apt.",
            listed.stderr.strip().splitlines()[-3:],
        )
    files = [asdict(listed) for listed in closure.files]
    write_atomically(_closure_pointer(packages), dump_json({"files": files}))
    return closure


def obtain_from_closure(
    packages: Packages,
    entry: Callable[[Closure], Entry],
    make: Callable[[Closure, Path, Path], None],
    reporter: Reporter,
) -> Path:
    """Return the directory of what `make` makes from packages, as Entry.obtain does.

    A stored entry is used again as it is, without the network. Raises HostError
    if the packages cannot be fetched.
    """
    last = last_closure(packages)
    if last and (stored := entry(last).use()):
        return stored
    closure = find_closure(packages)
    return entry(closure).obtain(partial(make, closure), reporter.say)


def unpack(packages: Packages, reporter: Reporter) -> Path:
    """Return a folder with packages and their dependencies, unpacked.

    The host runs none of their scripts. Raises HostError if they cannot be fetched.
    """

    def entry(closure: Closure) -> Entry:
        recipe = {"unpacked": [listed.sha256 for listed in closure.files]}
        return Entry(
            "packages", recipe, f"{', '.join(packages.names)} for {packages.architecture}, unpacked"
        )

    def make(closure: Closure, workplace: Path, product: Path) -> None:
        closure.unpack(workplace / "archives", product, reporter)

    return obtain_from_closure(packages, entry, make, reporter)


def _root_of(packages: Packages) -> list[str]:
    archive = mirror_archive(packages.suite)
    return private_root([archive], architecture=packages.architecture)


def _closure_pointer(packages: Packages) -> Path:
    other = [] if packages.architecture == ARM64 else [packages.architecture]
    name = digest([packages.suite, *packages.names, *other])[:32]
    return store_root() / "packages" / f"closure-{name}.json"


def _pointer(name: str) -> Path:
    # A pattern's characters stay out of the file's name.
    plain = re.sub(r"[^\w.+-]", "_", name)
    return store_root() / "packages" / f"{plain}.json"
