# SPDX-License-Identifier: GPL-2.0
"""Debian's packages, from the host's own mirror.

apt runs with a private root below the store and leaves the host's configuration
alone. Its only sources are the Debian archives of the host's configuration, or
another suite of the same mirror. Each archive must be signed by the key that the
host's configuration names for it, or else by Debian's key. An archive that the
host trusts without a signature is refused.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from firsttouch.building.store import Entry, locked, store_root
from firsttouch.catalog.experiments import ARM64, Packages
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.processes import child_process, output
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json, parse_json, read

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_URI = re.compile(r"'[^']+' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# The last part of the path, such as "debian-security" or "debian.list", tells Debian's archives.
_DEBIANS = re.compile(r"/debian[^/]*/?$")
_SIGNED = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
    "-oAPT::Sandbox::User=root",
)
_INSTALL = ("-oAcquire::ForceHash=SHA256", "-y", "--no-install-recommends", "install")


@dataclass(frozen=True)
class Archive:
    """A Debian archive; `types` is ``deb``, or ``deb-src`` for its sources."""

    uri: str
    suite: str
    keyring: str
    types: str = "deb"

    @property
    def source(self) -> str:
        """The archive as an entry of a deb822 sources file.

        It has no "Trusted" line, so that the signature decides: "Trusted: no"
        would refuse a good signature, too.
        """
        return (
            f"Types: {self.types}\nURIs: {self.uri}\nSuites: {self.suite}\nComponents: main\n"
            f"Signed-By: {self.keyring}\n"
        )


def _apt_get(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["apt-get", *arguments], capture_output=True, text=True, check=False,
            # "download" says nothing of a package that the current directory holds.
            stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    except FileNotFoundError:
        raise HostError(
            "apt-get is missing, so Debian's packages cannot be fetched: "
            "give a kernel tree by --source, and Debian's configuration by "
            "`firsttouch kernel fetch --configuration FILE`."
        ) from None


def host_archives() -> list[Archive]:
    """Return the Debian archives of the host's own configuration; HostError if it has none.

    An archive is Debian's if its URL, or the name of its list of mirrors, says so. Others are
    not contacted.
    """
    listed = _apt_get(
        ["indextargets", "--no-release-info", "--format", "$(REPO_URI)|$(RELEASE)|$(SIGNED_BY)",
         "Created-By: Packages", "Component: main"]
    ).stdout.splitlines()  # fmt: skip
    archives = []
    for line in listed:
        uri, suite, keyring = (*line.split("|"), "", "")[:3]
        if _DEBIANS.search(uri):
            # apt ends a list's name in a slash, as that of a folder.
            uri = uri.rstrip("/") if uri.startswith("mirror+file:") else uri
            archives.append(Archive(uri, suite, keyring if keyring.startswith("/") else _KEYRING))
    if not archives:
        raise HostError(
            "this host's package sources name no Debian mirror: add one to /etc/apt, run "
            "`apt-get update` as root, or use --source TREE."
        )
    return list(dict.fromkeys(archives))


def mirror_archive(suite: str) -> Archive:
    """Return `suite` of this host's mirror; HostError if its configuration names no mirror."""
    for archive in host_archives():
        if not archive.suite.endswith("-security"):
            return Archive(archive.uri, suite, archive.keyring)
    raise HostError(
        "this host's package sources name no mirror of Debian's main archive: add one to "
        "/etc/apt, or use --source TREE."
    )


def private_root(archives: Sequence[Archive], *, architecture: str = "") -> list[str]:
    """Make a private root for apt with fresh lists of `archives` only; return apt's options.

    `architecture`, such as arm64, makes a root for it, with no package installed.
    Raises HostError if a list cannot be fetched, or is not signed.
    """
    names = ("Architecture", "Architectures") if architecture else ()
    more = tuple(f"-oAPT::{name}={architecture}" for name in names)
    text = "\n".join(archive.source for archive in archives)
    root = store_root() / "apt" / digest([text, *more])[:16]
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    sources = root / "mirror.sources"
    options = [
        *_SIGNED,
        f"-oDir::Etc::sourcelist={sources}",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={root / 'lists'}",
        f"-oDir::Cache={root / 'cache'}",
        *more,
    ]
    with locked(root / "lock", lambda: None):
        write_atomically(sources, text)
        if architecture:
            write_atomically(root / "status", "")
            options.append(f"-oDir::State::status={root / 'status'}")
        done = _apt_get([*options, "-oAPT::Update::Error-Mode=any", "update"])
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        raise HostError(
            f"apt could not fetch the signed lists of {archives[0].uri} {archives[0].suite}: "
            "check the network and this host's package sources.",
            said[-5:],
        )
    return options


def _download(
    words: Sequence[str], folder: Path, title: str, size: int, reporter: Reporter
) -> list[str]:
    """Run apt-get, which fetches `size` bytes into `folder`; return the end of what it says."""
    with (
        (folder / "apt.log").open("w") as sink,
        reporter.step(title, "MiB", size >> 20) as step,
        child_process(["apt-get", *words], cwd=folder, stdout=sink) as apt,
    ):
        while apt.poll() is None:
            time.sleep(0.2)
            with contextlib.suppress(FileNotFoundError):
                there = sum(path.stat().st_size for path in folder.rglob("*.deb"))
                step.at(min(there, size) >> 20)
        step.at(size >> 20)
    return (folder / "apt.log").read_text().strip().splitlines()[-5:]


# -- packages


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

    @property
    def entry(self) -> Entry:
        return Entry("packages", {"package": self.sha256}, f"package {self.name} {self.version}")

    def unpack(self, workplace: Path) -> Path:
        """Unpack the file, which the store has, below `workplace`; return the folder."""
        output(["dpkg-deb", "-x", self.entry.path / "package.deb", workplace / "package"])
        return workplace / "package"


def _listed(output: str) -> list[Package]:
    return [
        Package(match["file"], int(match["size"]), match["sha256"])
        for match in _URI.finditer(output)
    ]


def _noted(pointer: Path) -> list[Package]:
    """Return what was fetched last for a request; nothing if nothing was."""
    try:
        table = parse_json(pointer.read_text(), pointer)
        tables = table.tables("files") if table.has("files") else [table]
        return [read(entry, Package, strict=False) for entry in tables]
    except (OSError, UserError):
        return []


def _pointer(name: str) -> Path:
    # A pattern's characters stay out of the file's name.
    plain = re.sub(r"[^\w.+-]", "_", name)
    return store_root() / "packages" / f"{plain}.json"


def last_package(name: str) -> Package | None:
    return next(iter(_noted(_pointer(name))), None)


def note_package(name: str, package: Package) -> None:
    write_atomically(_pointer(name), dump_json(asdict(package)))


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
        listed = _apt_get([*options, "download", "--print-uris", name])
        if listed.returncode == 0 and (files := _listed(listed.stdout)):
            return files[0], options
    # A kernel tree is no remedy for what Debian has for one: a configuration, an image.
    tree = "" if architecture else ", or use --source TREE"
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
        title = f"Fetching {package.name} {package.version}"
        log = _download([*options, "download", name], workplace, title, package.size, reporter)
        files = list(workplace.glob("*.deb"))
        if not files or digest_file(files[0]) != package.sha256:
            raise HostError(
                f"fetching {name} failed: check the network, then run the same command again.",
                log,
            )
        files[0].rename(product / "package.deb")

    package.entry.obtain(download, reporter.say)
    note_package(name, package)
    return package


@dataclass(frozen=True)
class Closure:
    """Packages of one suite and architecture, with all packages that they depend on, in `files`."""

    packages: Packages
    files: tuple[Package, ...]

    def unpack(self, archives: Path, folder: Path, reporter: Reporter) -> None:
        """Download the packages into `archives`; unpack them in `folder`, without their scripts."""
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        words = [f"-oDir::Cache::Archives={archives}", "--download-only", *_INSTALL]
        log = _download(
            [*_root_of(self.packages), *words, *self.packages.names], archives,
            f"Fetching {', '.join(self.packages.names)}",
            sum(file.size for file in self.files), reporter,
        )  # fmt: skip
        for package in self.files:
            path = archives / package.file
            if not path.exists() or digest_file(path) != package.sha256:
                raise HostError(
                    f"fetching {package.file} of {self.packages.suite} failed: check the network, "
                    "then run the same command again, which takes the version that is there now.",
                    log,
                )
            output(["dpkg-deb", "-x", path, folder])


def find_closure(packages: Packages) -> Closure:
    """Find packages and their dependencies in the archive; HostError if it lacks one."""
    listed = _apt_get([*_root_of(packages), "--print-uris", *_INSTALL, *packages.names])
    files = _listed(listed.stdout)
    if listed.returncode or not files:
        raise HostError(
            f"{packages.suite} of this host's mirror does not offer {', '.join(packages.names)} "
            f"for {packages.architecture}: check the network and /etc/apt.",
            listed.stderr.strip().splitlines()[-3:],
        )
    noted = {"files": [asdict(file) for file in files]}
    write_atomically(_closure_pointer(packages), dump_json(noted))
    return Closure(packages, tuple(files))


def last_closure(packages: Packages) -> Closure | None:
    """Return what `find_closure` found last for these packages; None if it never did."""
    files = _noted(_closure_pointer(packages))
    return Closure(packages, tuple(files)) if files else None


def _root_of(packages: Packages) -> list[str]:
    return private_root([mirror_archive(packages.suite)], architecture=packages.architecture)


def _closure_pointer(packages: Packages) -> Path:
    other = [] if packages.architecture == ARM64 else [packages.architecture]
    return _pointer(f"closure-{digest([packages.suite, *packages.names, *other])[:32]}")


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
    title = f"{', '.join(packages.names)} for {packages.architecture}, unpacked"

    def entry(closure: Closure) -> Entry:
        return Entry("packages", {"unpacked": [file.sha256 for file in closure.files]}, title)

    def make(closure: Closure, workplace: Path, product: Path) -> None:
        closure.unpack(workplace / "archives", product, reporter)

    return obtain_from_closure(packages, entry, make, reporter)
