# SPDX-License-Identifier: GPL-2.0
"""Flame graphs: calls as boxes, each as wide as its own amount and that of all that it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from firsttouch.output.html.svg import CHARACTER, Drawing, shorten

_ROW = 18.0
# Boxes that are narrower, in units, are not drawn.
_NARROWEST = 0.4


@dataclass
class Box:
    """A function called in one way: what it took itself and with all that it calls.

    Both are before and after a change. `room` is its width, the larger of both at each
    place. `sum_up` sets it and `total`.
    """

    name: str
    itself: tuple[float, float] = (0.0, 0.0)
    called: dict[str, Box] = field(default_factory=dict)
    total: tuple[float, float] = (0.0, 0.0)
    room: float = 0.0

    def call(self, name: str) -> Box:
        """Return the box of a function that this one calls."""
        return self.called.setdefault(name, Box(name))

    def sum_up(self) -> None:
        """Set the totals and the widths, in the unit of what is counted."""
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


def draw_flames(root: Box, width: float, head: float, look: Callable[[Box], Look]) -> Drawing:
    """Return the drawing of a tree that is summed up: callers above what they call.

    Above all of it are `head` units of room.
    """
    scale = width / (root.room or 1.0)
    drawing = Drawing(width, head + _rows(root, scale) * _ROW)
    _draw(drawing, root, (0.0, head), scale, look)
    return drawing


def _rows(box: Box, scale: float) -> int:
    shown = [_rows(called, scale) for called in box.called.values() if _is_shown(called, scale)]
    return 1 + max(shown, default=0)


def _is_shown(box: Box, scale: float) -> bool:
    return box.room * scale >= _NARROWEST


def _draw(
    drawing: Drawing, box: Box, at: tuple[float, float], scale: float, look: Callable[[Box], Look]
) -> None:
    x, y = at
    width = box.room * scale
    kind, label, tip = look(box)
    drawing.rect(x, y, width, _ROW - 1, kind, tip)
    if width > 4 * CHARACTER:
        drawing.text(x + 3, y + 13, shorten(label, width - CHARACTER), "t flame-t")
    x += max(box.itself) * scale
    for _, called in sorted(box.called.items()):
        if _is_shown(called, scale):
            _draw(drawing, called, (x, y + _ROW), scale, look)
        x += called.room * scale
