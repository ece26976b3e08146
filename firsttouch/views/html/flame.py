# SPDX-License-Identifier: GPL-2.0
"""Flame graphs: functions as boxes, each as wide as its own amount and that of all that it calls.

That of a profile shows what the kernel executed, and how two arms differ in it. A box is as
wide as the larger of both, so that a call that only one of them makes shows too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from firsttouch.analysis.changes import units_of
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import INSTRUCTIONS, USER, profiles_of
from firsttouch.views.html.svg import CHARACTER, Drawing, Picture, shorten
from firsttouch.views.profile import UNITS, case_title, frame_label, signed

_ROW = 18.0
# Boxes that are narrower, in units, are not drawn.
_NARROWEST = 0.4
# Of a profile: its width, and the room above it for the legend.
_WIDTH, _HEAD = 1160.0, 44.0
# Smaller changes of a function itself, in parts of the largest, have no colour.
_LEAST = 0.02


@dataclass
class Box:
    """A function called in one way: what it took itself and with all that it calls.

    Both are before and after a change. `room` is its width in the unit of what is counted:
    the larger of both at each place.
    """

    name: str
    itself: Sequence[float] = (0.0, 0.0)
    called: dict[str, Box] = field(default_factory=dict)
    total: tuple[float, float] = (0.0, 0.0)
    room: float = 0.0

    @property
    def change(self) -> float:
        return self.itself[1] - self.itself[0]

    def sum_up(self) -> None:
        before, after = self.itself
        self.room = max(self.itself)
        for box in self.called.values():
            box.sum_up()
            before, after = before + box.total[0], after + box.total[1]
            self.room += box.room
        self.total = before, after


class Look(NamedTuple):
    """How a box looks: its class in the style sheet, what is written in it, and its tip."""

    kind: str
    label: str
    tip: str


def tree_of(name: str, stacks: Mapping[tuple[str, ...], Sequence[float]]) -> Box:
    """Return a box that calls all stacks: functions, the outermost first, by what they took."""
    root = Box(name)
    for stack, amounts in stacks.items():
        box = root
        for function in stack:
            box = box.called.setdefault(function, Box(function))
        box.itself = amounts
    root.sum_up()
    return root


def draw_flames(root: Box, width: float, head: float, look: Callable[[Box], Look]) -> Drawing:
    """Return the drawing of a tree, callers above what they call, below `head` units of room."""
    drawing = Drawing(width, head)
    _draw(drawing, root, (0.0, head), width / (root.room or 1.0), look)
    return drawing


def _draw(
    drawing: Drawing, box: Box, at: tuple[float, float], scale: float, look: Callable[[Box], Look]
) -> None:
    x, y = at
    drawing.height = max(drawing.height, y + _ROW)
    width = box.room * scale
    kind, label, tip = look(box)
    drawing.rect(x, y, width, _ROW - 1, kind, tip)
    if width > 4 * CHARACTER:
        drawing.text(x + 3, y + 13, shorten(label, width - CHARACTER), "t flame-t")
    x += max(box.itself) * scale
    for _, called in sorted(box.called.items()):
        if called.room * scale >= _NARROWEST:
            _draw(drawing, called, (x, y + _ROW), scale, look)
        x += called.room * scale


def profile_flames(case: Case, name: str = "flame") -> Picture | None:
    """Return a case's last arm against its first, in kernel instructions per fault or operation.

    None without profiles.
    """
    profiles = profiles_of(case)
    if not profiles:
        return None
    ends = next(iter(profiles)), list(profiles)[-1]
    of, units = units_of(case, ends[0])
    # User code executes nothing here.
    stacks: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, arm in enumerate(ends):
        for stack, counts in profiles[arm].stacks.items():
            if stack[-1].function != USER:
                executed = counts.get(INSTRUCTIONS, 0) / units
                stacks[tuple(map(frame_label, stack))][place] += executed
    root = tree_of("kernel", stacks)
    unit = f"kernel instructions {UNITS[of]}"
    arms = tuple(dict.fromkeys(ends))
    title = f"{unit.capitalize()} by call: {case_title(case)}, {' to '.join(arms)}"
    largest = max(map(abs, _changes(root)))
    drawing = draw_flames(root, _WIDTH, _HEAD, lambda box: _look(box, arms, largest))
    _draw_legend(drawing, arms, unit)
    totals = zip(root.total, arms, strict=False)
    described = ", ".join(f"{total:,.2f} {unit} on {arm}" for total, arm in totals)
    return Picture(name, title, f"{described}.", drawing)


def _changes(box: Box) -> list[float]:
    return [box.change, *(change for called in box.called.values() for change in _changes(called))]


def _draw_legend(drawing: Drawing, arms: Sequence[str], unit: str) -> None:
    if len(arms) == 1:
        drawing.text(0, 14, f"Width: {unit} on {arms[0]}, with all that it calls.", "t dim")
        return
    drawing.text(0, 14, f"Width: the larger of {arms[0]} and {arms[1]}, {unit}.", "t dim")
    for x, kind, words in (
        (0, "flame more", f"{arms[1]} executes more in the function itself"),
        (360, "flame less", "less"),
        (430, "flame", "the same; numbers are with all that it calls"),
    ):
        drawing.rect(x, 22, 12, 12, kind)
        drawing.text(x + 17, 32, words, "t dim")


def _look(box: Box, arms: Sequence[str], largest: float) -> Look:
    """Return how a function of a profile looks, where `largest` is the largest change of one."""
    if len(arms) == 1:
        tip = f"{box.name}: {box.total[0]:,.2f}, itself {box.itself[0]:,.2f}"
        return Look("flame", f"{box.name} {box.total[0]:,.0f}", tip)
    coloured = abs(box.change) >= _LEAST * largest > 0
    kind = f"flame {'more' if box.change > 0 else 'less'}" if coloured else "flame"
    change = signed(box.total[1] - box.total[0])
    items = "; ".join(
        f"{words} {before:,.2f} on {arms[0]}, {after:,.2f} on {arms[1]}, {signed(after - before)}"
        for words, (before, after) in (("with its calls", box.total), ("itself", box.itself))
    )
    label = f"{box.name} {change if change != '0' else format(box.total[0], ',.0f')}"
    return Look(kind, label, f"{box.name}: {items}")
