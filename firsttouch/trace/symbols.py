# SPDX-License-Identifier: GPL-2.0
"""Names places: function, file and line, from the mapped files and from perf's maps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePath

from firsttouch.trace.mapped_files import FunctionTable, MappedFile, MappedFiles, ask
from firsttouch.trace.sites import JIT, Location
from firsttouch.trace.spaces import NAMED, Place

# The beginning of names that encode their types, and what decodes them.
_MANGLED = ("_Z", "_R")
# Without types of arguments.
_DEMANGLE = ("c++filt", "-p")
# A line of perf's map: the address, the size and the name.
_FUNCTION = re.compile(r"^(?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+) (.*)", re.MULTILINE | re.IGNORECASE)


class Symbols:
    """Names places by the mapped files; perf's maps are in /tmp beside them."""

    def __init__(self, files: MappedFiles) -> None:
        self._files = files
        self._jit: dict[int, FunctionTable] = {}
        self._plain: dict[str, str] = {}

    def demangle(self, places: Iterable[Place]) -> None:
        """Decode the names of C++ and Rust at places, all at once."""
        names = {self._linked_name(place) for place in places} - set(self._plain)
        mangled = sorted(name for name in names if name.startswith(_MANGLED))
        plain = ask(_DEMANGLE, mangled) if mangled else None
        # As they are, if no tool is there.
        self._plain |= zip(mangled, plain or mangled, strict=True)

    def function(self, place: Place) -> str:
        name = self._linked_name(place)
        return self._plain.get(name, name)

    def caller(self, place: Place) -> str:
        unknown = f"[{PurePath(place.path).name}]" if place.path else "[unknown code]"
        return self.function(place) or unknown

    def _linked_name(self, place: Place) -> str:
        if not place.path:
            return self._jitted(place.pid).name(place.offset)
        if place in NAMED:
            return place.path
        file = self._files.at(place)
        return file.function(place.offset) if file else ""

    def locate(self, places: Iterable[Place]) -> dict[Place, Location]:
        by_file: dict[MappedFile, list[Place]] = defaultdict(list)
        wanted = list(dict.fromkeys(places))
        for place in wanted:
            if file := self._files.at(place):
                by_file[file].append(place)
        lines: dict[Place, tuple[str, int]] = {}
        for file, inside in by_file.items():
            lines |= zip(inside, file.lines([place.offset for place in inside]), strict=True)
        return {
            place: Location("", 0, place.path)
            if place in NAMED
            else Location(
                place.path or JIT, place.offset, self.function(place), *lines.get(place, ("", 0))
            )
            for place in wanted
        }

    def _jitted(self, pid: int) -> FunctionTable:
        if pid not in self._jit:
            root = self._files.root
            file = root / f"tmp/perf-{pid}.map"
            if not file.exists() and root != Path("/"):
                # A container has other numbers of processes.
                file = next(root.glob("tmp/perf-*.map"), file)
            self._jit[pid] = _perf_map(file)
        return self._jit[pid]


def _perf_map(file: Path) -> FunctionTable:
    """Return the functions that a JIT compiler wrote to perf's map; none without a map."""
    text = ""
    with suppress(OSError):
        # Others may write to the folder: no FIFO, at which a reader waits.
        text = file.read_text(errors="replace") if file.is_file() else ""
    return FunctionTable((int(m[1], 16), int(m[2], 16), m[3]) for m in _FUNCTION.finditer(text))
