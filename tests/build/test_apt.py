# SPDX-License-Identifier: GPL-2.0
"""Packages from the machine's own mirror, by a private root where its configuration lacks them."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.build.packages import (
    fetch_package,
    find_closure,
    find_package,
    known_package,
    unpack,
)
from firsttouch.errors import HostError
from firsttouch.progress import Reporter

# They ask the package registry, as the kernel layer's set-up does.
pytestmark = pytest.mark.kernel

Configure = Callable[[str], Path]
_STABLE = (
    "Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n"
    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
)


@pytest.fixture
def mirror() -> str:
    """The mirror that this machine is configured to use."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return listed.stdout.split()[0]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Configure:
    """Give apt another configuration than the machine's, for this test alone."""

    def write(sources: str) -> Path:
        for folder in ("lists/partial", "archives/partial"):
            (tmp_path / "apt" / folder).mkdir(parents=True)
        (tmp_path / "apt/only.sources").write_text(sources)
        (tmp_path / "apt/apt.conf").write_text(
            f'Dir::Etc::sourcelist "{tmp_path}/apt/only.sources";\n'
            'Dir::Etc::sourceparts "-";\n'
            f'Dir::State::lists "{tmp_path}/apt/lists";\n'
            f'Dir::Cache::archives "{tmp_path}/apt/archives";\n'
            f'Dir::Cache::pkgcache "{tmp_path}/apt/pkgcache.bin";\n'
            f'Dir::Cache::srcpkgcache "{tmp_path}/apt/srcpkgcache.bin";\n'
        )
        monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt/apt.conf"))
        return tmp_path / "apt"

    return write


def test_a_machine_without_the_suite_gets_the_package_through_a_private_root(
    configure: Configure, mirror: str, own_cache: Path
) -> None:
    apt = configure(_STABLE.format(mirror=mirror, suite="bookworm"))
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    before = (apt / "only.sources").read_text()
    package, options = find_package("linux-source-6.12", ("trixie",))
    assert package.version.startswith("6.12.")
    assert any(str(own_cache / "apt/trixie") in option for option in options)
    assert (apt / "only.sources").read_text() == before


def test_lists_that_were_never_fetched_are_no_obstacle(configure: Configure, mirror: str) -> None:
    configure(_STABLE.format(mirror=mirror, suite="bookworm"))
    package, _ = find_package("linux-source-7.3", ("trixie-backports",))
    assert package.version.startswith("7.3.")


def test_an_unsigned_archive_is_refused(
    configure: Configure, tmp_path: Path, reporter: Reporter
) -> None:
    """Even where the machine itself would take packages from it."""
    archive = tmp_path / "archive"
    (archive / "DEBIAN").mkdir(parents=True)
    (archive / "DEBIAN/control").write_text(
        "Package: linux-source-0.0\nVersion: 0.0\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: not signed\n"
    )
    subprocess.run(["dpkg-deb", "-b", archive, tmp_path / "linux-source-0.0_0.0_all.deb"],
                   check=True, capture_output=True)  # fmt: skip
    package = tmp_path / "linux-source-0.0_0.0_all.deb"
    (tmp_path / "Packages").write_text(
        "Package: linux-source-0.0\nVersion: 0.0\nArchitecture: all\n"
        f"Filename: ./{package.name}\nSize: {package.stat().st_size}\n"
        f"SHA256: {hashlib.sha256(package.read_bytes()).hexdigest()}\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: not signed\n"
    )
    apt = configure(f"Types: deb\nURIs: file:{tmp_path}\nSuites: ./\n")
    insecure = (
        "-oAcquire::AllowInsecureRepositories=true",
        "-oAPT::Get::AllowUnauthenticated=true",
        "-oAPT::Sandbox::User=root",
    )
    subprocess.run(["apt-get", *insecure, "update", "-qq"], check=True)
    subprocess.run(
        ["apt-get", *insecure, "download", "-qq", "linux-source-0.0"], cwd=apt, check=True
    )
    assert (apt / package.name).exists()
    with pytest.raises(HostError, match=r"linux-source-0\.0"):
        fetch_package("linux-source-0.0", (), reporter)


def test_a_package_that_nobody_has_is_one_sentence(own_cache: Path) -> None:
    with pytest.raises(HostError, match=r"offers linux-source-2\.4.*--source"):
        find_package("linux-source-2.4", ("trixie",))


def test_a_program_that_the_suite_lacks_is_one_sentence(own_cache: Path) -> None:
    with pytest.raises(HostError, match=r"trixie .*does not offer no-such-program for arm64: "):
        find_closure("trixie", ("no-such-program",))


def test_what_was_fetched_is_known_and_not_asked_for_again(
    own_cache: Path, reporter: Reporter
) -> None:
    assert known_package("hello") is None
    package = fetch_package("hello", (), reporter)
    assert known_package("hello") == package
    assert (package.entry.path / "package.deb").stat().st_size == package.size


def test_what_was_unpacked_is_not_asked_for_again(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpack("trixie", ("busybox-static",), reporter)
    assert (folder / "usr/bin/busybox").read_bytes()[:4] == b"\x7fELF"
    monkeypatch.setenv("PATH", "")
    assert unpack("trixie", ("busybox-static",), reporter) == folder
