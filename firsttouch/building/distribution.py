# SPDX-License-Identifier: GPL-2.0
"""Debian's own binary kernel of a release: the oracle for the kernels that are built here."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.packages import Package, fetch_package, last_package
from firsttouch.building.store import Entry
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE, load_architecture
from firsttouch.catalog.releases import Release
from firsttouch.errors import HostError
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Where Debian's packages have the image: linux-image-* and linux-binary-*.
_IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
# Prints a line ADDRESS TYPE NAME for each symbol of an image.
_SYMBOL_FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
# Where linux-image-* has the image's configuration; linux-binary-* has none.
_CONFIGURATION = "boot/config-*"


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

    def stored(self) -> Path | None:
        """Return the directory that `obtain` returns, if the store has it."""
        package = last_package(self._package)
        return _entry(package).use() if package else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the directory with ``Image`` and ``System.map``, and ``config`` if it is packed.

        The symbols are those that the image itself holds for its messages.
        Raises HostError if the archive lacks the package.
        """
        package = last_package(self._package)
        if package and (stored := _entry(package).use()):
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
            for configuration in folder.glob(_CONFIGURATION):
                shutil.copyfile(configuration, product / "config")

        return _entry(package).obtain(make, reporter.say)


def _entry(package: Package) -> Entry:
    return Entry(
        "images", {"image, symbols and configuration": package.sha256}, f"kernel of {package.file}"
    )
