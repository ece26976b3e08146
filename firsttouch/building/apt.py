# SPDX-License-Identifier: GPL-2.0
"""Queries of the host's own Debian mirror that leave the host's configuration alone.

apt runs with a private root below the store. Its only sources are the Debian
archives of the host's configuration, or another suite of the same mirror.
Each archive must be signed by the key that the host's configuration names for
it, or else by Debian's key. An archive that the host trusts without a
signature is refused.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.locks import locked
from firsttouch.building.store import store_root
from firsttouch.errors import HostError
from firsttouch.files import digest, write_atomically

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_URI = re.compile(r"'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# The path tells Debian's archives from others before their lists are fetched.
_DEBIANS = re.compile(r"/debian(-security)?/?$")
_LIST = "mirror+file:"
_SIGNED = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAcquire::AllowWeakRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
    "-oAPT::Sandbox::User=root",
)
INSTALL = ("-oAcquire::ForceHash=SHA256", "-y", "--no-install-recommends", "install")


@dataclass(frozen=True)
class Archive:
    """A Debian archive of the host's configuration: where it is, its suite, its keyring.

    `types` is ``deb``, or ``deb-src`` for its sources.
    """

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


@dataclass(frozen=True)
class Listed:
    """A file of an archive: its name, size in bytes and SHA-256, from the signed lists."""

    file: str
    size: int
    sha256: str


def apt_get(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run apt-get and wait for it; HostError if this host has no apt-get."""
    try:
        return subprocess.run(
            ["apt-get", *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            # "download" says nothing of a package that the current directory holds.
            cwd="/",
        )
    except FileNotFoundError:
        raise HostError(
            "apt-get is missing, so Debian's packages cannot be fetched: "
            "give a kernel tree by --source, and Debian's configuration by "
            "`firsttouch kernel fetch --configuration FILE`."
        ) from None


def listed_files(output: str) -> list[Listed]:
    """Return the files in `output`, which ``apt-get --print-uris`` printed."""
    return [
        Listed(match["file"], int(match["size"]), match["sha256"])
        for match in _URI.finditer(output)
    ]


def host_archives() -> list[Archive]:
    """Return the Debian archives of the host's own configuration; HostError if it has none.

    An archive is Debian's if its URL ends in /debian or /debian-security, or if a
    Release file that is here has Debian as its origin. Others are not contacted.
    """
    of_debian = {(uri, suite) for uri, suite, name in _indexes("$(ORIGIN)") if name == "Debian"}
    archives = {}
    for uri, suite, keyring in _indexes("$(SIGNED_BY)", "--no-release-info"):
        if (uri, suite) in of_debian or any(_DEBIANS.search(mirror) for mirror in _mirrors(uri)):
            name = keyring if keyring.startswith("/") else _KEYRING
            archives[uri, suite] = Archive(uri, suite, name)
    if not archives:
        raise HostError(
            "this host's package sources name no Debian mirror: add one to /etc/apt, run "
            "`apt-get update` as root, or give a kernel tree by --source."
        )
    return list(archives.values())


def _indexes(field: str, *options: str) -> list[tuple[str, str, str]]:
    """Return the URI, the suite and one more field of each archive of the host's configuration."""
    listed = apt_get(
        ["indextargets", *options, "--format", f"$(REPO_URI)|$(RELEASE)|{field}",
         "Created-By: Packages", "Component: main"]
    ).stdout.splitlines()  # fmt: skip
    indexes = []
    for line in listed:
        uri, suite, value = (*line.split("|"), "", "")[:3]
        # apt ends a list's name in a slash, as that of a folder.
        indexes.append((uri.rstrip("/") if uri.startswith(_LIST) else uri, suite, value))
    return indexes


def _mirrors(uri: str) -> list[str]:
    """Return the mirrors that an archive's URI stands for: those of its list, or itself."""
    if not uri.startswith(_LIST):
        return [uri]
    try:
        lines = Path("/", uri.removeprefix(_LIST).lstrip("/")).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def mirror_archive(suite: str) -> Archive:
    """Return `suite` of this host's mirror; HostError if its configuration names no mirror."""
    for archive in host_archives():
        if not archive.suite.endswith("-security"):
            return Archive(archive.uri, suite, archive.keyring)
    raise HostError(
        "this host's package sources name no mirror of Debian's main archive: add one to "
        "/etc/apt, or give a kernel tree by --source."
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
    with locked(root / "lock"):
        write_atomically(sources, text)
        if architecture:
            write_atomically(root / "status", "")
            options.append(f"-oDir::State::status={root / 'status'}")
        done = apt_get([*options, "-oAPT::Update::Error-Mode=any", "update"])
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        raise HostError(
            f"apt could not fetch the signed lists of {archives[0].uri} {archives[0].suite}: "
            "check the network and this host's package sources.",
            said[-5:],
        )
    return options
