# SPDX-License-Identifier: GPL-2.0
"""The file that `make evidence TRACE=NAME` keeps: NAME.json.xz, with a program in each line."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.tables import Table, parse_json

_PROGRAMS, _PRESET = "programs", 9


def traces_file(folder: Path, name: str) -> Path:
    """Return the file of what was traced under a name."""
    return folder / f"{name}.json.xz"


def pack(file: Path, programs: Iterable[Mapping[str, object]]) -> None:
    """Write programs; the same give the same bytes."""
    lines = ",\n".join(map(json.dumps, programs))
    text = f'{{"{_PROGRAMS}": [\n{lines}\n]}}\n'
    write_atomically(file, lzma.compress(text.encode(), preset=_PRESET))


def unpack(file: Path) -> list[Table]:
    """Return the programs in a file of `pack`; UserError if it cannot be read."""
    try:
        text = lzma.decompress(file.read_bytes()).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError):
        name = file.name.partition(".")[0]
        raise UserError(f"{file}: cannot be read: run `make evidence TRACE={name}`.") from None
    return parse_json(text, file).tables(_PROGRAMS)
