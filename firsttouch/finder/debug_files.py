# SPDX-License-Identifier: GPL-2.0
"""Finds the debug information of a program that was stripped: here, or on a server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

_DEBUG = "usr/lib/debug"
# The clients of debuginfod, of elfutils and of LLVM, which ask the servers in this variable.
_CLIENTS = (("debuginfod-find", "debuginfo"), ("llvm-debuginfod-find", "--debuginfo"))
_URLS = "DEBUGINFOD_URLS"
# Seconds. A server may have to unpack a package of a gigabyte.
_PATIENCE = 90


@dataclass(frozen=True)
class DebugNames:
    """By what an ELF file's debug information is found; "" for what the file does not say."""

    build_id: str
    link: str


def debug_names(elf: ELFFile) -> DebugNames:
    """Return the build ID of a file, and the name in its ``.gnu_debuglink``."""
    section = elf.get_section_by_name(".gnu_debuglink")
    link = section.data().split(b"\0", 1)[0].decode(errors="replace") if section else ""
    return DebugNames(_build_id(elf), link)


def _build_id(elf: ELFFile) -> str:
    for section in elf.iter_sections("SHT_NOTE"):
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


def debug_file(path: Path, root: Path, names: DebugNames) -> Path | None:
    """Return the file below `root` with the debug information of `path`, where gdb looks, too."""
    debug, build_id, link = root / _DEBUG, names.build_id, names.link
    places = [debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"] if build_id else []
    if link:
        below = path.parent.relative_to(root) if path.is_relative_to(root) else Path()
        places += [path.with_name(link), path.parent / ".debug" / link, debug / below / link]
    return next((place for place in places if place.is_file() and place != path), None)


class Servers:
    """The servers of debuginfod, by its client; `say` gets a line before one is asked."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._command = _client() if os.environ.get(_URLS) else None

    def fetch(self, build_id: str, name: str) -> Path | None:
        """Return the debug file of the program `name`, in the client's cache; None without one.

        A server that does not answer is asked for no other.
        """
        if self._command is None:
            return None
        self._say(f"Asking debuginfod for the debug information of {name}")
        tool, what = self._command
        command = [tool, build_id, what] if what.startswith("--") else [tool, what, build_id]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            self._say(f"It gave no answer in {_PATIENCE} s: going on without it ({_URLS}).")
            self._command = None
            return None
        found = Path(done.stdout.strip())
        return found if not done.returncode and found.is_file() else None


def _client() -> tuple[str, str] | None:
    """Return the client that there is, and its word for debug information."""
    for name, what in _CLIENTS:
        if tool := shutil.which(name):
            return tool, what
    return None
