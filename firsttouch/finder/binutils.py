# SPDX-License-Identifier: GPL-2.0
"""What binutils tells of code: source lines of addresses, and names of C++ and Rust decoded."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
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
    if not any(map(shutil.which, _LINES)):
        raise LinesError(f"has source lines, which {_LINES[0]} reads: install binutils")
    answers = _ask(_LINES, ["-e", str(file)], list(map(hex, addresses)))
    if answers is None:
        raise LinesError(f"has debug information that {_LINES[0]} cannot read")
    matches = map(_LINE.fullmatch, answers)
    return [(match[1], int(match[2])) if match else ("", 0) for match in matches]


def demangled(names: Sequence[str]) -> dict[str, str]:
    """Return the names without types of arguments; none if no tool is there."""
    return dict(zip(names, _ask(_NAMES, ["-p"], names) or (), strict=False))


def _ask(tools: Sequence[str], options: Sequence[str], lines: Sequence[str]) -> list[str] | None:
    """Return the answers to `lines` of the first of `tools` that is here; None if it fails."""
    tool = next(filter(None, map(shutil.which, tools)), None)
    if tool is None or not lines:
        return None
    try:
        done = subprocess.run(
            [tool, *options], input="".join(f"{line}\n" for line in lines), capture_output=True,
            encoding="utf-8", errors="replace", timeout=_PATIENCE, check=True,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    answers = done.stdout.split("\n")[:-1]
    return answers if len(answers) == len(lines) else None
