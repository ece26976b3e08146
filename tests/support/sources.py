# SPDX-License-Identifier: GPL-2.0
"""A kernel source of a few files."""

from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.source import KernelSource
from firsttouch.catalog.kernels import Release, load_release
from firsttouch.progress import Reporter


@dataclass(frozen=True)
class FakeSource(KernelSource):
    """A tree in `folder`, where each architecture has its configuration."""

    folder: Path = Path()

    def tree(self) -> Path:
        """Return the folder."""
        return self.folder

    def configuration(self, architecture: str = "arm64", flavour: str = "") -> Path:
        """Return a file that says what it is of."""
        file = self.folder / f"config-{architecture}{flavour}"
        file.write_text(f"# {architecture} {flavour}\n")
        return file


def fake_source(folder: Path = Path(), release: Release | None = None) -> FakeSource:
    """Return a source of 6.12, or of another release."""
    release = release or load_release("6.12")
    return FakeSource(release, "6.12.1", "package", "0" * 64, Reporter(), folder=folder)
