# SPDX-License-Identifier: GPL-2.0
"""Arms: a kernel, the boot parameters that choose among its features, and its mark in figures.

Each is one file, arms/NAME.toml. A setting, settings/NAME.toml, is what surrounds a kernel that is
tried, the same for stock and for the arm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE
from firsttouch.errors import UserError
from firsttouch.files import ARMS, REPOSITORY, SETTINGS
from firsttouch.quantities import format_list
from firsttouch.tables import names_in, read, read_named

# The arm that all others are compared with.
BASE = "stock"
# The same kernel, booted a moment later: what it changes against `BASE` is chance.
CONTROL = "again"
Shape = Literal[
    "circle", "square", "diamond", "up", "down", "right", "left", "cross", "plus", "star",
    "hourglass", "bow", "hexagon", "house",
]  # fmt: skip
Kind = Literal["stock", "changed", "tiny-stock", "tiny-changed", "debian"]


@dataclass(frozen=True)
class Mark:
    """How an arm is drawn; `light` and `dark` are its colours on such a page, as ``#rrggbb``.

    Arms differ in shape or fill, too, for the colour-blind.
    """

    shape: Shape
    light: str
    dark: str
    filled: bool = True


@dataclass(frozen=True, order=True)
class Kernel:
    """The kernel that an arm boots.

    `kind`: ``stock`` is built from the release's source, ``changed`` with linux/ laid over it, or
    of that only one `series`, in the configuration of Debian's cloud kernel; ``tiny-`` ones from
    tinyconfig. ``debian`` is the image that Debian distributes. `patches` and `fragments` of the
    configuration are the user's.
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
    """A kernel and its boot parameters; one that `firsttouch try` makes has no file."""

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


def load_arm(name: str) -> Arm:
    table = read_named("arm", name, ARMS)
    wanted = table.choice("kernel", get_args(Kind))
    (kind,) = (kind for kind in get_args(Kind) if kind == wanted)
    # Which series there are depends on the architecture: kernel_of() looks.
    kernel = Kernel(kind, series=table.take("series", str, ""))
    return read(table, Arm, name=name, kernel=kernel, tried=False)


# Tried arms come after those with files.
_ORDER = 1000
_COLORS = (
    ("#b44a00", "#f5a04c"), ("#00705a", "#4fc3a1"), ("#8a2f7a", "#dd92cd"),
    ("#8a5a00", "#d9b44a"), ("#3d5c1f", "#a9d17c"),
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")


@dataclass
class Wanted:
    """An arm as the command line describes it, option by option; its files are plain ones."""

    name: str
    patches: list[Path] = field(default_factory=list)
    fragments: list[Path] = field(default_factory=list)
    boot: list[str] = field(default_factory=list)


def tried_arms(wanted: Sequence[Wanted]) -> tuple[Arm, ...]:
    arms: dict[str, Arm] = {}
    for place, arm in enumerate(wanted):
        if not _NAME.fullmatch(arm.name):
            raise UserError(f"--arm {arm.name}: write a name of letters, digits and '_.+-'.")
        if arm.name in (*arms, *names_in(ARMS)):
            raise UserError(f"--arm {arm.name}: another arm has this name; choose another name.")
        boot = tuple(word for words in arm.boot for word in words.split())
        kernel = Kernel("stock", tuple(arm.patches), tuple(arm.fragments))
        if not (kernel.label or boot):
            raise UserError(
                f"--arm {arm.name} is {BASE}: give it a patch, --config FRAGMENT or --boot WORDS."
            )
        booted = f"booted with {' '.join(boot)}" if boot else ""
        meaning = ", ".join(filter(None, [kernel.label.removeprefix("with "), booted]))
        arms[arm.name] = tried_arm(arm.name, place, meaning, kernel, boot)
    return tuple(arms.values())


def tried_arm(
    name: str,
    place: int,
    meaning: str,
    kernel: Kernel = Kernel("stock"),
    boot: tuple[str, ...] = (),
) -> Arm:
    """Return the arm at `place` among those without a file.

    One that comes from stored results has only its name and, if it was tried, its meaning.
    """
    # Circles are stock's.
    shapes = get_args(Shape)[1:]
    mark = Mark(shapes[place % len(shapes)], *_COLORS[place % len(_COLORS)])
    return Arm(name, kernel, boot, meaning, _ORDER + place, mark, tried=bool(meaning))


@dataclass(frozen=True)
class Setting:
    """What differs from how a cell runs otherwise; empty fields change nothing.

    `boot` are words for the kernel's command line, `board` properties of QEMU's board, `machine`
    replaces the one that was asked for, `cpus` is for experiments that do not ask for a number.
    `fragment` is laid over the configuration of the kernels. `quick` settings belong to the quick
    matrix. `releases` are those whose kernels have it; empty for all.
    """

    name: str
    title: str
    order: int
    quick: bool = False
    boot: tuple[str, ...] = ()
    board: tuple[str, ...] = ()
    machine: str = ""
    cpus: int = 0
    fragment: str = ""
    releases: tuple[str, ...] = ()

    def is_of(self, release: str) -> bool:
        return not self.releases or release in self.releases

    def applied(self, arm: Arm) -> Arm:
        kernel = arm.kernel
        if self.fragment:
            kernel = replace(kernel, fragments=(*kernel.fragments, REPOSITORY / self.fragment))
        return replace(arm, kernel=kernel, boot=(*arm.boot, *self.boot))


# How cells run otherwise.
BARE = Setting("", "as it is", 0)


def matrix_settings(release: str, *, quick: bool) -> tuple[Setting, ...]:
    """Return no setting, and each that a release has, or each quick one."""
    settings = sorted(map(load_setting, names_in(SETTINGS)), key=lambda setting: setting.order)
    return (BARE, *(s for s in settings if s.is_of(release) and (s.quick or not quick)))


def load_setting(name: str) -> Setting:
    return read(read_named("setting", name, SETTINGS), Setting, name=name) if name else BARE
