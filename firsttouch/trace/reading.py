# SPDX-License-Identifier: GPL-2.0
"""From a recorder's file to what people see: sentences, trace.json, trace.html."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from firsttouch.files import write_atomically
from firsttouch.finder.debug_files import Servers
from firsttouch.finder.document import FILE_NAME, trace_document
from firsttouch.finder.doubles import find
from firsttouch.finder.found import Found
from firsttouch.finder.records import open_recording
from firsttouch.finder.sites import Trace, summarize
from firsttouch.finder.symbols import Symbols
from firsttouch.trace.page import FILE_NAME as PAGE_NAME
from firsttouch.trace.page import render_trace
from firsttouch.trace.prices import price
from firsttouch.trace.printing import print_trace
from firsttouch.trace.sentences import conclude


@dataclass(frozen=True)
class Reading:
    """A trace with its faults and its sentences."""

    trace: Trace
    found: Found
    symbols: Symbols
    sentences: tuple[str, ...]

    def print(self, console: Console) -> None:
        """Print the answer."""
        print_trace(self.trace, self.sentences, console)


def read_recording(file: Path, root: Path = Path("/"), servers: Servers | None = None) -> Reading:
    """Return what a recorder's file shows; `root` is where the program's files are.

    `servers` are asked for debug information that is not here.
    Prices are from the survey and the laboratory's results beside the file.
    Raises UserError with the reason if there is no trace in it.
    """
    recording = open_recording(file)
    found = find(recording, root)
    symbols = Symbols(root, servers=servers)
    trace = summarize(recording, found, symbols)
    trace = replace(trace, prices=price(trace, file.parent))
    return Reading(trace, found, symbols, tuple(conclude(trace)))


def write_results(reading: Reading, directory: Path) -> str:
    """Write trace.json and trace.html into `directory`; return the text of the first."""
    text = trace_document(reading.trace, reading.sentences)
    write_atomically(directory / FILE_NAME, text)
    page = render_trace(reading.trace, reading.found, reading.symbols, reading.sentences)
    write_atomically(directory / PAGE_NAME, page)
    return text
