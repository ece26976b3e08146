# SPDX-License-Identifier: GPL-2.0
"""The kernel images that Debian distributes, and the configurations that it builds them with."""

from __future__ import annotations

import lzma
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import Package, fetch_package, last_package, note_package
from firsttouch.building.store import Entry
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, Architecture, load_architecture
from firsttouch.catalog.releases import Release
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Where Debian's packages have the image: linux-image-* and linux-binary-*.
_IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
# Prints a line ADDRESS TYPE NAME for each symbol of an image.
_SYMBOL_FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
# Debian's name for what its arm64 kernels are built for: servers in virtual
# machines. The lab's kernels start from its configuration.
CLOUD = "cloud-arm64"
# The flavours that both releases have, and a flavour's file in `Release.configuration`.
FLAVOURS = (CLOUD, "arm64", "arm64-16k")
_FILE = "config.{debian}_none_{flavour}.xz"


@dataclass(frozen=True)
class DebianKernel:
    """The image that Debian distributes for the cloud, built from source `version`."""

    release: Release
    version: str
    architecture: str = DEFAULT_ARCHITECTURE

    @property
    def _package(self) -> str:
        cloud = load_architecture(self.architecture).cloud
        return self.release.binary.format(version=self.version, cloud=cloud)

    @staticmethod
    def _entry(package: Package) -> Entry:
        recipe = {"image, symbols and configuration": package.sha256}
        return Entry("images", recipe, f"kernel of {package.file}")

    def stored(self) -> Path | None:
        package = last_package(self._package)
        return self._entry(package).use() if package else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the directory with ``Image`` and ``System.map``, and ``config`` if it is packed.

        The symbols are those that the image itself holds for its messages.
        Raises HostError if the archive lacks the package.
        """
        if stored := self.stored():
            return stored
        try:
            debian = load_architecture(self.architecture).debian
            package = fetch_package(
                self._package, self.release.suites, reporter, architecture=debian
            )
        except HostError as error:
            raise HostError(
                f"{error} If the archive has a newer one than {self.version}, "
                f"`firsttouch kernel fetch --release {self.release.name}` moves on to it.",
                error.detail,
            ) from None

        def make(workplace: Path, product: Path) -> None:
            folder = package.unpack(workplace)
            images = [image for pattern in _IMAGES for image in folder.glob(pattern)]
            if len(images) != 1:
                raise HostError(
                    f"{package.file} holds {len(images)} kernel images, not 1: correct `binary` "
                    f"in {self.release.hooks / 'source.toml'}."
                )
            shutil.copyfile(images[0], product / "Image")
            symbols = output([sys.executable, "-m", _SYMBOL_FINDER, product / "Image"]).splitlines()
            (product / "System.map").write_text("".join(f"{line}\n" for line in sorted(symbols)))
            for configuration in folder.glob("boot/config-*"):
                shutil.copyfile(configuration, product / "config")

        return self._entry(package).obtain(make, reporter.say)


def _configuration_entry(package: Package, flavour: str, wanted: Architecture) -> Entry:
    more = {} if flavour == wanted.cloud else {"flavour": flavour}
    recipe = {"configuration": package.sha256, **more}
    return Entry("packages", recipe, f"configuration {flavour} of {package.file}")


def stored_configuration(
    release: Release, flavour: str = "", architecture: str = DEFAULT_ARCHITECTURE
) -> Path | None:
    wanted = load_architecture(architecture)
    package = last_package(wanted.package(release.configuration))
    if package is None:
        return None
    directory = _configuration_entry(package, flavour or wanted.cloud, wanted).use()
    return directory / "config" if directory else None


def debian_configuration(
    release: Release,
    reporter: Reporter,
    architecture: str = DEFAULT_ARCHITECTURE,
    *,
    flavour: str = "",
    newest: bool = False,
) -> Path:
    """Return Debian's configuration of `release` for one of FLAVOURS, or that of the cloud.

    It is of the package that was fetched before, unless `newest` asks for what
    the archive has now. Raises HostError if the archive lacks the package.
    """
    wanted = load_architecture(architecture)
    flavour = flavour or wanted.cloud
    if not newest and (stored := stored_configuration(release, flavour, architecture)):
        return stored
    name = wanted.package(release.configuration)
    package = None if newest else last_package(name)
    if package is None or package.entry.use() is None:
        package = fetch_package(name, release.suites, reporter, architecture=wanted.debian)
    file = _FILE.format(debian=wanted.debian, flavour=flavour)

    def make(workplace: Path, product: Path) -> None:
        packed = package.unpack(workplace) / "usr/src" / release.configuration / file
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    return _configuration_entry(package, flavour, wanted).obtain(make, reporter.say) / "config"


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
    package = Package(file.name, len(data), digest_file(file))

    def make(_: Path, product: Path) -> None:
        (product / "config").write_bytes(text)

    product = _configuration_entry(package, wanted.cloud, wanted).obtain(make, reporter.say)
    note_package(wanted.package(release.configuration), package)
    return product / "config"
