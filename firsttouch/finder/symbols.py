# SPDX-License-Identifier: GPL-2.0
"""Names places: function, file and line, from ELF files, debug files and perf's maps."""

from __future__ import annotations

import shutil
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from firsttouch.finder.debug_files import Servers, debug_file, debug_names
from firsttouch.finder.lines import Lines
from firsttouch.finder.spaces import Place

# An entry of a table of symbols: the reader's own way takes a second for 40,000 of them.
_SYMBOL = struct.Struct("<IBxHQQ")
_FUNCTION, _INDIRECT = 2, 10
_UNDEFINED = 0
# The object of code that is in no file.
JIT = "[JIT]"
# The beginning of names that encode their types, and the tools that decode them.
_MANGLED = ("_Z", "_R")
_DECODERS = ("c++filt", "llvm-cxxfilt")


@dataclass(frozen=True)
class Location:
    """A place in the words of the program; "" and 0 for what is not known.

    `object` is the path of the file, or `JIT`.
    """

    object: str
    offset: int
    function: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return function, file and line, as far as they are known."""
        name = self.function or f"{PurePath(self.object).name}+{self.offset:#x}"
        return f"{name} ({PurePath(self.file).name}:{self.line})" if self.line else name


class Symbols:
    """Names places; `root` is where the traced program's files are, `maps` perf's maps.

    `servers` are asked for debug information that is not here.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        maps: Path = Path("/tmp"),
        servers: Servers | None = None,
    ) -> None:
        self._root = root
        self._maps = maps
        self._servers = servers
        self._objects: dict[str, _Object | None] = {}
        self._jit: dict[int, _Table] = {}
        self._plain: dict[str, str] = {}

    def ask(self, places: Iterable[Place]) -> None:
        """Ask servers for the files of places, to `locate` these: a flame graph has many more."""
        for place in places:
            self._asked(place.path)

    def demangle(self, places: Iterable[Place]) -> None:
        """Decode the names of C++ and Rust at places, all at once."""
        names = {self._linked_name(place) for place in places} - set(self._plain)
        self._plain |= _demangled(sorted(name for name in names if name.startswith(_MANGLED)))

    def function(self, place: Place) -> str:
        """Return the function of a place; "" if it is not known."""
        name = self._linked_name(place)
        return self._plain.get(name, name)

    def _linked_name(self, place: Place) -> str:
        if not place.path:
            return self._jitted(place.pid).name(place.offset)
        found = self._object(place.path)
        return found.function(place.offset) if found else ""

    def locate(self, place: Place) -> Location:
        """Return what is known of a place."""
        if not place.path:
            return Location(JIT, place.offset, self.function(place))
        found = self._asked(place.path)
        file, line = found.line(place.offset) if found else ("", 0)
        return Location(place.path, place.offset, self.function(place), file, line)

    def _object(self, path: str) -> _Object | None:
        if path not in self._objects:
            try:
                self._objects[path] = _Object(self._root / path.lstrip("/"), self._root)
            except (OSError, ELFError):
                self._objects[path] = None
        return self._objects[path]

    def _asked(self, path: str) -> _Object | None:
        """Return a file with all that is to be had for it."""
        found = self._object(path) if path else None
        if found and self._servers:
            found.ask(self._servers)
        return found

    def _jitted(self, pid: int) -> _Table:
        if pid not in self._jit:
            self._jit[pid] = _perf_map(self._maps / f"perf-{pid}.map")
        return self._jit[pid]


def _demangled(names: Sequence[str]) -> dict[str, str]:
    """Return the names without types of arguments; none if no tool is there."""
    tool = next((found for name in _DECODERS if (found := shutil.which(name))), None)
    if tool is None or not names:
        return {}
    done = subprocess.run(
        [tool, "-p"], input="\n".join(names), capture_output=True, text=True, check=False
    )
    return dict(zip(names, done.stdout.splitlines(), strict=False)) if not done.returncode else {}


class _Table:
    """Functions by address."""

    def __init__(self, functions: Iterable[tuple[int, int, str]]) -> None:
        self._functions = sorted(functions)
        self._starts = [start for start, _, _ in self._functions]

    def __len__(self) -> int:
        return len(self._functions)

    def name(self, address: int) -> str:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        start, size, name = self._functions[index]
        # A function of an assembler may have no size: it lasts until the next.
        return name if not size or address < start + size else ""


class _Object:
    """An ELF file with the best symbols and lines that there are for it."""

    def __init__(self, path: Path, root: Path) -> None:
        with path.open("rb") as file:
            elf = ELFFile(file)
            self._segments = [
                (s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments("PT_LOAD")
            ]
            self._table = _Table(_functions(elf))
            names = debug_names(elf)
            has_lines = elf.has_dwarf_info(strict=True)
        self._name = path.name
        self._build_id = names.build_id
        self._with_lines = path if has_lines else None
        self._lines: Lines | None = None
        if not has_lines:
            self._use(debug_file(path, root, names))

    def _use(self, debug: Path | None) -> None:
        """Take symbols and lines from a debug file."""
        if debug:
            with debug.open("rb") as file:
                self._table = _Table(_functions(ELFFile(file))) or self._table
            self._with_lines = debug

    def ask(self, servers: Servers) -> None:
        """Get debug information from a server, if this host has none; once."""
        if self._with_lines is None and self._build_id:
            self._use(servers.fetch(self._build_id, self._name))
            self._build_id = ""

    def _address(self, offset: int) -> int:
        """Return the address, as the file counts them, of an offset in it."""
        for start, size, address in self._segments:
            if start <= offset < start + size:
                return int(offset - start + address)
        return offset

    def function(self, offset: int) -> str:
        return self._table.name(self._address(offset))

    def line(self, offset: int) -> tuple[str, int]:
        if not self._with_lines:
            return "", 0
        if self._lines is None:
            self._lines = Lines(self._with_lines)
        return self._lines.at(self._address(offset))


def _functions(elf: ELFFile) -> Iterator[tuple[int, int, str]]:
    """Yield the functions of the full table of symbols, or else of the dynamic one."""
    for name in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(name)
        if not isinstance(section, SymbolTableSection) or section["sh_type"] == "SHT_NOBITS":
            continue
        names: bytes = section.stringtable.data()
        for at, info, shelf, start, size in _SYMBOL.iter_unpack(section.data()):
            if info & 15 in (_FUNCTION, _INDIRECT) and shelf != _UNDEFINED:
                yield start, size, names[at : names.index(b"\0", at)].decode(errors="replace")
        return


def _perf_map(file: Path) -> _Table:
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
    return _Table(functions)
