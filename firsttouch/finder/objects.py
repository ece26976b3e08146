# SPDX-License-Identifier: GPL-2.0
"""Names code in an ELF file, which may be any file: damaged, or of a form that nobody reads."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from firsttouch.finder.binutils import LinesError, source_lines
from firsttouch.finder.debug_files import DebugFiles, Servers, debug_names

# An entry of a table of symbols, by the file's class: name, then the rest. The reader's own
# way takes a second for 40,000 of them.
_SYMBOLS = {64: struct.Struct("<IBxHQQ"), 32: struct.Struct("<IIIBxH")}
_FUNCTION, _INDIRECT = 2, 10
_UNDEFINED = 0


class Table:
    """Functions by address."""

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
    """An ELF file with the best symbols and lines that there are for it.

    `trouble` says why it has no names or lines, as the end of a sentence that
    begins with the file; "" if none is missing that should be there.
    """

    def __init__(self, path: Path, debug_files: DebugFiles) -> None:
        self.trouble = ""
        self._segments: list[tuple[int, int, int]] = []
        self._table = Table(())
        self._name = path.name
        self._build_id = ""
        self._with_lines: Path | None = None
        # The reader raises whatever a damaged file makes of it: AttributeError, MemoryError.
        try:
            with path.open("rb") as file:
                self._read(path, ELFFile(file), debug_files)
        except OSError:
            raise
        except Exception:
            self.trouble = "cannot be read as an ELF file"

    def _read(self, path: Path, elf: ELFFile, debug_files: DebugFiles) -> None:
        self._segments = [
            (s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments("PT_LOAD")
        ]
        self._table = Table(_functions(elf))
        if elf.has_dwarf_info(strict=True):
            self._with_lines = path
            return
        names = debug_names(elf)
        self._build_id = names.build_id
        debug, self.trouble = debug_files.of(path, names)
        self._use(debug)

    def _use(self, debug: Path | None) -> None:
        """Take symbols and lines from a debug file."""
        if debug is None:
            return
        try:
            with debug.open("rb") as file:
                self._table = Table(_functions(ELFFile(file))) or self._table
            self._with_lines = debug
        except Exception:
            self.trouble = f"has a debug file that cannot be read, {debug}"

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
        """Return the function at an offset; "" if it is not known."""
        return self._table.name(self._address(offset))

    def lines(self, offsets: Sequence[int]) -> list[tuple[str, int]]:
        """Return the file and the line at each offset; "" and 0 where they are not known."""
        if self._with_lines is not None:
            try:
                return source_lines(self._with_lines, list(map(self._address, offsets)))
            except LinesError as error:
                self.trouble = str(error)
                self._with_lines = None
        return [("", 0)] * len(offsets)


def _functions(elf: ELFFile) -> Iterator[tuple[int, int, str]]:
    """Yield the functions of the full table of symbols, or else of the dynamic one."""
    for name in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(name)
        if not isinstance(section, SymbolTableSection) or section["sh_type"] == "SHT_NOBITS":
            continue
        names: bytes = section.stringtable.data()
        for entry in _SYMBOLS[elf.elfclass].iter_unpack(section.data()):
            if elf.elfclass == 64:
                at, info, shelf, start, size = entry
            else:
                at, start, size, info, shelf = entry
            if info & 15 in (_FUNCTION, _INDIRECT) and shelf != _UNDEFINED:
                yield start, size, names[at : names.index(b"\0", at)].decode(errors="replace")
        return
