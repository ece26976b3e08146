# SPDX-License-Identifier: GPL-2.0
"""Packages from the machine's own Debian mirror, without touching its configuration.

A package that the machine's package configuration offers is downloaded as it
offers it. Otherwise apt is given a private root below the cache with one more
suite of the same mirror. Either way apt checks the archive's signature and
the package's hash.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from firsttouch import processes
from firsttouch.cache import Entry, cache_root, digest_file, locked, write_atomically
from firsttouch.errors import MachineError
from firsttouch.progress import Reporter

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_URI = re.compile(r"'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")
# Never an unsigned archive, whatever the machine's configuration allows.
_SIGNED = (
    "-oAcquire::AllowInsecureRepositories=false",
    "-oAPT::Get::AllowUnauthenticated=false",
    "-oAPT::Sandbox::User=root",
)


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
        """The cache entry that holds the file."""
        return Entry("packages", self.sha256)


def known_package(name: str) -> Package | None:
    """Return the version of `name` that was fetched last on this machine, if any was."""
    try:
        return Package(**json.loads(_pointer(name).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def find_package(name: str, suites: Sequence[str]) -> tuple[Package, list[str]]:
    """Ask the archive for the newest version of `name`.

    Returns it and the apt options under which it was found: the machine's
    own configuration first, then each of `suites` of the same mirror.
    Raises MachineError if none has it.
    """
    roots = (_private_root(suite) for suite in suites)
    for options in itertools.chain([list(_SIGNED)], roots):
        listed = _apt_get([*options, "download", "--print-uris", name])
        match = _URI.search(listed.stdout)
        if listed.returncode == 0 and match:
            found = Package(name, match["file"], int(match["size"]), match["sha256"])
            return found, options
    raise MachineError(
        f"no package source of this machine offers {name}, nor does its mirror in "
        f"{', '.join(suites)}: check the network and /etc/apt, or give a kernel tree by --source."
    )


def fetch_package(name: str, suites: Sequence[str], reporter: Reporter) -> Package:
    """Download the newest version of package `name` into the cache and return it."""
    found, options = find_package(name, suites)

    def download(workplace: Path, kept: Path) -> None:
        partial = workplace / "download"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        log = workplace / "apt.log"
        title = f"Fetching {name} {found.version}"
        with (
            log.open("w") as sink,
            reporter.step(title, "MiB", found.size >> 20) as step,
            processes.kept(
                ["apt-get", *options, "download", name], cwd=partial, stdout=sink
            ) as apt,
        ):
            while apt.poll() is None:
                time.sleep(0.2)
                step.at(sum(file.stat().st_size for file in partial.glob("*")) >> 20)
            step.at(found.size >> 20)
        files = list(partial.glob("*.deb"))
        if apt.returncode or not files or digest_file(files[0]) != found.sha256:
            raise MachineError(
                f"fetching {name} failed: run the same command again once the mirror answers.",
                log.read_text().strip().splitlines()[-5:],
            )
        files[0].rename(kept / "package.deb")

    found.entry.obtain(download, reporter.say)
    write_atomically(_pointer(name), json.dumps(asdict(found)))
    return found


def _pointer(name: str) -> Path:
    return cache_root() / "packages" / f"{name}.json"


def _apt_get(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["apt-get", *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise MachineError(
            "apt-get is missing, so Debian's kernel sources cannot be fetched: "
            "give a kernel tree by --source."
        ) from None


def _private_root(suite: str) -> list[str]:
    """Give apt a root of its own that knows `suite` of the machine's mirror; return its options."""
    root = cache_root() / "apt" / suite
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    sources = root / "mirror.sources"
    write_atomically(
        sources,
        f"Types: deb\nURIs: {_mirror()}\nSuites: {suite}\nComponents: main\n"
        f"Signed-By: {_KEYRING}\n",
    )
    options = [
        *_SIGNED,
        f"-oDir::Etc::sourcelist={sources}",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={root / 'lists'}",
        f"-oDir::Cache={root / 'cache'}",
    ]
    with locked(root / "lock"):
        _apt_get([*options, "update"])
    return options


def _mirror() -> str:
    """Return the URI of the Debian mirror that this machine is configured to use."""
    listed = _apt_get(
        ["indextargets", "--no-release-info", "--format", "$(REPO_URI) $(LABEL)",
         "Created-By: Packages"]
    ).stdout.splitlines()  # fmt: skip
    # The label is known only once the machine's own lists were fetched;
    # before that the path tells the main archive from the others.
    for line in listed:
        uri, _, label = line.partition(" ")
        if label == "Debian" or uri.rstrip("/").endswith("/debian"):
            return uri
    raise MachineError(
        "no Debian mirror in this machine's package sources: add one to /etc/apt, "
        "or give a kernel tree by --source."
    )
