# SPDX-License-Identifier: GPL-2.0
"""Source lines of addresses, from DWARF."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path, PurePath

from elftools.construct.lib.container import Container
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.ranges import RangeEntry
from elftools.elf.elffile import ELFFile


class Lines:
    """The lines of a file with DWARF; those of one unit are read when it is asked for.

    The reader raises whatever a damaged file makes of it, also while this is made.
    """

    def __init__(self, path: Path) -> None:
        # Open as long as this lasts: the reader reads what it is asked for.
        self._file = path.open("rb")
        self._dwarf: DWARFInfo = ELFFile(self._file).get_dwarf_info()
        self._aranges = self._dwarf.get_aranges()
        # None for a unit of a form that the reader does not know.
        self._units: dict[int, _UnitLines | None] = {}
        self._ranges: list[tuple[int, int, int]] | None = None

    def at(self, address: int) -> tuple[str, int]:
        """Return the file and the line of an address; "" and 0 if they are not known."""
        try:
            unit = self._unit(address)
            if unit is None:
                return "", 0
            if unit not in self._units:
                self._units[unit] = None
                self._units[unit] = _UnitLines(self._dwarf, self._dwarf.get_CU_at(unit))
        except Exception:
            return "", 0
        lines = self._units[unit]
        return lines.at(address) if lines else ("", 0)

    def _unit(self, address: int) -> int | None:
        """Return the offset of the unit that has `address`."""
        if self._aranges is not None:
            offset = self._aranges.cu_offset_at_addr(address)
            if offset is not None:
                return int(offset)
        if self._ranges is None:
            self._ranges = []
            self._ranges = sorted(_unit_ranges(self._dwarf, self._listed()))
        index = bisect_right(self._ranges, (address, 1 << 64, 0)) - 1
        if index >= 0 and address < self._ranges[index][1]:
            return self._ranges[index][2]
        return None

    def _listed(self) -> set[int]:
        """Return the offsets of the units in .debug_aranges, which clang does not write."""
        return {entry.info_offset for entry in self._aranges.entries} if self._aranges else set()


def _unit_ranges(dwarf: DWARFInfo, listed: set[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of addresses of units that are not `listed`: start, end, unit's offset.

    An address of no unit, such as of the PLT, brings all of a C library's 2,000 here.
    """
    lists = dwarf.range_lists()
    for unit in dwarf.iter_CUs():
        if unit.cu_offset in listed:
            continue
        top = unit.get_top_DIE().attributes
        base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        if "DW_AT_high_pc" in top:
            high = top["DW_AT_high_pc"]
            end = high.value if high.form == "DW_FORM_addr" else base + high.value
            yield base, end, unit.cu_offset
        elif "DW_AT_ranges" in top and lists is not None:
            for entry in lists.get_range_list_at_offset(top["DW_AT_ranges"].value, cu=unit):
                if isinstance(entry, RangeEntry):
                    start = 0 if entry.is_absolute else base
                    yield start + entry.begin_offset, start + entry.end_offset, unit.cu_offset
                else:
                    base = entry.base_address


class _UnitLines:
    """The lines of one unit by address."""

    def __init__(self, dwarf: DWARFInfo, unit: CompileUnit) -> None:
        program = dwarf.line_program_for_CU(unit)
        rows = []
        if program is not None:
            names = _file_names(program.header, unit)
            first = 0 if program.header["version"] >= 5 else 1
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                index = state.file - first
                name = names[index] if 0 <= index < len(names) else ""
                # The end of a sequence ends the line before it.
                rows.append((state.address, 0 if state.end_sequence else state.line, name))
        rows.sort(key=lambda row: row[0])
        self._rows = rows
        self._addresses = [row[0] for row in rows]

    def at(self, address: int) -> tuple[str, int]:
        index = bisect_right(self._addresses, address) - 1
        if index < 0 or not self._rows[index][1]:
            return "", 0
        _, line, name = self._rows[index]
        return name, line


def _file_names(header: Container, unit: CompileUnit) -> list[str]:
    """Return the paths of a line program's files, from the first index that it uses."""
    top = unit.get_top_DIE().attributes
    made_in = top["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in top else b""
    folders = list(header["include_directory"])
    if header["version"] < 5:
        folders.insert(0, made_in)
    names = []
    for entry in header["file_entry"]:
        index = entry["dir_index"]
        folder = folders[index] if index < len(folders) else b""
        path = PurePath(made_in.decode(errors="replace"), folder.decode(errors="replace"))
        names.append(str(path / entry["name"].decode(errors="replace")))
    return names
