# SPDX-License-Identifier: GPL-2.0
"""Names places: function, file and line, from ELF files, debug files and perf's maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from types import MappingProxyType

from firsttouch.finder.binutils import demangled
from firsttouch.finder.debug_files import DebugFiles, Servers
from firsttouch.finder.locations import JIT, Location
from firsttouch.finder.mapped_files import MappedFiles, UnusableError
from firsttouch.finder.objects import Object, Table
from firsttouch.finder.spaces import NAMED, Place

# The beginning of names that encode their types.
_MANGLED = ("_Z", "_R")


class Symbols:
    """Names places; `root` is where the traced program's files are, also perf's maps in /tmp.

    With `copies` they are copies of its files, as of those on a guest's disk.
    `numbers` are those by which processes know themselves, where they differ: of containers.
    `servers` are asked for debug information that is not here.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        servers: Servers | None = None,
        numbers: Mapping[int, int] = MappingProxyType({}),
        *,
        copies: bool = False,
    ) -> None:
        self._files = MappedFiles(root, copies=copies)
        self._debug_files = DebugFiles(root)
        self._maps = root / "tmp"
        self._servers = servers
        self._numbers = numbers
        # By path and identity; a sentence's end for a file that is not used.
        self._objects: dict[tuple[str, str], Object | str] = {}
        self._jit: dict[int, Table] = {}
        self._plain: dict[str, str] = {}

    def demangle(self, places: Iterable[Place]) -> None:
        """Decode the names of C++ and Rust at places, all at once."""
        names = {self._linked_name(place) for place in places} - set(self._plain)
        self._plain |= demangled(sorted(name for name in names if name.startswith(_MANGLED)))

    def function(self, place: Place) -> str:
        """Return the function of a place; "" if it is not known."""
        name = self._linked_name(place)
        return self._plain.get(name, name)

    def caller(self, place: Place) -> str:
        """Return the function of a place, or in brackets what file it is in."""
        name = self.function(place)
        if name:
            return name
        return f"[{PurePath(place.path).name}]" if place.path else "[unknown code]"

    def _linked_name(self, place: Place) -> str:
        if not place.path:
            return self._jitted(place.pid).name(place.offset)
        if place in NAMED:
            return place.path
        file = self._object(place)
        return file.function(place.offset) if file else ""

    def locate(self, places: Iterable[Place], *, asking: bool = True) -> dict[Place, Location]:
        """Return what is known of places; servers are not asked for their files unless `asking`."""
        by_object: dict[Object, list[Place]] = defaultdict(list)
        wanted = list(dict.fromkeys(places))
        for place in wanted:
            if place.path and place not in NAMED and (file := self._object(place)):
                if asking and self._servers:
                    file.ask(self._servers)
                by_object[file].append(place)
        self.demangle(wanted)
        lines: dict[Place, tuple[str, int]] = {}
        for file, inside in by_object.items():
            lines |= zip(inside, file.lines([place.offset for place in inside]), strict=True)
        return {
            place: Location("", 0, place.path)
            if place in NAMED
            else Location(
                place.path or JIT, place.offset, self.function(place), *lines.get(place, ("", 0))
            )
            for place in wanted
        }

    def troubles(self) -> tuple[str, ...]:
        """Return why files have no names or lines: a clause each, the file first."""
        clauses = {}
        for (path, _), file in self._objects.items():
            trouble = file if isinstance(file, str) else file.trouble
            if trouble and path.startswith("/"):
                clauses[f"{path} {trouble}"] = True
        return tuple(clauses)

    def _object(self, place: Place) -> Object | None:
        key = place.path, place.identity
        if key not in self._objects:
            try:
                self._objects[key] = Object(self._files.path(place), self._debug_files)
            except UnusableError as error:
                self._objects[key] = str(error)
            except OSError as error:
                self._objects[key] = f"cannot be read ({error.strerror})"
        file = self._objects[key]
        return file if isinstance(file, Object) else None

    def _jitted(self, pid: int) -> Table:
        if pid not in self._jit:
            number = self._numbers.get(pid, pid)
            self._jit[pid] = _perf_map(self._maps / f"perf-{number}.map")
        return self._jit[pid]


def _perf_map(file: Path) -> Table:
    """Return the functions that a JIT compiler wrote to perf's map; none without a map."""
    functions = []
    try:
        # Others may write to the folder: no FIFO, at which a reader waits.
        text = file.read_text(errors="replace") if file.is_file() else ""
    except OSError:
        text = ""
    for line in text.splitlines():
        start, _, rest = line.partition(" ")
        size, _, name = rest.partition(" ")
        try:
            functions.append((int(start, 16), int(size, 16), name))
        except ValueError:
            continue
    return Table(functions)
