# SPDX-License-Identifier: GPL-2.0
"""Architectures of kernels and guests, each one file: architectures/NAME.toml.

Other modules pass the name, and ask here for what differs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.files import ARCHITECTURES, LINUX
from firsttouch.tables import names_in, read, read_named

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
    folders: tuple[str, ...]
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


def architecture_names() -> list[str]:
    return names_in(ARCHITECTURES)


@functools.cache
def load_architecture(name: str = DEFAULT_ARCHITECTURE) -> Architecture:
    return read(read_named("architecture", name, ARCHITECTURES), Architecture, name=name)
