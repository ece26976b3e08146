# SPDX-License-Identifier: GPL-2.0
"""Debian's packages, from the host's own mirror.

apt runs with a private root below the store and leaves the host's configuration alone. Each
archive must be signed by the key that the host's configuration names for it, or else by Debian's:
one that the host trusts without a signature is refused.
"""

from __future__ import annotations

import functools
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from firsttouch.building.store import Entry, locked, store_root
from firsttouch.catalog.experiments import ARM64, Packages
from firsttouch.errors import HostError, UserError
from firsttouch.files import check_room, digest, digest_file, write_atomically
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.tables import Json, dump_json, read, read_json

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_URI = re.compile(r"'[^']+' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# The last part of a path of Debian's archives: "debian-security", "debian.list".
_DEBIANS = re.compile(r"/debian[^/]*/?$")
# apt waits for ever on a full disk. Bytes of its lists, and of packages with what is unpacked, per
# byte of packages.
_LISTS, _UNPACKED = 128 << 20, 4
_SIGNED = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
    "-oAPT::Sandbox::User=root",
)
_INSTALL = ("-oAcquire::ForceHash=SHA256", "-y", "--no-install-recommends", "install")


@dataclass(frozen=True)
class Archive:
    uri: str
    suite: str
    keyring: str


def host_archives() -> list[Archive]:
    """Return the archives of the host's configuration whose URL or list of mirrors is Debian's.

    Raises HostError on a host without apt.
    """
    if shutil.which("apt-get") is None:
        raise HostError(
            "apt-get is missing, so Debian's packages cannot be fetched: "
            "give a kernel tree by --source, and Debian's configuration by "
            "`firsttouch kernel fetch --configuration FILE`."
        )
    listed = output(
        ["apt-get", "indextargets", "--no-release-info", "--format",
         "$(REPO_URI)|$(RELEASE)|$(SIGNED_BY)", "Created-By: Packages", "Component: main"]
    )  # fmt: skip
    archives = []
    for line in listed.splitlines():
        uri, suite, keyring = (*line.split("|"), "", "")[:3]
        if _DEBIANS.search(uri):
            # apt ends a list's name in a slash, as that of a folder.
            uri = uri.rstrip("/") if uri.startswith("mirror+file:") else uri
            archives.append(Archive(uri, suite, keyring if keyring.startswith("/") else _KEYRING))
    return list(dict.fromkeys(archives))


def mirror_archive(suite: str) -> Archive:
    """Return `suite` of this host's mirror; HostError if its configuration names no mirror."""
    for archive in host_archives():
        if not archive.suite.endswith("-security"):
            return Archive(archive.uri, suite, archive.keyring)
    raise HostError(
        "this host's package sources name no Debian mirror: add one to /etc/apt, run "
        "`apt-get update` as root, or use --source TREE."
    )


def private_root(archives: Sequence[Archive], architecture: str) -> list[str]:
    """Make a private root for apt with fresh lists of `archives` only; return apt's options.

    It has no package installed. Raises HostError if a list cannot be fetched, or is not signed.
    """
    more = [f"-oAPT::{name}={architecture}" for name in ("Architecture", "Architectures")]
    # Entries of a deb822 sources file; signatures decide on trust.
    text = "\n".join(
        f"Types: deb\nURIs: {archive.uri}\nSuites: {archive.suite}\nComponents: main\n"
        f"Signed-By: {archive.keyring}\n"
        for archive in archives
    )
    root = store_root() / "apt" / digest([text, *more])[:16]
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    check_room(root, _LISTS)
    options = [
        *_SIGNED,
        f"-oDir::Etc::sourcelist={root}/mirror.sources",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={root}/lists",
        f"-oDir::State::status={root}/status",
        f"-oDir::Cache={root}/cache",
        *more,
    ]
    with locked(root / "lock", lambda: None):
        write_atomically(root / "mirror.sources", text)
        write_atomically(root / "status", "")
        try:
            output(["apt-get", *options, "-oAPT::Update::Error-Mode=any", "update"])
        except HostError as error:
            raise HostError(
                f"apt could not fetch the signed lists of {archives[0].uri} {archives[0].suite}: "
                "check the network and this host's package sources.",
                error.detail,
            ) from None
    return options


@dataclass(frozen=True)
class Package:
    """One version of a package: its file's name, size in bytes and SHA-256, as signed."""

    file: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.file.split("_")[0]

    @property
    def version(self) -> str:
        return self.file.split("_")[1].replace("%3a", ":")


Files = tuple[Package, ...]


@dataclass(frozen=True)
class Closure:
    """Packages of Debian's by `names`, for its `architecture`.

    They come from the host's own archives, or else from the first of `suites` of its mirror that
    has them. With `closure` they are of that suite in any case, with all that they depend on. A
    single name may be a pattern that one package matches. `note` tells apart what is remembered.
    """

    names: tuple[str, ...]
    suites: tuple[str, ...] = ()
    architecture: str = ARM64
    closure: bool = False
    note: str = ""

    @property
    def _pointer(self) -> Path:
        name = self.names[0] + self.note
        if self.closure:
            other = [] if self.architecture == ARM64 else [self.architecture]
            name = f"closure-{digest([*self.suites, *self.names, *other])[:32]}"
        # A pattern's characters stay out of the file's name.
        plain = re.sub(r"[^\w.+-]", "_", name)
        return store_root() / "packages" / f"{plain}.json"

    def last(self) -> Files:
        """Return the packages that were fetched last; none if none were."""
        try:
            return tuple(read(each, Package) for each in read_json(self._pointer).tables("files"))
        except UserError:
            return ()

    def remember(self, files: Files) -> None:
        write_atomically(self._pointer, dump_json({"files": [asdict(file) for file in files]}))

    def find(self) -> tuple[Files, list[str]]:
        """Return the newest version of the packages, and the words by which apt-get fetches them.

        Raises HostError if no archive has them.
        """
        command = [*_INSTALL, "--download-only"] if self.closure else ["download"]
        own = [] if self.closure else [host_archives()]
        detail: list[str] = []
        for archives in filter(None, (*own, *([mirror_archive(name)] for name in self.suites))):
            words = ["apt-get", *private_root(archives, self.architecture), *command, *self.names]
            try:
                # "download" says nothing of a package that the current directory holds.
                listed = output([*words, "--print-uris"], cwd=Path("/"))
            except HostError as error:
                detail = error.detail[-3:]
                continue
            files = tuple(
                Package(match["file"], int(match["size"]), match["sha256"])
                for match in _URI.finditer(listed)
            )
            if files:
                return files, words
        remedy = "check the network and /etc/apt"
        if self.names[0].startswith("linux-"):
            remedy += ", or move on to another kernel by `firsttouch kernel fetch`"
        elif self.closure and any("Unable to locate" in line for line in detail):
            remedy = "name the package that has it, such as --packages coreutils for ls"
        raise HostError(
            f"{', '.join(self.suites) or 'no archive'} of this host's mirror does not offer "
            f"{', '.join(self.names)}: {remedy}.",
            detail,
        )


class FromPackages(ABC):
    """An entry of the store that is made from packages.

    `merged` are folders that are links into usr/ before packages are unpacked.
    """

    merged: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def wanted(self) -> Closure: ...

    @abstractmethod
    def entry(self, files: Files) -> Entry: ...

    @abstractmethod
    def make(self, unpacked: Path, product: Path) -> None:
        """Fill the folder `product` from the packages, which the folder `unpacked` has."""

    def stored(self) -> Path | None:
        """Return what was made from the packages that were fetched last, if the store has it."""
        last = self.wanted().last()
        return self.entry(last).use() if last else None

    def obtain(self, reporter: Reporter) -> Path:
        return self.stored() or self.fetch(reporter)

    def fetch(self, reporter: Reporter) -> Path:
        """Make it from the newest packages; HostError if they cannot be fetched."""
        files, words = self.wanted().find()
        entry = self.entry(files)
        self.wanted().remember(files)

        def make(workplace: Path, product: Path) -> None:
            archives, unpacked = workplace / "archives", workplace / "unpacked"
            _download(words, archives, files, reporter)
            for name in self.merged:
                (unpacked / "usr" / name).mkdir(parents=True)
                (unpacked / name).symlink_to(f"usr/{name}")
            for package in files:
                output(["dpkg-deb", "-x", archives / package.file, unpacked])
            self.make(unpacked, product)

        return entry.obtain(make, reporter.say)


def _download(words: Sequence[str], folder: Path, files: Files, reporter: Reporter) -> None:
    """Have apt-get fetch `files` into `folder`."""
    (folder / "partial").mkdir(parents=True)
    size = sum(file.size for file in files)
    check_room(folder, _UNPACKED * size)
    more = f" and {len(files) - 1} more packages" if len(files) > 1 else ""
    reporter.say(f"Fetching {files[0].name} {files[0].version}{more}, {size >> 20} MiB")
    detail: list[str] = []
    try:
        output([*words, f"-oDir::Cache::Archives={folder}"], cwd=folder)
    except HostError as error:
        detail = error.detail
    for package in files:
        path = folder / package.file
        if not path.exists() or digest_file(path) != package.sha256:
            raise HostError(
                f"fetching {package.file} failed: check the network, then run the same "
                "command again, which takes the version that is there now.",
                detail,
            )


@dataclass(frozen=True)
class Unpacked(FromPackages):
    """A folder with packages and their dependencies; the host runs none of their scripts."""

    packages: Packages

    def wanted(self) -> Closure:
        packages = self.packages
        return Closure(packages.names, (packages.suite,), packages.architecture, closure=True)

    def entry(self, files: Files) -> Entry:
        recipe: dict[str, Json] = {"unpacked": [file.sha256 for file in files]}
        return Entry("packages", recipe, f"{', '.join(self.packages.names)}, unpacked")

    def make(self, unpacked: Path, product: Path) -> None:
        unpacked.rename(product)


@functools.cache
def unpack(packages: Packages, reporter: Reporter) -> Path:
    # The store takes seconds to check it.
    return Unpacked(packages).obtain(reporter)
