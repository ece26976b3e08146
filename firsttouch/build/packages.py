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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from firsttouch import processes
from firsttouch.build.store import Entry, cache_root, digest, digest_file, locked, write_atomically
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
_INSTALL = ("-oAcquire::ForceHash=SHA256", "-y", "--no-install-recommends", "install")


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


@dataclass(frozen=True)
class Closure:
    """arm64 packages and all that they depend on, as one suite has them.

    `files` are the names, sizes in bytes and SHA-256 of the packages' files.
    """

    suite: str
    names: tuple[str, ...]
    files: tuple[tuple[str, int, str], ...]

    def download(self, folder: Path, reporter: Reporter) -> list[Path]:
        """Download the packages into `folder`, but for those that it has; return them in order.

        Raises MachineError if the archive no longer has one of them.
        """
        (folder / "partial").mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name, _, _ in self.files]
        total = sum(size for _, size, _ in self.files) >> 20
        with (
            (folder / "apt.log").open("w") as sink,
            reporter.step(f"Fetching {', '.join(self.names)}", "MiB", total) as step,
            processes.kept(
                ["apt-get", *_arm64_root(self.suite), f"-oDir::Cache::Archives={folder}",
                 "--download-only", *_INSTALL, *self.names],
                stdout=sink,
            ) as apt,
        ):  # fmt: skip
            while apt.poll() is None:
                time.sleep(0.2)
                step.at(sum(path.stat().st_size for path in paths if path.exists()) >> 20)
            step.at(total)
        for path, (name, _, sha256) in zip(paths, self.files, strict=True):
            if not path.exists() or digest_file(path) != sha256:
                raise MachineError(
                    f"{self.suite} no longer has {name}: run the same command again.",
                    (folder / "apt.log").read_text().strip().splitlines()[-5:],
                )
        return paths

    def unpack(self, archives: Path, folder: Path, reporter: Reporter) -> None:
        """Download the packages into `archives`; unpack them in `folder`, running nothing."""
        for package in self.download(archives, reporter):
            processes.output(["dpkg-deb", "-x", package, folder])


def known_closure(suite: str, names: Sequence[str]) -> Closure | None:
    """Return what `find_closure` found last on this machine for these, if it did."""
    try:
        files = json.loads(_closure_pointer(suite, names).read_text())
        return Closure(suite, tuple(names), tuple((name, size, sha) for name, size, sha in files))
    except (OSError, ValueError, TypeError):
        return None


def find_closure(suite: str, names: Sequence[str]) -> Closure:
    """Ask the archive for arm64 packages and what they depend on; MachineError if it lacks one."""
    listed = _apt_get([*_arm64_root(suite), "--print-uris", *_INSTALL, *names])
    found = tuple(
        (match["file"], int(match["size"]), match["sha256"])
        for match in _URI.finditer(listed.stdout)
    )
    if listed.returncode or not found:
        raise MachineError(
            f"{suite} of this machine's mirror does not offer {', '.join(names)} for arm64: "
            "check the network and /etc/apt.",
            listed.stderr.strip().splitlines()[-3:],
        )
    write_atomically(_closure_pointer(suite, names), json.dumps(found))
    return Closure(suite, tuple(names), found)


def obtain_from_closure(
    suite: str,
    names: Sequence[str],
    entry: Callable[[Closure], Entry],
    make: Callable[[Closure, Path, Path], None],
    reporter: Reporter,
) -> Path:
    """Return the directory of what `make` makes of packages, as Entry.obtain does.

    What was made once stays as it is, and needs no network again. Raises
    MachineError if the packages cannot be had.
    """
    known = known_closure(suite, names)
    if known and entry(known).whole():
        return entry(known).path
    found = find_closure(suite, names)
    return entry(found).obtain(partial(make, found), reporter.say)


def unpack(suite: str, names: Sequence[str], reporter: Reporter) -> Path:
    """Return a folder with arm64 packages and all that they depend on, unpacked.

    None of their code runs here. Raises MachineError if they cannot be had.
    """

    def entry(closure: Closure) -> Entry:
        return Entry("packages", digest({"unpacked": closure.files}))

    def make(closure: Closure, workplace: Path, kept: Path) -> None:
        closure.unpack(workplace / "archives", kept, reporter)

    return obtain_from_closure(suite, names, entry, make, reporter)


def _closure_pointer(suite: str, names: Sequence[str]) -> Path:
    return cache_root() / "packages" / f"closure-{digest([suite, *names])[:32]}.json"


def _arm64_root(suite: str) -> list[str]:
    """Return apt's options for a machine of arm64 on which nothing is installed."""
    return _private_root(suite, "-oAPT::Architecture=arm64", "-oAPT::Architectures=arm64")


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


def _private_root(suite: str, *more: str) -> list[str]:
    """Give apt a root of its own that knows `suite` of the machine's mirror; return its options.

    With `more` options the root is another one, on which nothing is installed.
    """
    root = cache_root() / "apt" / (f"{suite}-{digest(more)[:8]}" if more else suite)
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
    if more:
        write_atomically(root / "status", "")
        options += [f"-oDir::State::status={root / 'status'}", *more]
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
