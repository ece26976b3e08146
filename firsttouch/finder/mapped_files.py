# SPDX-License-Identifier: GPL-2.0
"""The files that a traced program mapped, if they are still the same."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile

from firsttouch.finder.debug_files import build_id
from firsttouch.finder.events import INODE
from firsttouch.finder.spaces import Place

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
            try:
                self._go[key] = _has_section(self.path(place), _OF_GO)
            except UnusableError:
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


def _has_section(path: Path, name: str) -> bool:
    # The reader raises whatever a damaged file makes of it.
    try:
        with path.open("rb") as file:
            return ELFFile(file).get_section_by_name(name) is not None
    except Exception:
        return False


def _is_of(path: Path, expected: str) -> bool:
    try:
        with path.open("rb") as file:
            return build_id(ELFFile(file)) == expected
    except Exception:
        return False
