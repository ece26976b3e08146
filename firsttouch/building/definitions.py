# SPDX-License-Identifier: GPL-2.0
"""Where the functions of a kernel are defined: file and line of its source.

Debug information would tell, too, but costs a kernel of its own. A definition
in C begins in the first column, which a search finds in a second.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from firsttouch.building.patching import copy_changed
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Kernel

# Where a function of an arm64 kernel may be defined; the second list takes seconds.
_FOLDERS = (
    ("mm", "arch/arm64", "kernel", "lib", "fs", "include", "block", "security", "init", "ipc"),
    ("drivers", "net", "crypto", "io_uring", "virt"),
)
_FILES = ("--include=*.c", "--include=*.h")
# What GCC appends to the names of functions that it copies or splits.
_MADE = re.compile(r"\.(?:isra|constprop|part|cold)\b.*")
_SYSCALL = "__arm64_sys_"
# The longest head of a definition, in characters.
_HEAD = 2000


def find_definitions(
    functions: Collection[str], kernel: Kernel, source: KernelSource
) -> Mapping[str, str]:
    """Return FILE:LINE of functions, by name, in the source of `kernel`.

    A function that the source defines twice, or by a macro, has no place.
    """
    tree = source.tree()
    named = {name: _MADE.sub("", name) for name in functions}
    places: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory(prefix="firsttouch-sources-") as scratch:
        changed = Path(scratch)
        copy_changed(kernel.patches, tree, source.version, changed)
        for folders in _FOLDERS:
            left = {plain for plain in named.values() if plain not in places}
            for root in (changed, tree):
                for plain, place in _search(left, root, folders):
                    if root == changed or not (changed / place.partition(":")[0]).exists():
                        places.setdefault(plain, set()).add(place)
    only = {name: _only(places.get(plain, set())) for name, plain in named.items()}
    return {name: place for name, place in only.items() if place}


def _only(places: Collection[str]) -> str:
    """Return the one place of a function; empty if there are several, or none."""
    # A header has a second one, for configurations without the first.
    sources = [place for place in places if ".h:" not in place] or list(places)
    return sources[0] if len(sources) == 1 else ""


def _search(names: Collection[str], root: Path, folders: Collection[str]) -> list[tuple[str, str]]:
    """Return each name that is defined below `folders` of `root`, with FILE:LINE."""
    there = [folder for folder in folders if (root / folder).is_dir()]
    if not names or not there:
        return []
    # Fixed strings are found fast; what else is on their line is looked at here.
    words = [word for name in names for word in ("-e", _words(name))]
    done = subprocess.run(
        ["grep", "-rnF", *_FILES, *words, "--", *there],
        cwd=root, env={**os.environ, "LC_ALL": "C"},
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    definitions = []
    for line in done.stdout.splitlines():
        file, number, text = line.split(":", 2)
        for name in names:
            if re.match(_head(name), text) and _defines(root / file, int(number)):
                definitions.append((name, f"{file}:{number}"))
    return definitions


def _words(name: str) -> str:
    return f"({name.removeprefix(_SYSCALL)}" if name.startswith(_SYSCALL) else f"{name}("


def _head(name: str) -> str:
    """Return the expression for the start of a definition, in the first column."""
    if name.startswith(_SYSCALL):
        return rf"SYSCALL_DEFINE[0-6]\({name.removeprefix(_SYSCALL)}\b"
    return rf"(?:[A-Za-z_][\w \t*()]*[ \t*])?{re.escape(name)}\("


def _defines(file: Path, line: int) -> bool:
    """Tell whether a body follows what is at `line`: else it only declares, or calls."""
    text = "\n".join(file.read_text(errors="replace").split("\n")[line - 1 :])
    end = re.search(r"[;{]", text[:_HEAD])
    return bool(end and end[0] == "{")
