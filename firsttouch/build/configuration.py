# SPDX-License-Identifier: GPL-2.0
"""Debian's kernel configuration, unedited: what the lab's kernels start from."""

from __future__ import annotations

import lzma
from pathlib import Path

from firsttouch.build.packages import Package, fetch_package, known_package
from firsttouch.build.store import Entry
from firsttouch.catalog.releases import Release
from firsttouch.progress import Reporter

# Of arm64's configurations, that of the cloud: servers in virtual machines.
_FILE = "config.arm64_none_cloud-arm64.xz"


def known_configuration(release: Release) -> Path | None:
    """Return what `debian_configuration` returns, if the store has it."""
    package = known_package(release.configuration)
    directory = _entry(package).use() if package else None
    return directory / "config" if directory else None


def debian_configuration(release: Release, reporter: Reporter, *, newest: bool = False) -> Path:
    """Return Debian's configuration of `release` for arm64 in the cloud.

    The version that was fetched before is used again, unless `newest` asks for
    what the archive has now. Raises HostError if the archive cannot be reached.
    """
    if not newest and (known := known_configuration(release)):
        return known
    package = fetch_package(release.configuration, release.suites, reporter, arm64=True)

    def make(workplace: Path, kept: Path) -> None:
        packed = package.unpack(workplace) / "usr/src" / release.configuration / _FILE
        (kept / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    return _entry(package).obtain(make, reporter.say) / "config"


def _entry(package: Package) -> Entry:
    return Entry("packages", {"configuration": package.sha256}, f"configuration of {package.file}")
