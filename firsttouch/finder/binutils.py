# SPDX-License-Identifier: GPL-2.0
"""What binutils tells of code: source lines of addresses, and names of C++ and Rust decoded."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

# Each with LLVM's, for hosts without binutils.
_LINES, _NAMES = ("addr2line", "llvm-addr2line"), ("c++filt", "llvm-cxxfilt")
# An answer of addr2line; a discriminator may follow the line's number.
_LINE = re.compile(r"(.+):([1-9]\d*)(?: .*)?")
# Seconds. What reads a damaged file may have no end.
_PATIENCE = 300


class LinesError(Exception):
    """Why the lines of a file are not known, as the end of a sentence that begins with it."""


def source_lines(file: Path, addresses: Sequence[int]) -> list[tuple[str, int]]:
    """Return the file and the line of each address in `file`, which has DWARF.

    An address without a line gets "" and 0. Raises LinesError if nothing here reads the file.
    """
    tool = _first_of(_LINES)
    if tool is None:
        raise LinesError(f"has source lines, which {_LINES[0]} reads: install binutils")
    answers = _ask([tool, "-e", str(file)], list(map(hex, addresses)))
    if answers is None:
        raise LinesError(f"has debug information that {_LINES[0]} cannot read")
    matches = map(_LINE.fullmatch, answers)
    return [(match[1], int(match[2])) if match else ("", 0) for match in matches]


def demangled(names: Sequence[str]) -> dict[str, str]:
    """Return the names without types of arguments; none if no tool is there."""
    tool = _first_of(_NAMES)
    answers = _ask([tool, "-p"], names) if tool and names else None
    return dict(zip(names, answers or (), strict=False))


def _first_of(tools: Iterable[str]) -> str | None:
    """Return the path of the first of `tools` that is on PATH."""
    return next(filter(None, map(shutil.which, tools)), None)


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
