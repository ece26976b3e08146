# SPDX-License-Identifier: GPL-2.0
"""The flame graph of a profile: what the kernel executed, and how two arms differ in it.

For two arms a box is as wide as the larger of both, so that a call that only
one of them makes shows too.
"""

from __future__ import annotations

from collections.abc import Mapping

from firsttouch.analysis.cases import Case
from firsttouch.analysis.profile import INSTRUCTIONS, USER, Profile, basis_of, profiles_of
from firsttouch.output.html.figure import Picture
from firsttouch.output.html.flame import Box, Look, draw_flames
from firsttouch.output.html.svg import Drawing
from firsttouch.output.profile import case_title, frame_label, signed, unit_label

_WIDTH, _HEAD = 1160.0, 44.0
# Changes of a function itself from which a colour is stronger, in parts of the largest.
_STRENGTHS = (0.02, 0.2, 0.6)


def flame_graph(case: Case) -> Picture | None:
    """Return the flame graph of a case, of its last arm against its first; None without profiles.

    It shows the kernel's instructions, per unit of the case's basis.
    """
    profiles = profiles_of(case)
    if not profiles:
        return None
    basis = basis_of(case, profiles)
    first, last = next(iter(profiles)), list(profiles)[-1]
    # By function, and below one box for all of the kernel: user code executes nothing here.
    root, functions = Box("kernel"), Box("functions")
    for arm, place in ((first, 0), (last, 1)):
        _add(root, functions, profiles[arm], basis.divisors[arm], place)
    root.sum_up()
    unit = f"kernel {unit_label(basis)}"
    arms = (first, last) if last != first else (first,)
    title = f"{unit.capitalize()} by call: {case_title(case)}, {' to '.join(arms)}"
    description = _description(root, functions.called, arms, unit)
    return Picture("flame", title, description, _draw(root, arms, unit))


def _add(root: Box, functions: Box, profile: Profile, divisor: float, place: int) -> None:
    """Add what the functions of an arm executed themselves."""
    for stack, counts in profile.stacks.items():
        box = root
        for frame in stack:
            box = box.call(frame_label(frame))
        if stack[-1].function != USER:
            for executed in (box, functions.call(stack[-1].function)):
                counted = list(executed.itself)
                counted[place] += counts.get(INSTRUCTIONS, 0) / divisor
                executed.itself = counted[0], counted[1]


def _change(box: Box) -> float:
    """Return the change of what a function executed itself."""
    return box.itself[1] - box.itself[0]


def _description(root: Box, functions: Mapping[str, Box], arms: tuple[str, ...], unit: str) -> str:
    values = {
        name: _change(box) if len(arms) > 1 else box.itself[0] for name, box in functions.items()
    }
    largest = sorted(values.items(), key=lambda item: (-abs(item[1]), item[0]))[:8]
    if len(arms) == 1:
        items = ", ".join(f"{name} {value:,.2f}" for name, value in largest)
        return f"{root.total[0]:,.2f} {unit} on {arms[0]}. Most by functions themselves: {items}."
    items = ", ".join(f"{name} {signed(value)}" for name, value in largest if signed(value) != "0")
    return (
        f"{root.total[0]:,.2f} {unit} on {arms[0]}, {root.total[1]:,.2f} on {arms[1]}. "
        f"Largest changes of functions themselves: {items or 'none'}."
    )


def _draw(root: Box, arms: tuple[str, ...], unit: str) -> Drawing:
    largest = _largest(root)
    drawing = draw_flames(
        root,
        _WIDTH,
        _HEAD,
        lambda box: Look(_kind(_change(box), largest), _label(box, arms), _tip(box, arms)),
    )
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
    return drawing


def _largest(box: Box) -> float:
    return max(abs(_change(box)), *map(_largest, box.called.values()), 0.0)


def _kind(change: float, largest: float) -> str:
    strength = sum(abs(change) >= part * largest > 0 for part in _STRENGTHS)
    if not strength:
        return "flame"
    return f"flame {'more' if change > 0 else 'less'} m{strength}"


def _label(box: Box, arms: tuple[str, ...]) -> str:
    change = box.total[1] - box.total[0]
    if len(arms) == 1 or signed(change) == "0":
        return f"{box.name} {box.total[0]:,.0f}"
    return f"{box.name} {signed(change)}"


def _tip(box: Box, arms: tuple[str, ...]) -> str:
    if len(arms) == 1:
        return f"{box.name}: {box.total[0]:,.2f}, itself {box.itself[0]:,.2f}"
    both = {"with its calls": box.total, "itself": box.itself}
    items = "; ".join(
        f"{words} {before:,.2f} on {arms[0]}, {after:,.2f} on {arms[1]}, {signed(after - before)}"
        for words, (before, after) in both.items()
    )
    return f"{box.name}: {items}"
