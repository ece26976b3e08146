# SPDX-License-Identifier: GPL-2.0
"""The debug sections of a program, which are fuzzed apart from the rest of it."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile


def debug_ranges(program: Path) -> list[tuple[int, int]]:
    """Return the first byte of each debug section in a file, and the one behind it."""
    with program.open("rb") as file:
        return [
            (section["sh_offset"], section["sh_offset"] + section["sh_size"])
            for section in ELFFile(file).iter_sections()
            if section.name.startswith(".debug")
        ]


def debug_sections(program: Path) -> bytes:
    """Return the debug sections of a file, one after the other."""
    data = program.read_bytes()
    return b"".join(data[start:end] for start, end in debug_ranges(program))
