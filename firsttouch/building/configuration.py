# SPDX-License-Identifier: GPL-2.0
"""Debian's kernel configuration, unedited: what the lab's kernels start from."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

from firsttouch.building.distribution import DebianKernel
from firsttouch.building.packages import Package, fetch_package, last_package, note_package
from firsttouch.building.store import Entry
from firsttouch.catalog.architectures import (
    DEFAULT_ARCHITECTURE,
    Architecture,
    load_architecture,
)
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
_FILE = "config.{debian}_none_{flavour}.xz"


def stored_configuration(
    release: Release, flavour: str = "", architecture: str = DEFAULT_ARCHITECTURE
) -> Path | None:
    """Return what `debian_configuration` returns, if the store has it."""
    wanted = load_architecture(architecture)
    package = last_package(wanted.package(release.configuration))
    directory = _entry(package, flavour or wanted.cloud, wanted).use() if package else None
    return directory / "config" if directory else None


def debian_configuration(
    release: Release,
    version: str,
    reporter: Reporter,
    architecture: str = DEFAULT_ARCHITECTURE,
    *,
    flavour: str = "",
    newest: bool = False,
) -> Path:
    """Return Debian's configuration of `release` for one of FLAVOURS, or that of the cloud.

    It is of the package that was fetched before, unless `newest` asks for what
    the archive has now. If the archive lacks the package, that of the cloud
    comes from the image that Debian distributes of source `version`. Raises
    HostError if the archive has neither.
    """
    wanted = load_architecture(architecture)
    flavour = flavour or wanted.cloud
    if not newest and (stored := stored_configuration(release, flavour, architecture)):
        return stored
    name = wanted.package(release.configuration)
    package = None if newest else last_package(name)
    if package is None or package.entry.use() is None:
        try:
            package = fetch_package(name, release.suites, reporter, architecture=wanted.debian)
        except HostError:
            beside = (
                _beside_image(release, version, reporter, architecture)
                if flavour == wanted.cloud
                else None
            )
            if beside is None:
                raise
            return given_configuration(release, beside, reporter, architecture)
    return _extract(package, flavour, release, wanted, reporter)


def _extract(
    package: Package, flavour: str, release: Release, wanted: Architecture, reporter: Reporter
) -> Path:
    """Return the configuration of a flavour in `package`, which the store has."""
    file = _FILE.format(debian=wanted.debian, flavour=flavour)

    def make(workplace: Path, product: Path) -> None:
        packed = package.unpack(workplace) / "usr/src" / release.configuration / file
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    return _entry(package, flavour, wanted).obtain(make, reporter.say) / "config"


def given_configuration(
    release: Release, file: Path, reporter: Reporter, architecture: str = DEFAULT_ARCHITECTURE
) -> Path:
    """Take `file` as Debian's configuration of `release`, and return the store's copy of it.

    For a host whose archive cannot be asked. `file` is a kernel's configuration
    for `architecture`, which may be packed by xz, as in the package that
    `Release.configuration` names. Raises UserError if it is not.
    """
    wanted = load_architecture(architecture)
    cloud = _FILE.format(debian=wanted.debian, flavour=wanted.cloud)
    try:
        data = file.read_bytes()
        text = lzma.decompress(data) if file.suffix == ".xz" else data
    except (OSError, lzma.LZMAError) as error:
        raise UserError(f"{file} cannot be read ({error}): give {cloud}, or its text.") from None
    if not re.search(rf"^CONFIG_{wanted.option}=y$".encode(), text, re.M):
        raise UserError(
            f"{file} is no configuration of an {architecture} kernel: give {cloud} of Debian's "
            f"package {release.configuration}, or its text."
        )
    package = Package(release.configuration, file.name, len(data), digest_file(file))

    def make(_: Path, product: Path) -> None:
        (product / "config").write_bytes(text)

    product = _entry(package, wanted.cloud, wanted).obtain(make, reporter.say) / "config"
    note_package(wanted.package(release.configuration), package)
    return product


def _beside_image(
    release: Release, version: str, reporter: Reporter, architecture: str
) -> Path | None:
    """Return the configuration in the package of Debian's image; None if there is none."""
    try:
        file = DebianKernel(release, version, architecture).obtain(reporter) / "config"
    except HostError:
        return None
    return file if file.exists() else None


def _entry(package: Package, flavour: str, wanted: Architecture) -> Entry:
    more = {} if flavour == wanted.cloud else {"flavour": flavour}
    recipe = {"configuration": package.sha256, **more}
    return Entry("packages", recipe, f"configuration {flavour} of {package.file}")


def missed_options(wanted: str, config: str) -> list[str]:
    """Return the options that the text of a .config does not have as fragments ask for.

    An option without a line is not set.
    """
    got = set(config.splitlines())

    def has(name: str, value: str) -> bool:
        if value == " is not set":
            return not any(option.startswith(f"{name}=") for option in got)
        return f"{name}{value}" in got

    # The last line for an option wins, as in Kconfig.
    lines = re.findall(r"^(?:# )?(CONFIG_\w+)(=.*| is not set)$", wanted, re.M)
    return [name for name, value in dict(lines).items() if not has(name, value)]
