# SPDX-License-Identifier: GPL-2.0
"""What reads files that may be damaged, for Atheris: python -m tests.fuzz.targets TARGET CORPUS.

Each target takes bytes. What it may raise is UserError, a sentence; all else ends the run.
Options of libFuzzer follow.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["firsttouch", "elftools"]):
    from firsttouch.errors import UserError
    from firsttouch.trace.mapped_files import MappedFiles
    from firsttouch.trace.page import render_trace
    from firsttouch.trace.reading import read_recording
    from firsttouch.trace.sites import trace_document
    from firsttouch.trace.spaces import Place
    from firsttouch.trace.symbols import Symbols

_FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm"))
_PLACES = (0, 64, 0x1000, 0x1040, 0x1139, 0x1160, 0x1200)


def fuzz_recording(data: bytes) -> None:
    """Read a whole trace.data, and draw what is in it."""
    file = _FOLDER / "trace.data"
    file.write_bytes(data)
    try:
        read = read_recording(file, _FOLDER)
        trace_document(read.trace, read.sentences)
        render_trace(read.trace, read.totals, read.symbols, read.sentences)
    except UserError:
        pass


def fuzz_elf(data: bytes) -> None:
    """Name places in an ELF file."""
    (_FOLDER / "program").write_bytes(data)
    symbols = Symbols(MappedFiles(_FOLDER))
    for offset in _PLACES:
        symbols.function(Place("/program", offset, 0))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "recording": fuzz_recording,
    "elf": fuzz_elf,
}

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
