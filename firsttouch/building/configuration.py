# SPDX-License-Identifier: GPL-2.0
"""Debian's kernel configuration, unedited: what the lab's kernels start from."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

from firsttouch.building.distribution import DebianKernel
from firsttouch.building.packages import Package, fetch_package, known_package, note_package
from firsttouch.building.store import Entry
from firsttouch.catalog.releases import Release
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest_file
from firsttouch.progress import Reporter

# Debian's name for what its arm64 kernels are built for: servers in virtual
# machines. The lab's kernels start from its configuration.
CLOUD = "cloud-arm64"
# The flavours that both releases have.
FLAVOURS = (CLOUD, "arm64", "arm64-16k")
# A flavour's file in the package that `Release.configuration` names.
_FILE = "config.arm64_none_{flavour}.xz"
_CLOUD_FILE = _FILE.format(flavour=CLOUD)


def known_configuration(release: Release, flavour: str = CLOUD) -> Path | None:
    """Return what `debian_configuration` returns, if the store has it."""
    package = known_package(release.configuration)
    directory = _entry(package, flavour).use() if package else None
    return directory / "config" if directory else None


def debian_configuration(
    release: Release,
    version: str,
    reporter: Reporter,
    *,
    flavour: str = CLOUD,
    newest: bool = False,
) -> Path:
    """Return Debian's configuration of `release` for one of FLAVOURS.

    It is of the package that was fetched before, unless `newest` asks for what
    the archive has now. If the archive lacks the package, that of the cloud
    comes from the image that Debian distributes of source `version`. Raises
    HostError if the archive has neither.
    """
    if not newest and (known := known_configuration(release, flavour)):
        return known
    package = None if newest else known_package(release.configuration)
    if package is None or package.entry.use() is None:
        try:
            package = fetch_package(release.configuration, release.suites, reporter, arm64=True)
        except HostError:
            beside = _beside_image(release, version, reporter) if flavour == CLOUD else None
            if beside is None:
                raise
            return given_configuration(release, beside, reporter)
    return _extract(package, flavour, release, reporter)


def _extract(package: Package, flavour: str, release: Release, reporter: Reporter) -> Path:
    """Return the configuration of a flavour in `package`, which the store has."""
    file = _FILE.format(flavour=flavour)

    def make(workplace: Path, product: Path) -> None:
        packed = package.unpack(workplace) / "usr/src" / release.configuration / file
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    return _entry(package, flavour).obtain(make, reporter.say) / "config"


def given_configuration(release: Release, file: Path, reporter: Reporter) -> Path:
    """Take `file` as Debian's configuration of `release`, and return the store's copy of it.

    For a host whose archive cannot be asked. `file` is a kernel's configuration
    for arm64, which may be packed by xz, as in the package that
    `Release.configuration` names. Raises UserError if it is not.
    """
    try:
        data = file.read_bytes()
        text = lzma.decompress(data) if file.suffix == ".xz" else data
    except (OSError, lzma.LZMAError) as error:
        raise UserError(
            f"{file} cannot be read ({error}): give {_CLOUD_FILE}, or its text."
        ) from None
    if not re.search(rb"^CONFIG_ARM64=y$", text, re.M):
        raise UserError(
            f"{file} is no configuration of an arm64 kernel: give {_CLOUD_FILE} of Debian's "
            f"package {release.configuration}, or its text."
        )
    package = Package(release.configuration, file.name, len(data), digest_file(file))

    def make(_: Path, product: Path) -> None:
        (product / "config").write_bytes(text)

    product = _entry(package, CLOUD).obtain(make, reporter.say) / "config"
    note_package(release.configuration, package)
    return product


def _beside_image(release: Release, version: str, reporter: Reporter) -> Path | None:
    """Return the configuration in the package of Debian's image; None if there is none."""
    try:
        file = DebianKernel(release, version).obtain(reporter) / "config"
    except HostError:
        return None
    return file if file.exists() else None


def _entry(package: Package, flavour: str) -> Entry:
    more = {} if flavour == CLOUD else {"flavour": flavour}
    recipe = {"configuration": package.sha256, **more}
    return Entry("packages", recipe, f"configuration {flavour} of {package.file}")
