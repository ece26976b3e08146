# SPDX-License-Identifier: GPL-2.0
"""Arms without a file: stock with patches, configuration or boot words that a user tries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from firsttouch.catalog.arms import BASE, Arm, Kernel, Mark, Shape, arm_names
from firsttouch.errors import UserError

# The name of an arm that was given none.
UNNAMED = "tried"
# Tried arms come after those with files.
_ORDER = 1000
_MARKS = (
    Mark("diamond", "#b44a00", "#f5a04c", True),
    Mark("square", "#00705a", "#4fc3a1", True),
    Mark("up", "#8a2f7a", "#dd92cd", True),
    Mark("down", "#8a5a00", "#d9b44a", True),
    Mark("cross", "#3d5c1f", "#a9d17c", True),
)
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_OPTION = re.compile(r"(?:CONFIG_\w+=.+|# CONFIG_\w+ is not set)")


@dataclass
class Wanted:
    """An arm as the command line describes it, option by option; its files are plain ones."""

    name: str
    patches: list[Path] = field(default_factory=list)
    fragments: list[Path] = field(default_factory=list)
    boot: list[str] = field(default_factory=list)


def tried_arms(wanted: Sequence[Wanted]) -> tuple[Arm, ...]:
    """Return the arms that the command line describes, in its order.

    Raises UserError for a name that is taken, for an arm that changes nothing,
    and for files that are no fragments of a configuration.
    """
    arms: dict[str, Arm] = {}
    for place, arm in enumerate(wanted):
        if not _NAME.fullmatch(arm.name):
            raise UserError(
                f"--arm {arm.name}: a name is of letters, digits, '_', '.', '+' and '-', and "
                "begins with a letter or digit."
            )
        if arm.name in (*arms, *arm_names()):
            whose = "two arms have" if arm.name in arms else "an arm of the laboratory has"
            raise UserError(f"--arm {arm.name}: {whose} this name; choose another name.")
        boot = tuple(word for words in arm.boot for word in words.split())
        kernel = Kernel(
            "stock",
            tuple(arm.patches),
            tuple(map(_fragment, arm.fragments)),
        )
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
    kernel: Kernel = Kernel("stock"),  # noqa: B008
    boot: tuple[str, ...] = (),
) -> Arm:
    """Return the arm at `place` among those that are tried.

    One that comes from stored results has only its name and its meaning.
    """
    turn, number = divmod(place, len(_MARKS))
    mark, shapes = _MARKS[number], get_args(Shape)
    shape = shapes[(shapes.index(mark.shape) + turn) % len(shapes)]
    return Arm(name, kernel, boot, meaning, _ORDER + place, replace(mark, shape=shape), tried=True)


def _fragment(file: Path) -> Path:
    """Return `file` if it is a fragment of a kernel's configuration."""
    lines = [line.strip() for line in _read(file).splitlines()]
    wrong = [line for line in lines if line and not line.startswith("#")
             and not _OPTION.fullmatch(line)]  # fmt: skip
    if wrong or not any(map(_OPTION.fullmatch, lines)):
        said = f"has the line {wrong[0]!r}" if wrong else "sets no option"
        raise UserError(f"{file} {said}: write lines such as CONFIG_X=y and # CONFIG_X is not set.")
    return file


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): check its path.") from None
