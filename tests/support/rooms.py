# SPDX-License-Identifier: GPL-2.0
"""docs/pictures/rooms.svg: the rooms of firsttouch/ in the order of their imports.

``python -m tests.support.rooms`` writes it. All that it shows is read from
the modules: who imports whom, and the first line of each room's docstring.
"""

from __future__ import annotations

import graphlib
import importlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

import grimp  # what import-linter reads imports with

from firsttouch.catalog.collection import collect
from firsttouch.files import write_atomically
from firsttouch.output.html.figure import WIDE
from firsttouch.output.html.style import picture_style
from firsttouch.output.html.svg import CHARACTER, Drawing
from firsttouch.places import REPOSITORY

PICTURE = REPOSITORY / "docs/pictures/rooms.svg"
_PACKAGE = "firsttouch"
_TITLE = "The rooms of firsttouch/, in the order of their imports"
_ROW, _HEAD, _BOX, _TALL, _LANE, _LINE = 46.0, 44.0, 78.0, 26.0, 20.0, 16.0


@dataclass(frozen=True)
class Rooms:
    """`imports` has the rooms that each room imports; `ground` the modules that are no room."""

    imports: Mapping[str, frozenset[str]]
    ground: tuple[str, ...]

    def ordered(self) -> list[str]:
        """Return the rooms, each after all that it imports; CycleError if there is no such order.

        Where the imports leave a choice, rooms are in the order of their names.
        """
        sorter = graphlib.TopologicalSorter(self.imports)
        sorter.prepare()
        rooms_in_order: list[str] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            rooms_in_order += ready
            sorter.done(*ready)
        return rooms_in_order


def read_rooms() -> Rooms:
    """Return the rooms, by the imports of all modules."""
    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    children = {name.rpartition(".")[2] for name in graph.find_children(_PACKAGE)}
    rooms = {name for name in children if graph.find_children(f"{_PACKAGE}.{name}")}
    imports: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        room = _part(module)
        if room in rooms:
            imported = {_part(name) for name in graph.find_modules_directly_imported_by(module)}
            imports[room] |= imported & rooms - {room}
    return Rooms(
        {room: frozenset(imported) for room, imported in imports.items()},
        tuple(sorted(name for name in children - rooms if not name.startswith("_"))),
    )


def _part(module: str) -> str:
    """Return the room, or the module of the ground, that `module` belongs to."""
    return [*module.split("."), ""][1]


def draw_rooms(rooms: Rooms) -> str:
    """Return the picture of the rooms, as an SVG file."""
    ordered = rooms.ordered()
    ground = _wrapped(f"Any room may import {', '.join(rooms.ground)}.", WIDE)
    below = _HEAD + _ROW * len(ordered)
    drawing = Drawing(WIDE, below + _LINE * len(ground))
    _draw_legend(drawing)
    heights = {room: _HEAD + _ROW * place + _TALL / 2 for place, room in enumerate(ordered)}
    lanes = {room: _BOX + 24 + _LANE * place for place, room in enumerate(ordered[:-1])}
    words = max(lanes.values()) + 24
    for place, room in enumerate(ordered):
        _draw_room(drawing, room, heights[room])
        if place and ordered[place - 1] in rooms.imports[room]:
            _draw_arrow(drawing, heights[room])
        lines = _wrapped(_description(room), WIDE - words)
        for line, text in enumerate(lines):
            drawing.text(words, heights[room] + 4 + _LINE * (line - (len(lines) - 1) / 2), text)
    _draw_lanes(drawing, rooms, heights, lanes)
    for line, text in enumerate(ground):
        drawing.text(0, below + 12 + _LINE * line, text)
    described = "; ".join(
        f"{room} imports {', '.join(o for o in ordered if o in rooms.imports[room]) or 'none'}"
        for room in ordered
    )
    framed = drawing.framed(_TITLE, "make pictures")
    style = picture_style(collect([], [], []), framed.shapes)
    return framed.document(_TITLE, f"{described}.", style)


def _wrapped(text: str, room: float) -> list[str]:
    return textwrap.wrap(text, int(room / CHARACTER))


def _draw_lanes(
    drawing: Drawing, rooms: Rooms, heights: Mapping[str, float], lanes: Mapping[str, float]
) -> None:
    """Draw a lane down from each room, with a mark where a room imports it; lines before marks."""
    users = {lane: [y for user, y in heights.items() if lane in rooms.imports[user]]
             for lane in lanes}  # fmt: skip
    for room, y in heights.items():
        across = [lanes[other] for other in (*rooms.imports[room], room) if other in lanes]
        drawing.line(_BOX, y, max(across), y, "grid")
    for room, x in lanes.items():
        drawing.line(x, heights[room], x, max(users[room], default=heights[room]), "join")
    for room, x in lanes.items():
        drawing.marks("square", [(x, y) for y in users[room]], 4, "m")
        drawing.marks("circle", [(x, heights[room])], 4, "m")


def _description(room: str) -> str:
    """Return the first line of a room's docstring."""
    document = importlib.import_module(f"{_PACKAGE}.{room}").__doc__
    assert document, f"{_PACKAGE}/{room}/__init__.py has no docstring"
    return document.splitlines()[0]


def _draw_legend(drawing: Drawing) -> None:
    drawing.marks("circle", [(6, 16)], 4, "m")
    drawing.text(16, 20, "a room")
    second = 16 + 8 * CHARACTER
    drawing.marks("square", [(second, 16)], 4, "m")
    drawing.text(second + 10, 20, "a room that imports it")


def _draw_room(drawing: Drawing, room: str, y: float) -> None:
    top, bottom = y - _TALL / 2, y + _TALL / 2
    corners = [(0.0, top), (_BOX, top), (_BOX, bottom), (0.0, bottom), (0.0, top)]
    drawing.curve(corners, "join")
    drawing.text(_BOX / 2, y + 4, room, "t strong", "middle")


def _draw_arrow(drawing: Drawing, y: float) -> None:
    """Draw the arrow of the data flow from the room above to the one at `y`."""
    drawing.line(_BOX / 2, y - _ROW + _TALL / 2, _BOX / 2, y - _TALL / 2 - 6, "join")
    drawing.marks("down", [(_BOX / 2, y - _TALL / 2 - 6)], 4, "m")


if __name__ == "__main__":
    write_atomically(PICTURE, draw_rooms(read_rooms()))
    print(PICTURE)
