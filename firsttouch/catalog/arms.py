# SPDX-License-Identifier: GPL-2.0
"""Arms: a kernel, the boot parameters that choose among its features, and its mark in figures.

Each is one file, arms/NAME.toml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE
from firsttouch.places import ARMS
from firsttouch.quantities import format_list
from firsttouch.tables import names_in, read, read_named

# The arm that all others are compared with.
BASE = "stock"
# The same kernel, booted a moment later: what it changes against `BASE` is chance.
CONTROL = "again"
# The kernel that Debian distributes: no other has to be built to measure it.
SHIPPED = "debian"
Shape = Literal[
    "circle", "square", "diamond", "up", "down", "right", "left", "cross", "plus", "star",
    "hourglass", "bow",
]  # fmt: skip
Kind = Literal["stock", "changed", "tiny-stock", "tiny-changed", "debian"]
_COLOR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class Mark:
    """How an arm is drawn; `light` and `dark` are its colours on such a page, as ``#rrggbb``.

    Arms differ in shape or fill as well as in colour, so that colour-blind
    readers can tell them apart.
    """

    shape: Shape
    light: str
    dark: str
    filled: bool = True


@dataclass(frozen=True, order=True)
class Kernel:
    """The kernel that an arm boots.

    `kind`: ``stock`` is built from the release's source, ``changed`` from
    the same source with linux/ laid over it, both configured from Debian's
    file for the cloud. ``tiny-`` stands before those that are configured from
    tinyconfig. ``debian`` is the image that Debian distributes; this project
    does not build it. With `series` only that one of linux/ is laid over it.
    `patches` are applied to the source, `fragments` laid over the configuration;
    both are the user's.
    """

    kind: Kind
    patches: tuple[Path, ...] = ()
    fragments: tuple[Path, ...] = ()
    architecture: str = DEFAULT_ARCHITECTURE
    series: str = ""

    @property
    def label(self) -> str:
        """In messages, what tells it from others of its kind; empty if nothing does."""
        names = [file.name for file in (*self.patches, *self.fragments)]
        alone = [f"({self.series} alone)"] if self.series else []
        return " ".join([*alone, *([f"with {format_list(names)}"] if names else [])])

    @property
    def unchanged(self) -> bool:
        """Whether it is a kernel as distributed, which must take the double fault."""
        return not self.kind.endswith("changed") and not self.label


@dataclass(frozen=True)
class Arm:
    """A kernel and its boot parameters.

    An arm that `firsttouch try` makes has no file: it is `tried`.
    """

    name: str
    kernel: Kernel
    boot: tuple[str, ...]
    meaning: str
    order: int
    mark: Mark
    tried: bool = False

    def options(self) -> list[str]:
        """Return the options of a command that select the arm, or that make it."""
        words = ["--arm", self.name, *map(str, self.kernel.patches)]
        for fragment in self.kernel.fragments:
            words += ["--config", str(fragment)]
        return [*words, "--boot", " ".join(self.boot)] if self.tried and self.boot else words


def arm_names() -> list[str]:
    """Return the names of all arms."""
    return names_in(ARMS)


def load_arm(name: str) -> Arm:
    """Return arm `name`; UserError if there is no such arm, or its file is wrong."""
    table = read_named("arm", name, ARMS)
    wanted = table.choice("kernel", get_args(Kind))
    (kind,) = (kind for kind in get_args(Kind) if kind == wanted)
    # Which series there are depends on the architecture: kernel_of() looks.
    series = table.take("series", str, "")
    if series and kind != "changed":
        raise table.error("series", f"is for a changed kernel, not for {kind}: leave it out.")
    arm = read(table, Arm, name=name, kernel=Kernel(kind, series=series), tried=False)
    for key, color in (("light", arm.mark.light), ("dark", arm.mark.dark)):
        if not _COLOR.fullmatch(color):
            raise table.error(
                f"mark.{key}", f"is {color!r}: write a colour as #rrggbb, in small letters."
            )
    return arm
