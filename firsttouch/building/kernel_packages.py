# SPDX-License-Identifier: GPL-2.0
"""Debian packages of kernels in Debian's own configurations, for real machines."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.configuration import CLOUD, debian_configuration
from firsttouch.building.host_tools import find_tool
from firsttouch.building.images import KernelImage
from firsttouch.building.sources import KernelSource
from firsttouch.building.store import Entry
from firsttouch.places import LINUX
from firsttouch.progress import Reporter

# What bindeb-pkg calls beyond what an image needs.
_TOOLS = ("dpkg-buildpackage", "dh_builddeb", "depmod")


@dataclass(frozen=True)
class KernelPackage(KernelImage):
    """The package linux-image-VERSION of a kernel in Debian's configuration of `flavour`.

    If `changed`, the features are built in; boot parameters choose them. The
    package has the modules, and no headers and no debug information.
    """

    flavour: str = CLOUD

    @property
    def title(self) -> str:
        """The package's name in messages."""
        return f"{super().title}, {self.flavour}"

    @property
    def target(self) -> tuple[str, ...]:
        """What make is asked for: bindeb-pkg, without the package of headers."""
        return (
            "bindeb-pkg",
            f"LOCALVERSION={self._suffix}",
            # Debian's list of build dependencies includes those of other packages.
            "DPKG_FLAGS=--no-check-builddeps --build-profiles=pkg.linux-upstream.nokernelheaders",
        )

    @property
    def _suffix(self) -> str:
        """What follows the version in the name of the release, as uname -r prints it."""
        return f"-{'first-touch' if self.changed else 'stock'}-{self.flavour}"

    def fragments_in_order(self) -> list[Path]:
        """Return the configuration fragments; an option in a later one wins."""
        configs = LINUX / "configs"
        return [
            configs / "package",
            *([configs / "package-features"] if self.changed else []),
            *self.fragments,
        ]

    def entry(self) -> Entry:
        """Return the store's entry; its recipe is an image's, and what make is asked for."""
        recipe = {**super().entry().recipe, "target": list(self.target)}
        return Entry("images", recipe, f"package of kernel {self.title}")

    def file(self, reporter: Reporter) -> Path:
        """Return the package, built if the store lacks it.

        Raises HostError if a tool is missing, BuildError with the compiler's errors.
        """
        for tool in _TOOLS:
            find_tool(tool)
        return next(self.obtain(reporter).glob("*.deb"))

    def _command(self, tree: Path, objects: Path, *target: str) -> list[str]:
        # Otherwise the revision grows with each run of make.
        version = f"KDEB_PKGVERSION={self.source.version}-1"
        return [*super()._command(tree, objects, *target), version]

    def _products(self, objects: Path) -> list[Path]:
        # dpkg-buildpackage writes packages beside the directory that it builds in.
        return list(objects.parent.glob("linux-image-*.deb"))


def kernel_package(
    source: KernelSource, flavour: str, reporter: Reporter, *, changed: bool
) -> KernelPackage:
    """Return the package of `source` in Debian's configuration of `flavour`."""
    configuration = functools.partial(
        debian_configuration, source.release, source.version, reporter, flavour=flavour
    )
    return KernelPackage(
        replace(source, configuration=configuration), changed=changed, flavour=flavour
    )
