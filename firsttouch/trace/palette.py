# SPDX-License-Identifier: GPL-2.0
"""How kinds of faults look in all pictures of a trace: by colour, and by pattern on paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from firsttouch.trace.kinds import (
    AFTER_FORK,
    AGAIN,
    FILE,
    FIRST_WRITE,
    IN_KERNEL,
    NAMES,
    NO_MEMORY,
    PRIVATE,
    SECOND,
    SHARED_MEMORY,
    STACK,
    UNKNOWN_KIND,
    VDSO,
    ZERO_PAGE,
)
from firsttouch.views.html.svg import CHARACTER, Drawing

_ROW = 18.0
# A pattern's square has sides of so many units.
_SIDE = 6


class Look(NamedTuple):
    """How kinds look that pictures do not tell apart; `lines` is a path in the pattern's square."""

    words: str
    kinds: tuple[int, ...]
    light: str
    dark: str
    lines: str


LOOKS = (
    Look("first write", (FIRST_WRITE,), "#0b5cad", "#6cb2f5", ""),
    Look("zero page", (ZERO_PAGE,), "#00838f", "#4dd0e1", "M0 3H6"),
    Look("read, then written", (SECOND,), "#b44a00", "#f5a04c", "M0 3H6M3 0V6"),
    Look("again", (AGAIN,), "#8e2f8f", "#e08ee0", "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
    Look("after fork", (AFTER_FORK,), "#1a6b34", "#6fcf8b", "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
    Look("files, shared memory", (FILE, PRIVATE, SHARED_MEMORY), "#6b6f00", "#cdd26a", "M2 3H4"),
    Look("in the kernel", (IN_KERNEL,), "#3d444d", "#c9d1d9", "M3 0V6"),
    Look("other", (STACK, VDSO, NO_MEMORY, UNKNOWN_KIND), "#7d858e", "#868e98", "M1 1H2M4 4H5"),
)
LIGHT = {f"kind-{number}": look.light for number, look in enumerate(LOOKS)}
DARK = {f"kind-{number}": look.dark for number, look in enumerate(LOOKS)}
# Where each kind is in LOOKS.
PLACES = tuple(
    next(place for place, look in enumerate(LOOKS) if kind in look.kinds)
    for kind in range(len(NAMES))
)


def style(place: int) -> str:
    """Return the class of a place in LOOKS."""
    return f"kind-{place}"


def patterns() -> Markup:
    """Return what the classes refer to: a part of the page, once, that takes no room."""
    parts = "".join(
        f'<pattern id="kind-{number}" width="{_SIDE}" height="{_SIDE}" '
        f'patternUnits="userSpaceOnUse"><rect width="{_SIDE}" height="{_SIDE}" '
        f'style="fill: var(--kind-{number})"/><path d="{look.lines or "M0 0"}"/></pattern>'
        for number, look in enumerate(LOOKS)
    )
    rules = "".join(
        f".{style(number)} {{ fill: url(#kind-{number}); }}" for number in range(len(LOOKS))
    )
    return Markup(
        '<svg class="patterns" width="0" height="0" aria-hidden="true">'
        f'<style>{rules}[class^="kind-"] + .flame-t {{ stroke-width: 3px; }}</style>'
        f"<defs>{parts}</defs></svg>"
    )


def legend_height(places: Sequence[int], width: float) -> float:
    """Return the room that a legend takes."""
    return 8 + _ROW * (1 + max((row for _, _, row in _legend(places, width)), default=0))


def draw_legend(drawing: Drawing, places: Sequence[int]) -> None:
    """Draw the legend at the top of a picture."""
    for place, x, row in _legend(places, drawing.width):
        drawing.rect(x, 4 + _ROW * row, 12, 12, style(place))
        drawing.text(x + 17, 14 + _ROW * row, LOOKS[place].words)


def _legend(places: Sequence[int], width: float) -> Iterator[tuple[int, float, int]]:
    """Yield where each name of a legend goes: how far to the right, and in which row."""
    x, row = 0.0, 0
    for place in places:
        wide = 32 + CHARACTER * len(LOOKS[place].words)
        if x and x + wide > width:
            x, row = 0.0, row + 1
        yield place, x, row
        x += wide
