# SPDX-License-Identifier: GPL-2.0
"""Drawings as inline SVG, and their axes.

Shapes and text have classes, and the page's style colours them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape

from markupsafe import Markup

from firsttouch.catalog.arms import Shape

# Width of a character in a drawing, in units. It is larger than the average, so
# that no text overlaps its neighbour.
CHARACTER = 6.9
_LEGEND_LINE = 18.0
# Around a picture that stands alone, and for a line of text above and below it.
_MARGIN, _TEXT_LINE = 16.0, 24.0

_escape = partial(escape, quote=False)
# Corners around a mark's centre, in radii; a circle has none.
_CORNERS: Mapping[Shape, Sequence[tuple[float, float]]] = {
    "circle": (),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "up": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    "down": ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    "right": ((1.2, 0), (-0.8, 1.1), (-0.8, -1.1)),
    "left": ((-1.2, 0), (0.8, 1.1), (0.8, -1.1)),
    "plus": (
        (-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35), (1, 0.35), (0.35, 0.35), (0.35, 1),
        (-0.35, 1), (-0.35, 0.35), (-1, 0.35), (-1, -0.35), (-0.35, -0.35),
    ),
    "star": (
        (0, -1.2), (0.3, -0.3), (1.2, 0), (0.3, 0.3),
        (0, 1.2), (-0.3, 0.3), (-1.2, 0), (-0.3, -0.3),
    ),
    "hourglass": ((-0.9, -1), (0.9, -1), (0.2, 0), (0.9, 1), (-0.9, 1), (-0.2, 0)),
    "bow": ((-1, -0.9), (0, -0.2), (1, -0.9), (1, 0.9), (0, 0.2), (-1, 0.9)),
    "hexagon": ((-1.1, 0), (-0.55, -0.95), (0.55, -0.95), (1.1, 0), (0.55, 0.95), (-0.55, 0.95)),
    "house": ((-0.9, 0.9), (-0.9, -0.2), (0, -1.1), (0.9, -0.2), (0.9, 0.9)),
    "cross": ((-1, -1), (0, -0.3), (1, -1), (0.3, 0), (1, 1), (0, 0.3), (-1, 1), (-0.3, 0)),
}  # fmt: skip


def format_compact(value: float) -> str:
    """Return a value with the digits that matter in a figure: ``645.2 M``, ``513``, ``1.06``."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= factor:
            return f"{value / factor:,.4g} {letter}"
    if abs(value - round(value)) < 0.005:
        return f"{round(value):,}"
    return f"{value:,.{2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0}f}"


@dataclass(frozen=True)
class Symbol:
    """How the marks of one arm are drawn; `kind` is their class in the style sheet."""

    shape: Shape
    filled: bool
    kind: str


Symbols = Mapping[str, Symbol]


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def outline(shape: Shape, x: float, y: float, r: float) -> str:
    """Return the path of a mark with centre (`x`, `y`) and about radius `r`."""
    n = number
    if shape == "circle":
        half = f"a{n(r)} {n(r)} 0 1 0"
        return f"M{n(x - r)} {n(y)}{half} {n(2 * r)} 0{half} -{n(2 * r)} 0z"
    points = [f"{n(x + r * dx)} {n(y + r * dy)}" for dx, dy in _CORNERS[shape]]
    return f"M{'L'.join(points)}z"


def shorten(words: str, room: float) -> str:
    most = max(1, int(room / CHARACTER))
    return words if len(words) <= most else words[: most - 1] + "…"


@dataclass
class Drawing:
    """A picture in the making; `width` and `height` in units of about a pixel."""

    width: float
    height: float
    _parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(
            f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'
        )

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, tip: str = ""
    ) -> None:
        """Draw a rectangle from its upper left corner; `tip` as of `mark`."""
        title = f"<title>{_escape(tip)}</title>" if tip else ""
        self._parts.append(
            f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}">{title}</rect>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "t", anchor: str = "start") -> None:
        """Write `words` on the baseline `y`; `anchor` is start, middle or end."""
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(
            f'<text class="{kind}" x="{number(x)}" y="{number(y)}"{at}>{_escape(words)}</text>'
        )

    def mark(self, symbol: Symbol, x: float, y: float, tip: str = "") -> None:
        """Draw an arm's mark; `tip` is shown when the pointer is on it."""
        title = f"<title>{_escape(tip)}</title>" if tip else ""
        # A filled mark is smaller than a hollow one, so that both show at the same place.
        r = 3.4 if symbol.filled else 5.2
        self._parts.append(
            f'<path class="m {symbol.kind}" d="{outline(symbol.shape, x, y, r)}">{title}</path>'
        )

    def legend(self, left: float, y: float, symbols: Symbols) -> float:
        """Draw the legend from (`left`, `y`); return the height of its lines after the first."""
        x, first = left, y
        for arm, symbol in symbols.items():
            arm = shorten(arm, self.width - left - 16)
            if x > left and x + 22 + CHARACTER * len(arm) > self.width:
                x, y = left, y + _LEGEND_LINE
            self.mark(symbol, x + 7, y - 4)
            self.text(x + 16, y, arm)
            x += 16 + CHARACTER * len(arm) + 18
        return y - first

    @property
    def shapes(self) -> str:
        return "".join(self._parts)


@dataclass(frozen=True)
class Picture:
    """A drawing with its title, and with its description for those who cannot see it.

    `name` tells it from the others on a page, which has `heading`, or else the title, above it.
    """

    name: str
    title: str
    description: str
    drawing: Drawing
    heading: str = ""
    caption: str = ""

    def __html__(self) -> Markup:
        of = self.drawing
        return Markup(
            f'<svg role="img" viewBox="0 0 {number(of.width)} {number(of.height)}" '
            f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(self.title)}" '
            f'aria-describedby="{self.name}-d">'
            f'<desc id="{self.name}-d">{_escape(self.description)}</desc>{of.shapes}</svg>'
        )

    def document(self, foot: str, style: str) -> str:
        """Return the picture as a file, between its title and `foot`.

        It asks for nothing outside itself.
        """
        of = self.drawing
        frame = Drawing(of.width + 2 * _MARGIN, of.height + 2 * (_MARGIN + _TEXT_LINE))
        width, height = number(frame.width), number(frame.height)
        frame._parts.append(f'<rect class="paper" width="{width}" height="{height}"/>')
        frame.text(_MARGIN, _MARGIN + 12, shorten(self.title, of.width), "t strong")
        at = f"{number(_MARGIN)} {number(_MARGIN + _TEXT_LINE)}"
        frame._parts.append(f'<g transform="translate({at})">{of.shapes}</g>')
        frame.text(_MARGIN, frame.height - _MARGIN, shorten(foot, of.width), "t dim")
        description = f"{self.description} {self.caption}".rstrip() + f" {foot}"
        return (
            "<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">\n'
            f'<title id="title">{_escape(self.title)}</title>\n'
            f'<desc id="description">{_escape(description)}</desc>\n'
            f"<style>\n{_escape(style)}\n</style>\n" + "\n".join(frame._parts) + "\n</svg>\n"
        )


# Values that span more than this factor get a logarithmic axis.
_SPAN = 30.0
# Smaller values are at the start of it.
_LEAST = 0.01


@dataclass(frozen=True)
class Scale:
    """An axis from `low` at position `start` to `high` at `end`; what is below `low` is at it."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Return at most about `most` round values on the axis."""
        if self.logarithmic:
            powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            return [10.0**power for power in powers][:: math.ceil(len(powers) / most) or 1]
        step = round_up((self.high - self.low) / max(most, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(index * step, 10) for index in range(first, last + 1)]


def round_up(value: float) -> float:
    """Return `value` rounded up to 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(digit * power for digit in (1, 2, 5, 10) if value <= digit * power * (1 + 1e-9))


def scale_for(values: Sequence[float], start: float, end: float) -> Scale:
    """Return an axis for counts: linear from 0, or logarithmic if they span a large factor."""
    top = max(values)
    low = min((value for value in values if value >= _LEAST), default=top)
    if top <= low * _SPAN:
        return Scale(0.0, round_up(top), start, end)
    return Scale(low, top, start, end, True)


def tick_label(value: float) -> str:
    """Return a tick's value without trailing zeros: ``0.5``, ``1,000``, ``20 M``."""
    if abs(value) >= 1e6:
        return format_compact(value)
    return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.0f}"
