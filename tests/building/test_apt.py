# SPDX-License-Identifier: GPL-2.0
"""Packages from the host's own mirror, with a private apt root for suites it does not list."""

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.apt import (
    Closure,
    Unpacked,
    host_archives,
    mirror_archive,
    private_root,
    unpack,
)
from firsttouch.catalog.experiments import Packages
from firsttouch.errors import HostError
from firsttouch.progress import Reporter
from tests.support.full_disk import small_disk

# They ask the package registry, as the kernel layer's set-up does.
pytestmark = pytest.mark.kernel

Configure = Callable[[str], Path]
_STABLE = (
    "Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n"
    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
)


@pytest.fixture
def mirror() -> str:
    """The mirror that this host is configured to use."""
    return mirror_archive("any").uri


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Configure:
    """Give apt another configuration than the host's, for this test alone."""

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


def test_a_host_without_the_suite_gets_the_package_through_a_private_root(
    configure: Configure, mirror: str, own_cache: Path
) -> None:
    """Nor were its own lists ever fetched."""
    apt = configure(_STABLE.format(mirror=mirror, suite="bookworm-updates"))
    before = (apt / "only.sources").read_text()
    (package,), options = Closure(("linux-source-7.3",), ("trixie-backports",)).find()
    assert package.version.startswith("7.3.")
    (sources,) = [Path(option.partition("=")[2]) for option in options if "sourcelist=" in option]
    assert sources.is_relative_to(own_cache)
    assert "Suites: trixie-backports\n" in sources.read_text()
    assert (apt / "only.sources").read_text() == before


def _unsigned_archive(folder: Path) -> Path:
    """Make an unsigned archive with one package; return the package's file."""
    fields = (
        "Package: linux-source-0.0\nVersion: 0.0\nArchitecture: all\n"
        "Maintainer: nobody <nobody@example.org>\nDescription: not signed\n"
    )
    (folder / "tree/DEBIAN").mkdir(parents=True)
    (folder / "tree/DEBIAN/control").write_text(fields)
    package = folder / "linux-source-0.0_0.0_all.deb"
    subprocess.run(["dpkg-deb", "-b", folder / "tree", package], check=True, capture_output=True)
    listed = folder / "dists/bookworm/main/binary-all"
    listed.mkdir(parents=True)
    (listed / "Packages").write_text(
        f"{fields}Filename: {package.name}\nSize: {package.stat().st_size}\n"
        f"SHA256: {hashlib.sha256(package.read_bytes()).hexdigest()}\n"
    )
    packages = (listed / "Packages").read_bytes()
    (folder / "dists/bookworm/Release").write_text(
        "Origin: Debian\nLabel: Debian\nSuite: bookworm\nCodename: bookworm\n"
        "Architectures: all amd64 arm64\nComponents: main\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {hashlib.sha256(packages).hexdigest()} "
        f"{len(packages)} main/binary-all/Packages\n"
    )
    return package


@pytest.mark.parametrize("trust", ["Trusted: yes", "Allow-Insecure: yes", ""])
def test_an_unsigned_archive_is_refused_even_where_the_host_trusts_it(
    configure: Configure, tmp_path: Path, trust: str
) -> None:
    archive = tmp_path / "mirror/debian"
    archive.mkdir(parents=True)
    package = _unsigned_archive(archive)
    apt = configure(
        f"Types: deb\nURIs: file:{archive}\nSuites: bookworm\nComponents: main\n"
        f"Architectures: all\n{trust}\n"
    )
    if trust == "Trusted: yes":
        # The host itself accepts it silently, so there is something to refuse.
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "download", "-qq", "linux-source-0.0"], cwd=apt, check=True)
        assert (apt / package.name).exists()
    assert str(archive) in host_archives()[0].uri
    wanted = Closure(("linux-source-0.0",))
    with pytest.raises(HostError, match=r"signed lists of .*mirror/debian") as error:
        wanted.find()
    assert any("not signed" in line for line in error.value.detail)
    assert not wanted.last()


def test_lists_that_cannot_be_fetched_are_reported(configure: Configure, tmp_path: Path) -> None:
    """The error is not that the archive lacks the package."""
    configure(_STABLE.format(mirror=f"file:{tmp_path}/gone/debian", suite="bookworm"))
    with pytest.raises(HostError, match=r"could not fetch the signed lists of .*gone/debian"):
        Closure(("linux-source-6.12",)).find()


def test_a_list_of_mirrors_is_debians_by_its_name(configure: Configure, tmp_path: Path) -> None:
    configure("\n".join(
        f"Types: deb\nURIs: mirror+file:{slashes}{tmp_path}/{name}.list\nSuites: {suite}\n"
        "Components: main\n"
        for name, suite, slashes in (
            ("others", "bookworm", ""), ("debian-security", "bookworm-security", "//"),
            ("debian", "bookworm", "//"),
        )
    ))  # fmt: skip
    assert [archive.uri.rpartition("/")[2] for archive in host_archives()] == [
        "debian-security.list", "debian.list",
    ]  # fmt: skip
    assert mirror_archive("trixie").uri.endswith("/debian.list")


def test_what_is_not_to_be_had_is_one_sentence(configure: Configure) -> None:
    with pytest.raises(HostError, match=r"not offer linux-config-2\.4: check the network"):
        Closure(("linux-config-2.4",), ("trixie",), "arm64").find()
    with pytest.raises(HostError, match=r"trixie .*not offer no-such-program: name the package"):
        Unpacked(Packages("trixie", ("no-such-program",))).wanted().find()
    configure("Types: deb\nURIs: file:/somewhere/else\nSuites: bookworm\nComponents: main\n")
    with pytest.raises(HostError, match="name no Debian mirror"):
        mirror_archive("trixie")


def test_a_file_that_did_not_come_has_a_remedy(
    own_cache: Path, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = Packages("trixie", ("busybox-static",))
    (package,), words = Unpacked(packages).wanted().find()
    gone = replace(package, file="busybox-static_0.1_arm64.deb")
    monkeypatch.setattr(Closure, "find", lambda _: ((gone,), words))
    with pytest.raises(HostError, match=r"fetching busybox-static_0\.1_arm64\.deb .*network"):
        unpack(packages, reporter)


def test_what_was_unpacked_is_not_asked_for_again(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = Packages("trixie", ("busybox-static",))
    folder = unpack(packages, reporter)
    assert (folder / "usr/bin/busybox").read_bytes()[:4] == b"\x7fELF"
    monkeypatch.setenv("PATH", "")
    assert unpack(packages, reporter) == folder


def test_apt_is_not_begun_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for ever on a full disk."""
    with small_disk(tmp_path / "disk", 1 << 20):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "disk"))
        with pytest.raises(OSError, match="No space left on device"):
            private_root([mirror_archive("trixie")], "arm64")
