# SPDX-License-Identifier: GPL-2.0
"""Names places: function, file and line, from the mapped files, debug files and perf's maps."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from firsttouch.trace.events import INODE
from firsttouch.trace.sites import JIT, Location
from firsttouch.trace.spaces import NAMED, Place

_DEBUG = "usr/lib/debug/.build-id"
_LINES, _NAMES = "addr2line", "c++filt"
# An answer of addr2line; a discriminator may follow the line's number.
_LINE = re.compile(r"(.+):([1-9]\d*)(?: .*)?")
# Seconds. What reads a damaged file may have no end.
_PATIENCE = 300


def _ask(command: Sequence[str], lines: Sequence[str]) -> list[str] | None:
    """Return what a command answers to each of `lines`; None if it fails."""
    try:
        done = subprocess.run(
            command, input="".join(f"{line}\n" for line in lines), capture_output=True,
            encoding="utf-8", errors="replace", timeout=_PATIENCE, check=True,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    answers = done.stdout.split("\n")[:-1]
    return answers if len(answers) == len(lines) else None


# An entry of a table of symbols; the reader's own way takes a second for 40,000 of them.
_SYMBOL = struct.Struct("<IBxHQQ")
_FUNCTION, _INDIRECT = 2, 10
_UNDEFINED = 0


class FunctionTable:
    def __init__(self, functions: Iterable[tuple[int, int, str]]) -> None:
        self._functions = sorted(functions)
        self._starts = [start for start, _, _ in self._functions]

    def __len__(self) -> int:
        return len(self._functions)

    def name(self, address: int) -> str:
        """Return the function at an address; "" if there is none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        start, size, name = self._functions[index]
        # A function of an assembler may have no size: it lasts until the next.
        return name if not size or address < start + size else ""


class Object:
    """An ELF file with the best symbols and lines that there are for it."""

    def __init__(self, path: Path, root: Path) -> None:
        self._segments: list[tuple[int, int, int]] = []
        self._table = FunctionTable(())
        self._with_lines: Path | None = None
        # The reader raises whatever a damaged file makes of it: AttributeError, MemoryError.
        with suppress(Exception), path.open("rb") as file:
            self._read(path, ELFFile(file), root)

    def _read(self, path: Path, elf: ELFFile, root: Path) -> None:
        self._segments = [
            (s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments("PT_LOAD")
        ]
        self._table = FunctionTable(_functions(elf))
        identity = build_id(elf)
        debug = root / _DEBUG / identity[:2] / f"{identity[2:]}.debug"
        if elf.has_dwarf_info(strict=True):
            self._with_lines = path
        elif identity and debug.is_file():
            with debug.open("rb") as file:
                self._table = FunctionTable(_functions(ELFFile(file))) or self._table
            self._with_lines = debug

    def _address(self, offset: int) -> int:
        """Return the address, as the file counts them, of an offset in it."""
        for start, size, address in self._segments:
            if start <= offset < start + size:
                return int(offset - start + address)
        return offset

    def function(self, offset: int) -> str:
        return self._table.name(self._address(offset))

    def lines(self, offsets: Sequence[int]) -> list[tuple[str, int]]:
        """Return the file and the line at each offset; "" and 0 where they are not known."""
        answers = None
        if self._with_lines and (tool := shutil.which(_LINES)):
            addresses = [hex(self._address(offset)) for offset in offsets]
            answers = _ask([tool, "-e", str(self._with_lines)], addresses)
        matches = map(_LINE.fullmatch, answers or [""] * len(offsets))
        return [(match[1], int(match[2])) if match else ("", 0) for match in matches]


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


# The beginning of names that encode their types.
_MANGLED = ("_Z", "_R")


class Symbols:
    """Names places; `root` is where the traced program's files are, also perf's maps in /tmp.

    With `copies` they are copies of its files, as of those on a guest's disk.
    """

    def __init__(self, root: Path = Path("/"), *, copies: bool = False) -> None:
        self._files = MappedFiles(root, copies=copies)
        self._root = root
        # By path and identity; None for a file that is not used.
        self._objects: dict[tuple[str, str], Object | None] = {}
        self._jit: dict[int, FunctionTable] = {}
        self._plain: dict[str, str] = {}

    def demangle(self, places: Iterable[Place]) -> None:
        """Decode the names of C++ and Rust at places, all at once."""
        names = {self._linked_name(place) for place in places} - set(self._plain)
        mangled = sorted(name for name in names if name.startswith(_MANGLED))
        tool = shutil.which(_NAMES)
        plain = _ask([tool, "-p"], mangled) if tool and mangled else None
        # Without types of arguments; as they are, if no tool is there.
        self._plain |= zip(mangled, plain or mangled, strict=True)

    def function(self, place: Place) -> str:
        name = self._linked_name(place)
        return self._plain.get(name, name)

    def caller(self, place: Place) -> str:
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

    def locate(self, places: Iterable[Place]) -> dict[Place, Location]:
        by_object: dict[Object, list[Place]] = defaultdict(list)
        wanted = list(dict.fromkeys(places))
        for place in wanted:
            if place.path and place not in NAMED and (file := self._object(place)):
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

    def _object(self, place: Place) -> Object | None:
        key = place.path, place.identity
        if key not in self._objects:
            path = self._files.path(place)
            self._objects[key] = Object(path, self._root) if path else None
        return self._objects[key]

    def _jitted(self, pid: int) -> FunctionTable:
        if pid not in self._jit:
            file = self._root / f"tmp/perf-{pid}.map"
            if not file.exists() and self._root != Path("/"):
                # A container has other numbers of processes.
                file = next(self._root.glob("tmp/perf-*.map"), file)
            self._jit[pid] = _perf_map(file)
        return self._jit[pid]


def _perf_map(file: Path) -> FunctionTable:
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
    return FunctionTable(functions)


def build_id(elf: ELFFile) -> str:
    """Return the build ID of a file in hexadecimal; "" if it has none."""
    for section in elf.iter_sections("SHT_NOTE"):
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


# A section that every program of Go has, stripped or not, from Go 1.13 on.
_OF_GO = ".go.buildinfo"


class MappedFiles:
    """Files below `root`, where the program's are, or `copies` of them, with other inodes."""

    def __init__(self, root: Path, *, copies: bool = False) -> None:
        self._root = root
        self._copies = copies
        self._usable: dict[tuple[str, str], bool] = {}
        self._go: dict[tuple[str, str], bool] = {}

    def path(self, place: Place) -> Path | None:
        """Return the file of a place; None if it is gone, another now, or none to read."""
        path = self._root / place.path.lstrip("/")
        key = place.path, place.identity
        if key not in self._usable:
            ignored = self._copies and place.identity.startswith(INODE)
            # A folder may not be searched, a name may be too long, a file damaged.
            self._usable[key] = False
            with suppress(Exception):
                self._usable[key] = _is_file(path, "" if ignored else place.identity)
        return path if self._usable[key] else None

    def read(self, place: Place, size: int) -> bytes:
        """Return the first bytes at a place; none if they cannot be read."""
        path = self.path(place)
        if path is None:
            return b""
        try:
            with path.open("rb", buffering=0) as file:
                file.seek(place.offset)
                return file.read(size)
        except OSError:
            return b""

    def is_go(self, place: Place) -> bool:
        """Tell whether the file of a place is a program that Go's linker made."""
        key = place.path, place.identity
        if key not in self._go:
            self._go[key] = False
            if path := self.path(place):
                with suppress(Exception), path.open("rb") as file:
                    self._go[key] = ELFFile(file).get_section_by_name(_OF_GO) is not None
        return self._go[key]


def _is_file(path: Path, expected: str) -> bool:
    """Tell whether a path is the file that was mapped, by its inode or its build ID."""
    # To read a device or a FIFO may have effects, and no end.
    if not path.is_file():
        return False
    if expected.startswith(INODE):
        return expected == f"{INODE} {path.stat().st_ino}"
    if not expected:
        return True
    with path.open("rb") as file:
        return build_id(ELFFile(file)) == expected
