# SPDX-License-Identifier: GPL-2.0
"""The files that a traced program maps: their code, and the names and lines of ELF files."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from firsttouch.trace.events import INODE
from firsttouch.trace.spaces import Place

T = TypeVar("T")

_DEBUG = "usr/lib/debug/.build-id"
# A section that every program of Go has, stripped or not, from Go 1.13 on.
_OF_GO = ".go.buildinfo"
_LINES = "addr2line"
# An answer of it; a discriminator may follow the line's number.
_LINE = re.compile(r"(.+):([1-9]\d*)(?: .*)?")
# Seconds. What reads a damaged file may have no end.
_PATIENCE = 300
# An entry of a table of symbols; the reader's own way takes a second for 40,000 of them.
_SYMBOL = struct.Struct("<IBxHQQ")
_FUNCTION, _INDIRECT = 2, 10
_UNDEFINED = 0


def ask(command: Sequence[str], lines: Sequence[str]) -> list[str] | None:
    """Return what a command answers to each of `lines`; None if it is missing, or fails."""
    tool = shutil.which(command[0])
    if not tool:
        return None
    try:
        done = subprocess.run(
            [tool, *command[1:]], input="".join(f"{line}\n" for line in lines),
            capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE, check=True,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    answers = done.stdout.split("\n")[:-1]
    return answers if len(answers) == len(lines) else None


class FunctionTable:
    def __init__(self, functions: Iterable[tuple[int, int, str]]) -> None:
        self._functions = sorted(functions)

    def name(self, address: int) -> str:
        """Return the function at an address; "" if there is none."""
        index = bisect_right(self._functions, address, key=itemgetter(0)) - 1
        if index < 0:
            return ""
        start, size, name = self._functions[index]
        # A function of an assembler may have no size: it lasts until the next.
        return name if not size or address < start + size else ""


class MappedFile:
    """A file that was mapped; what an ELF file has is read when it is first asked for."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self._root = root

    def read(self, reader: Callable[[ELFFile], T]) -> T | None:
        """Return what `reader` makes of the file; None if it is no ELF file, or damaged."""
        # The library raises whatever a damaged file makes of it: AttributeError, MemoryError.
        with suppress(Exception), self.path.open("rb") as file:
            return reader(ELFFile(file))
        return None

    def code(self, offset: int, size: int) -> bytes:
        """Return the first bytes at an offset; none if they cannot be read."""
        with suppress(OSError), self.path.open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size)
        return b""

    @cached_property
    def is_go(self) -> bool:
        """Whether it is a program that Go's linker made."""
        return self.read(lambda elf: elf.get_section_by_name(_OF_GO) is not None) is True

    def address(self, offset: int) -> int:
        """Return the address, as the file counts them, of an offset in it."""
        for start, size, address in self._segments:
            if start <= offset < start + size:
                return int(offset - start + address)
        return offset

    def function(self, offset: int) -> str:
        return self._functions.name(self.address(offset))

    def lines(self, offsets: Sequence[int]) -> list[tuple[str, int]]:
        """Return the file and the line at each offset; "" and 0 where they are not known."""
        answers = None
        if self._with_lines:
            addresses = [hex(self.address(offset)) for offset in offsets]
            answers = ask([_LINES, "-e", str(self._with_lines.path)], addresses)
        matches = map(_LINE.fullmatch, answers or [""] * len(offsets))
        return [(match[1], int(match[2])) if match else ("", 0) for match in matches]

    @cached_property
    def build_id(self) -> str:
        """Its build ID in hexadecimal; "" if it has none."""
        return self.read(_build_id) or ""

    @cached_property
    def _segments(self) -> list[tuple[int, int, int]]:
        return self.read(_loaded) or []

    @cached_property
    def _functions(self) -> FunctionTable:
        full = self._with_lines or self
        return FunctionTable(full.read(_functions) or self.read(_functions) or ())

    @cached_property
    def _with_lines(self) -> MappedFile | None:
        """Itself, or its debug file; None if neither has lines."""
        if self.read(lambda elf: bool(elf.has_dwarf_info(strict=True))):
            return self
        debug = self._root / _DEBUG / self.build_id[:2] / f"{self.build_id[2:]}.debug"
        return MappedFile(debug, self._root) if self.build_id and debug.is_file() else None


def _loaded(elf: ELFFile) -> list[tuple[int, int, int]]:
    return [(s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments("PT_LOAD")]


def _functions(elf: ELFFile) -> list[tuple[int, int, str]]:
    """Return the functions of the full table of symbols, or else of the dynamic one."""
    for table in map(elf.get_section_by_name, (".symtab", ".dynsym")):
        if isinstance(table, SymbolTableSection) and table["sh_type"] != "SHT_NOBITS":
            names: bytes = table.stringtable.data()
            return [
                (start, size, names[at : names.index(b"\0", at)].decode(errors="replace"))
                for at, info, shelf, start, size in _SYMBOL.iter_unpack(table.data())
                if info & 15 in (_FUNCTION, _INDIRECT) and shelf != _UNDEFINED
            ]
    return []


def _build_id(elf: ELFFile) -> str:
    for section in elf.iter_sections("SHT_NOTE"):
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


class MappedFiles:
    """Files below `root`, where the program's are, or `copies` of them, with other inodes."""

    def __init__(self, root: Path = Path("/"), *, copies: bool = False) -> None:
        self.root = root
        self._copies = copies
        self._files: dict[tuple[str, str], MappedFile | None] = {}

    def at(self, place: Place) -> MappedFile | None:
        """Return the file of a place; None if it is gone, another now, or none to read."""
        key = place.path, place.identity
        if key not in self._files:
            file = MappedFile(self.root / place.path.lstrip("/"), self.root)
            self._files[key] = file if self._is_mapped(file, place.identity) else None
        return self._files[key]

    def _is_mapped(self, file: MappedFile, identity: str) -> bool:
        # A folder may not be searched, a name may be too long.
        with suppress(OSError):
            # To read a device or a FIFO may have effects, and no end.
            if file.path.is_file():
                if identity.startswith(INODE):
                    return self._copies or identity == f"{INODE} {file.path.stat().st_ino}"
                return identity in ("", file.build_id)
        return False
