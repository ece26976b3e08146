# SPDX-License-Identifier: GPL-2.0
"""docs/pictures: figures of the reports of stored results, and of a recorded program."""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path

from docs.evidence.draw.sets import load_sets
from firsttouch.files import REPOSITORY
from firsttouch.trace.page import trace_picture
from firsttouch.trace.reading import Reading, read_recording
from firsttouch.views.html.page import figure_files, flame_graphs

_RECORDINGS = REPOSITORY / "tests/data/trace"
# How the names of the figures begin that are shown of `make lab`.
_SHOWN = ("fault-timeline", "populate")


def draw() -> dict[str, str]:
    """Return the pictures by their files."""
    sets = load_sets()
    figures = figure_files(sets["default"].dataset("6.12"))
    files = {file: text for file, text in figures.items() if file.startswith(_SHOWN)}
    (files["profile.svg"],) = flame_graphs(sets["functions-stores"].dataset("7.3")).values()
    with tempfile.TemporaryDirectory() as folder:
        read = recorded("known", Path(folder))
        files["trace.svg"] = trace_picture(read.trace, read.totals, read.symbols)
    return {f"docs/pictures/{file}": text for file, text in files.items()}


def recorded(name: str, root: Path) -> Reading:
    """Return a recording of tests/data/trace; `root` gets its programs and nothing else."""
    for packed in (*(_RECORDINGS / "programs").iterdir(), _RECORDINGS / f"{name}.data.xz"):
        file = root / "opt/corpus" / packed.stem
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(lzma.decompress(packed.read_bytes()))
    return read_recording(root / f"opt/corpus/{name}.data", root)
