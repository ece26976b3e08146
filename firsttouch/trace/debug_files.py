# SPDX-License-Identifier: GPL-2.0
"""The files that a traced program mapped, if they are the same, and their debug information."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from firsttouch.trace.events import INODE
from firsttouch.trace.spaces import Place

_DEBUG = "usr/lib/debug"


class DebugNames(NamedTuple):
    """By what debug information is found; "" for what a file lacks. `crc` is of the `link`."""

    build_id: str
    link: str
    crc: bytes


def debug_names(elf: ELFFile) -> DebugNames:
    """Return the build ID of a file, and the name in its ``.gnu_debuglink``."""
    section = elf.get_section_by_name(".gnu_debuglink")
    data: bytes = section.data() if section else b""
    link = data.split(b"\0", 1)[0].decode(errors="replace")
    return DebugNames(build_id(elf), link, data[-4:])


def build_id(elf: ELFFile) -> str:
    """Return the build ID of a file in hexadecimal; "" if it has none."""
    for section in elf.iter_sections("SHT_NOTE"):
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


def debug_file(root: Path, path: Path, names: DebugNames) -> tuple[Path | None, str]:
    """Return the debug file of `path`, where gdb looks, too, and why one there was not taken."""
    debug, identity = root / _DEBUG, names.build_id
    places = [debug / ".build-id" / identity[:2] / f"{identity[2:]}.debug"] if identity else []
    if link := names.link:
        below = path.parent.relative_to(root) if path.is_relative_to(root) else ""
        places += [path.with_name(link), path.parent / ".debug" / link, debug / below / link]
    there = [place for place in places if place.is_file() and place != path]
    for place in there:
        if _belongs(place, names):
            return place, ""
    return None, f"is of another build than its debug file {there[0]}" if there else ""


def _belongs(debug: Path, names: DebugNames) -> bool:
    """Tell whether a debug file has the build ID, or without one the checksum, that is asked."""
    # The reader raises whatever a damaged file makes of it.
    try:
        with debug.open("rb") as file:
            identity = build_id(ELFFile(file))
            if identity and names.build_id:
                return identity == names.build_id
            file.seek(0)
            checksum = 0
            while part := file.read(1 << 20):
                checksum = zlib.crc32(part, checksum)
            return checksum.to_bytes(4, "little") == names.crc
    except Exception:
        return False


# A section that every program of Go has, stripped or not, from Go 1.13 on.
_OF_GO = ".go.buildinfo"


class UnusableError(Exception):
    """Why a file is not used, as the end of a sentence that begins with the file."""


class MappedFiles:
    """Files below `root`, where the program's are, or `copies` of them, with other inodes."""

    def __init__(self, root: Path, *, copies: bool = False) -> None:
        self._root = root
        self._copies = copies
        self._troubles: dict[tuple[str, str], str] = {}
        self._go: dict[tuple[str, str], bool] = {}

    def path(self, place: Place) -> Path:
        """Return the file of a place. Raises UnusableError."""
        path = self._root / place.path.lstrip("/")
        key = place.path, place.identity
        if key not in self._troubles:
            ignored = self._copies and place.identity.startswith(INODE)
            try:
                self._troubles[key] = _trouble(path, "" if ignored else place.identity)
            except OSError as error:
                # A folder that may not be searched, or a name that is too long.
                self._troubles[key] = f"cannot be read ({error.strerror})"
        if self._troubles[key]:
            raise UnusableError(self._troubles[key])
        return path

    def read(self, place: Place, size: int) -> bytes:
        """Return the first bytes at a place; none if they cannot be read."""
        try:
            with self.path(place).open("rb", buffering=0) as file:
                file.seek(place.offset)
                return file.read(size)
        except (OSError, UnusableError):
            return b""

    def is_go(self, place: Place) -> bool:
        """Tell whether the file of a place is a program that Go's linker made."""
        key = place.path, place.identity
        if key not in self._go:
            # The reader raises whatever a damaged file makes of it.
            try:
                with self.path(place).open("rb") as file:
                    self._go[key] = ELFFile(file).get_section_by_name(_OF_GO) is not None
            except Exception:
                self._go[key] = False
        return self._go[key]


def _trouble(path: Path, expected: str) -> str:
    """Return why a file is not used; "" for one that is, or that is not there."""
    if not path.exists():
        return "is not there now"
    # To read a device or a FIFO may have effects, and no end.
    if not path.is_file():
        return "is no regular file"
    if expected.startswith(INODE):
        same = expected == f"{INODE} {path.stat().st_ino}"
        return "" if same else "is not the file that was traced, by its inode"
    if expected and not _is_of(path, expected):
        return "is not the file that was traced, by its build ID"
    return ""


def _is_of(path: Path, expected: str) -> bool:
    try:
        with path.open("rb") as file:
            return build_id(ELFFile(file)) == expected
    except Exception:
        return False
