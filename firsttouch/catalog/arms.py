# SPDX-License-Identifier: GPL-2.0
"""Arms: a kernel, the boot parameters that choose among its features, and its mark in figures.

Each is one file, arms/NAME.toml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsttouch.places import ARMS
from firsttouch.tables import Table, names_in, read_named

# The arm that all others are compared with.
BASE = "stock"
Shape = Literal["circle", "square", "diamond", "up", "down", "cross"]
_SHAPES: tuple[Shape, ...] = ("circle", "square", "diamond", "up", "down", "cross")
Kernel = Literal["stock", "changed", "tiny-stock", "tiny-changed", "debian"]
_KERNELS: tuple[Kernel, ...] = ("stock", "changed", "tiny-stock", "tiny-changed", "debian")
# Those without linux/, which must take the double fault.
UNCHANGED: tuple[Kernel, ...] = ("stock", "tiny-stock", "debian")
_COLOR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class Mark:
    """How an arm is drawn; `light` and `dark` are its colours on such a page, as ``#rrggbb``.

    Arms differ in shape or fill as well as in colour, so that colour-blind
    readers can tell them apart.
    """

    shape: Shape
    filled: bool
    light: str
    dark: str


@dataclass(frozen=True)
class Arm:
    """A kernel and its boot parameters.

    `kernel`: ``stock`` is built from the release's source, ``changed`` from
    the same source with linux/ laid over it, both configured from Debian's
    file for the cloud. ``tiny-`` stands before those that are configured from
    tinyconfig. ``debian`` is the image that Debian distributes; this project
    does not build it.
    """

    name: str
    kernel: Kernel
    boot: tuple[str, ...]
    meaning: str
    order: int
    mark: Mark


def arm_names(folder: Path = ARMS) -> list[str]:
    """Return the names of all arms."""
    return names_in(folder)


def load_arm(name: str, folder: Path = ARMS) -> Arm:
    """Return arm `name`; UserError if there is no such arm, or its file is wrong."""
    table = read_named("arm", name, folder)
    wanted = table.choice("kernel", _KERNELS)
    arm = Arm(
        name=name,
        kernel=next(kernel for kernel in _KERNELS if kernel == wanted),
        boot=table.strings("boot"),
        meaning=table.take("meaning", str),
        order=table.take("order", int),
        mark=_mark(table.table("mark")),
    )
    table.done()
    return arm


def _mark(table: Table) -> Mark:
    wanted = table.choice("shape", _SHAPES)
    mark = Mark(
        next(shape for shape in _SHAPES if shape == wanted),
        table.take("filled", bool, True),
        _color(table, "light"),
        _color(table, "dark"),
    )
    table.done()
    return mark


def _color(table: Table, key: str) -> str:
    value = table.take(key, str)
    if not _COLOR.fullmatch(value):
        raise table.error(key, f"is {value!r}: write a colour as #rrggbb, in small letters.")
    return value
