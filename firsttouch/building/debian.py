# SPDX-License-Identifier: GPL-2.0
"""The kernel images that Debian distributes, and the configurations that it builds them with."""

from __future__ import annotations

import lzma
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import Closure, Files, FromPackages, Package
from firsttouch.building.store import Entry
from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE, Release, load_architecture
from firsttouch.errors import UserError
from firsttouch.files import digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# An image, and the addresses of its functions, beside each other.
IMAGE, SYMBOLS = "Image", "System.map"
# Where Debian's packages have the image: linux-image-* and linux-binary-*.
_IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
# Prints a line ADDRESS TYPE NAME for each symbol of an image.
_SYMBOL_FINDER = "vmlinux_to_elf.scripts.kallsyms_finder"
# Debian's name for what its arm64 kernels are built for: servers in virtual
# machines. The lab's kernels start from its configuration.
CLOUD = "cloud-arm64"
# The flavours that both releases have.
FLAVOURS = (CLOUD, "arm64", "arm64-16k")


@dataclass(frozen=True)
class DebianKernel(FromPackages):
    """The image that Debian distributes for the cloud, built from `version`.

    Its ``System.map`` has the symbols that the image itself holds for its messages.
    """

    release: Release
    version: str
    architecture: str = DEFAULT_ARCHITECTURE

    def wanted(self) -> Closure:
        architecture = load_architecture(self.architecture)
        name = self.release.binary.format(version=self.version, cloud=architecture.cloud)
        return Closure((name,), self.release.suites, architecture.debian)

    def entry(self, files: Files) -> Entry:
        recipe = {"image, symbols and configuration": files[0].sha256}
        return Entry("images", recipe, f"kernel of {files[0].file}", IMAGE)

    def make(self, unpacked: Path, product: Path) -> None:
        image, *_ = [image for pattern in _IMAGES for image in unpacked.glob(pattern)]
        shutil.copyfile(image, product / IMAGE)
        symbols = output([sys.executable, "-m", _SYMBOL_FINDER, product / IMAGE]).splitlines()
        (product / SYMBOLS).write_text("".join(f"{line}\n" for line in sorted(symbols)))


@dataclass(frozen=True)
class Configuration(FromPackages):
    """Debian's configuration of a release for one of FLAVOURS, or for the cloud."""

    release: Release
    architecture: str = DEFAULT_ARCHITECTURE
    flavour: str = ""

    @property
    def _packed(self) -> str:
        architecture = load_architecture(self.architecture)
        return f"config.{architecture.debian}_none_{self.flavour or architecture.cloud}.xz"

    def wanted(self) -> Closure:
        architecture = load_architecture(self.architecture)
        name = architecture.package(self.release.configuration)
        # Another flavour must not move kernels for the cloud on to another version.
        note = f"-{self.flavour}" if self.flavour not in ("", architecture.cloud) else ""
        return Closure((name,), self.release.suites, architecture.debian, note=note)

    def entry(self, files: Files) -> Entry:
        more = {"flavour": self.flavour} if self.wanted().note else {}
        recipe = {"configuration": files[0].sha256, **more}
        return Entry("packages", recipe, f"{self._packed} of {files[0].file}", "config")

    def make(self, unpacked: Path, product: Path) -> None:
        packed = unpacked / "usr/src" / self.release.configuration / self._packed
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))

    def give(self, given: Path, reporter: Reporter) -> Path:
        """Take the file `given` as this configuration, and return the store's copy of it.

        For a host whose archive cannot be asked. It may be packed by xz, as in Debian's package.
        """
        try:
            data = given.read_bytes()
            text = lzma.decompress(data) if given.suffix == ".xz" else data
        except (OSError, lzma.LZMAError) as error:
            raise UserError(
                f"{given} cannot be read ({error}): give {self._packed}, or its text."
            ) from None
        files = (Package(given.name, len(data), digest_file(given)),)

        def make(_: Path, product: Path) -> None:
            (product / "config").write_bytes(text)

        self.wanted().remember(files)
        return self.entry(files).obtain(make, reporter.say)
