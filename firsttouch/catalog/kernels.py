# SPDX-License-Identifier: GPL-2.0
"""What kernels are built from, and for: releases and architectures.

A release is linux/hooks/RELEASE/source.toml, with hooks next to it unless it is only measured
as stock; an architecture of kernels and guests is architectures/NAME.toml. Other modules pass its
name, and ask here for what differs.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.errors import UserError
from firsttouch.files import ARCHITECTURES, LINUX
from firsttouch.tables import read, read_named, read_toml

# What the laboratory counts on; the names of what it built leave it out.
DEFAULT_ARCHITECTURE = "arm64"
Port = Literal["mmio", "pci"]


@dataclass(frozen=True)
class Architecture:
    """What kernels and guests of an architecture need; architectures/arm64.toml has the keys."""

    name: str
    machine: str
    prefix: str
    debian: str
    cloud: str
    arch: str
    target: str
    image: str
    features: tuple[str, ...]
    boot_words_left_out: tuple[str, ...]
    kernels: tuple[str, ...]
    qemu: str
    board: str
    hardware_board: str
    console: str
    port: Port
    device_tree: bool
    left_out: tuple[str, ...]

    @property
    def suffix(self) -> str:
        """What follows a name to tell it from that of the default architecture."""
        return "" if self.name == DEFAULT_ARCHITECTURE else f"-{self.name}"

    def package(self, name: str) -> str:
        return f"{name}:{self.debian}" if self.suffix else name

    def fragments(self, name: str) -> list[Path]:
        """Return the fragment `name` of linux/configs/, and what is laid over it here, if any."""
        configs = LINUX / "configs"
        more = configs / f"{name}{self.suffix}"
        return [configs / name, *([more] if self.suffix and more.exists() else [])]


@functools.cache
def load_architecture(name: str = DEFAULT_ARCHITECTURE) -> Architecture:
    return read(read_named("architecture", name, ARCHITECTURES), Architecture, name=name)


@dataclass(frozen=True)
class Release:
    """A kernel release: Debian's source `package`, and the `suites` that may have it.

    `configuration` names the package of the configurations that Debian builds with, `binary` that
    of its image for the cloud; `{version}` in it stands for the version of the source, `{cloud}`
    for an architecture's name of such kernels. `objects` is the number of object files in a lab
    build, for its progress bar.
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


def release_names(*, stock: bool = False) -> list[str]:
    """Return the names of the releases that have hooks, or of all that `stock` is built of.

    Oldest first. A folder with any other name, such as a work in progress, is not a release.
    """
    wanted = "source.toml" if stock else "*.patch"
    names = {file.parent.name for file in (LINUX / "hooks").glob(f"*/{wanted}")}
    return sorted(filter(re.compile(r"\d+(\.\d+)+").fullmatch, names), key=version_of)


def version_of(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def load_release(name: str) -> Release:
    releases = release_names(stock=True)
    if name not in releases:
        known = ", ".join(releases)
        raise UserError(f"unknown release {name!r}: use one of {known}, or a tree by --source.")
    return read(read_toml(LINUX / "hooks" / name / "source.toml"), Release, name=name)
