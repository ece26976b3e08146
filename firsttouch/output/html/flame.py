# SPDX-License-Identifier: GPL-2.0
"""Flame graphs: the calls of a profile, and how two arms differ in them.

A frame's width is what the function and all that it calls executed. For two
arms that is the larger of both at each place, so that a call that only one of
them makes shows too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firsttouch.analysis.cases import Case
from firsttouch.analysis.profile import (
    INSTRUCTIONS,
    USER,
    Frame,
    Profile,
    basis_of,
    profiles_of,
)
from firsttouch.output.html.figure import Picture
from firsttouch.output.html.svg import CHARACTER, Drawing, shorten
from firsttouch.output.profile import case_title, frame_label, signed, unit_label

_WIDTH, _ROW, _HEAD = 1160.0, 18.0, 44.0
# Frames that are narrower, in units, are not drawn.
_NARROWEST = 0.4
# Own changes from which a colour is stronger, in parts of the largest own change.
_STRENGTHS = (0.02, 0.2, 0.6)


@dataclass
class _Node:
    """A frame: what it executed itself, and with all that it calls, before and after."""

    frame: Frame
    own: tuple[float, float] = (0.0, 0.0)
    children: dict[Frame, _Node] = field(default_factory=dict)
    total: tuple[float, float] = (0.0, 0.0)
    room: float = 0.0

    def sum_up(self) -> None:
        """Set the totals and the width, in instructions."""
        before, after = self.own
        self.room = max(self.own)
        for child in self.children.values():
            child.sum_up()
            before, after = before + child.total[0], after + child.total[1]
            self.room += child.room
        self.total = before, after

    def rows(self, narrowest: float) -> int:
        """Return the number of rows whose frames are at least so wide, in instructions."""
        if self.room < narrowest:
            return 0
        return 1 + max((child.rows(narrowest) for child in self.children.values()), default=0)

    @property
    def change(self) -> float:
        """The change of what the function executed itself."""
        return self.own[1] - self.own[0]


def flame_graph(case: Case) -> Picture | None:
    """Return the flame graph of a case, of its last arm against its first; None without profiles.

    It shows the kernel's instructions, per unit of the case's basis.
    """
    profiles = profiles_of(case)
    if not profiles:
        return None
    basis = basis_of(case, profiles)
    first, last = next(iter(profiles)), list(profiles)[-1]
    root = _tree(profiles[first], profiles[last], basis.divisors[first], basis.divisors[last])
    unit = f"kernel {unit_label(basis)}"
    arms = (first, last) if last != first else (first,)
    title = f"{unit.capitalize()} by call: {case_title(case)}, {' to '.join(arms)}"
    return Picture("flame", title, _description(root, arms, unit), _draw(root, arms, unit))


def _tree(before: Profile, after: Profile, by: float, by_after: float) -> _Node:
    """Return the kernel's calls below one frame for all of it; user code executes nothing here."""
    root = _Node(Frame("kernel"))
    for profile, divisor, place in ((before, by, 0), (after, by_after, 1)):
        for stack, counts in profile.stacks.items():
            node = root
            for frame in stack:
                node = node.children.setdefault(frame, _Node(frame))
            if stack[-1].function != USER:
                own = list(node.own)
                own[place] += counts.get(INSTRUCTIONS, 0) / divisor
                node.own = own[0], own[1]
    root.sum_up()
    return root


def _all(node: _Node) -> list[_Node]:
    return [node, *(below for child in node.children.values() for below in _all(child))]


def _description(root: _Node, arms: tuple[str, ...], unit: str) -> str:
    by_function: dict[str, float] = {}
    for node in _all(root):
        value = node.change if len(arms) > 1 else node.own[0]
        by_function[node.frame.function] = by_function.get(node.frame.function, 0) + value
    largest = sorted(by_function.items(), key=lambda item: (-abs(item[1]), item[0]))[:8]
    if len(arms) == 1:
        told = ", ".join(f"{name} {value:,.2f}" for name, value in largest)
        return f"{root.total[0]:,.2f} {unit} on {arms[0]}. Most by functions themselves: {told}."
    told = ", ".join(f"{name} {signed(value)}" for name, value in largest if signed(value) != "0")
    return (
        f"{root.total[0]:,.2f} {unit} on {arms[0]}, {root.total[1]:,.2f} on {arms[1]}. "
        f"Largest changes of functions themselves: {told or 'none'}."
    )


def _draw(root: _Node, arms: tuple[str, ...], unit: str) -> Drawing:
    scale = _WIDTH / root.room if root.room else 1.0
    drawing = Drawing(_WIDTH, _HEAD + root.rows(_NARROWEST / scale) * _ROW)
    if len(arms) > 1:
        drawing.text(0, 14, f"Width: the larger of {arms[0]} and {arms[1]}, {unit}.", "t dim")
        drawing.rect(0, 22, 12, 12, "flame more m3")
        drawing.text(17, 32, f"{arms[1]} executes more in the function itself", "t dim")
        drawing.rect(360, 22, 12, 12, "flame less m3")
        drawing.text(377, 32, "less", "t dim")
        drawing.rect(430, 22, 12, 12, "flame")
        drawing.text(447, 32, "the same; numbers are with all that it calls", "t dim")
    else:
        drawing.text(0, 14, f"Width: {unit} on {arms[0]}, with all that it calls.", "t dim")
    largest = max(abs(node.change) for node in _all(root))
    _draw_node(drawing, root, (0.0, _HEAD), scale, arms, largest)
    return drawing


def _draw_node(
    drawing: Drawing,
    node: _Node,
    at: tuple[float, float],
    scale: float,
    arms: tuple[str, ...],
    largest: float,
) -> None:
    x, y = at
    width = node.room * scale
    if width < _NARROWEST:
        return
    drawing.rect(x, y, width, _ROW - 1, _kind(node.change, largest), _tip(node, arms))
    if width > 4 * CHARACTER:
        drawing.text(x + 3, y + 13, shorten(_label(node, arms), width - CHARACTER), "t flame-t")
    x += max(node.own) * scale
    for frame in sorted(node.children):
        child = node.children[frame]
        _draw_node(drawing, child, (x, y + _ROW), scale, arms, largest)
        x += child.room * scale


def _kind(change: float, largest: float) -> str:
    strength = sum(abs(change) >= part * largest > 0 for part in _STRENGTHS)
    if not strength:
        return "flame"
    return f"flame {'more' if change > 0 else 'less'} m{strength}"


def _label(node: _Node, arms: tuple[str, ...]) -> str:
    change = node.total[1] - node.total[0]
    if len(arms) == 1 or signed(change) == "0":
        return f"{frame_label(node.frame)} {node.total[0]:,.0f}"
    return f"{frame_label(node.frame)} {signed(change)}"


def _tip(node: _Node, arms: tuple[str, ...]) -> str:
    name = frame_label(node.frame)
    if len(arms) == 1:
        return f"{name}: {node.total[0]:,.2f}, itself {node.own[0]:,.2f}"
    both: Mapping[str, tuple[float, float]] = {"with its calls": node.total, "itself": node.own}
    told = "; ".join(
        f"{words} {before:,.2f} on {arms[0]}, {after:,.2f} on {arms[1]}, {signed(after - before)}"
        for words, (before, after) in both.items()
    )
    return f"{name}: {told}"
