# SPDX-License-Identifier: GPL-2.0
"""The kernel images that Debian distributes, and the configurations that it builds them with."""

from __future__ import annotations

import lzma
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import Closure, Files, Package, Unpack, obtain
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
    def _wanted(self) -> Closure:
        architecture = load_architecture(self.architecture)
        name = self.release.binary.format(version=self.version, cloud=architecture.cloud)
        return Closure((name,), self.release.suites, architecture.debian)

    @staticmethod
    def _entry(files: Files) -> Entry:
        recipe = {"image, symbols and configuration": files[0].sha256}
        return Entry("images", recipe, f"kernel of {files[0].file}")

    def stored(self) -> Path | None:
        files = self._wanted.last()
        return self._entry(files).use() if files else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the directory with ``Image`` and ``System.map``, and ``config`` if it is packed.

        The symbols are those that the image itself holds for its messages.
        Raises HostError if the archive lacks the package.
        """
        try:
            return obtain(self._wanted, self._entry, self._make, reporter)
        except HostError as error:
            raise HostError(
                f"{error} If the archive has a newer one than {self.version}, "
                f"`firsttouch kernel fetch --release {self.release.name}` moves on to it.",
                error.detail,
            ) from None

    def _make(self, unpack: Unpack, product: Path) -> None:
        folder = product.parent / "package"
        unpack(folder)
        images = [image for pattern in _IMAGES for image in folder.glob(pattern)]
        if len(images) != 1:
            raise HostError(
                f"Debian's package holds {len(images)} kernel images, not 1: correct `binary` in "
                f"{self.release.hooks / 'source.toml'}."
            )
        shutil.copyfile(images[0], product / "Image")
        symbols = output([sys.executable, "-m", _SYMBOL_FINDER, product / "Image"]).splitlines()
        (product / "System.map").write_text("".join(f"{line}\n" for line in sorted(symbols)))
        for configuration in folder.glob("boot/config-*"):
            shutil.copyfile(configuration, product / "config")


@dataclass(frozen=True)
class _Configuration:
    """Debian's configuration of a release for one of FLAVOURS, or that of the cloud."""

    release: Release
    architecture: Architecture
    flavour: str

    @property
    def file(self) -> str:
        return _FILE.format(debian=self.architecture.debian, flavour=self.flavour)

    @property
    def wanted(self) -> Closure:
        # Another flavour must not move kernels for the cloud on to another version.
        other = "" if self.flavour == self.architecture.cloud else f"-{self.flavour}"
        name = self.architecture.package(self.release.configuration)
        return Closure((name,), self.release.suites, self.architecture.debian, note=other)

    def entry(self, files: Files) -> Entry:
        more = {} if self.flavour == self.architecture.cloud else {"flavour": self.flavour}
        recipe = {"configuration": files[0].sha256, **more}
        return Entry("packages", recipe, f"configuration {self.flavour} of {files[0].file}")

    def make(self, unpack: Unpack, product: Path) -> None:
        folder = product.parent / "package"
        unpack(folder)
        packed = folder / "usr/src" / self.release.configuration / self.file
        (product / "config").write_bytes(lzma.decompress(packed.read_bytes()))


def _configuration(release: Release, flavour: str, architecture: str) -> _Configuration:
    wanted = load_architecture(architecture)
    return _Configuration(release, wanted, flavour or wanted.cloud)


def stored_configuration(
    release: Release, flavour: str = "", architecture: str = DEFAULT_ARCHITECTURE
) -> Path | None:
    configuration = _configuration(release, flavour, architecture)
    files = configuration.wanted.last()
    directory = configuration.entry(files).use() if files else None
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

    It is the one that was fetched before, unless `newest` asks for what
    the archive has now. Raises HostError if the archive lacks the package.
    """
    wanted = _configuration(release, flavour, architecture)
    return obtain(wanted.wanted, wanted.entry, wanted.make, reporter, newest=newest) / "config"


def given_configuration(
    release: Release, file: Path, reporter: Reporter, architecture: str = DEFAULT_ARCHITECTURE
) -> Path:
    """Take `file` as Debian's configuration of `release`, and return the store's copy of it.

    For a host whose archive cannot be asked. `file` may be packed by xz, as in Debian's package.
    Raises UserError if it is no configuration for `architecture`.
    """
    wanted = _configuration(release, "", architecture)
    try:
        data = file.read_bytes()
        text = lzma.decompress(data) if file.suffix == ".xz" else data
    except (OSError, lzma.LZMAError) as error:
        raise UserError(
            f"{file} cannot be read ({error}): give {wanted.file}, or its text."
        ) from None
    if not re.search(rf"^CONFIG_{wanted.architecture.option}=y$".encode(), text, re.M):
        raise UserError(
            f"{file} is no configuration of an {architecture} kernel: give {wanted.file} of "
            f"Debian's package {release.configuration}, or its text."
        )
    files = (Package(file.name, len(data), digest_file(file)),)

    def make(_: Path, product: Path) -> None:
        (product / "config").write_bytes(text)

    product = wanted.entry(files).obtain(make, reporter.say)
    wanted.wanted.remember(files)
    return product / "config"
