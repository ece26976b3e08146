# SPDX-License-Identifier: GPL-2.0
"""Kernel releases that the series has hooks for: linux/hooks/RELEASE/source.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.files import LINUX
from firsttouch.tables import read, read_toml


@dataclass(frozen=True)
class Release:
    """A kernel release: Debian's source `package`, and the `suites` that may have it.

    `configuration` names the package of the configurations that Debian builds
    with, `binary` that of the image that it distributes for the cloud;
    `{version}` in it stands for the version of the source, `{cloud}` for an
    architecture's name of such kernels.

    `objects` is the number of object files in a lab build, for its progress bar.
    """

    name: str
    package: str
    configuration: str
    binary: str
    suites: tuple[str, ...]
    objects: int

    @property
    def hooks(self) -> Path:
        return LINUX / "hooks" / self.name


def release_names() -> list[str]:
    """Return the names of the releases that have hooks, oldest first."""
    # A folder with any other name, such as a work in progress, is not a release.
    files = (LINUX / "hooks").glob("*/source.toml")
    names = [name for file in files if re.fullmatch(r"\d+(\.\d+)+", name := file.parent.name)]
    return sorted(names, key=version_of)


def version_of(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def load_release(name: str) -> Release:
    releases = release_names()
    if name not in releases:
        known = ", ".join(releases)
        raise UserError(f"unknown release {name!r}: use one of {known}, or a tree by --source.")
    return read(read_toml(LINUX / "hooks" / name / "source.toml"), Release, name=name)
