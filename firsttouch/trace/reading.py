# SPDX-License-Identifier: GPL-2.0
"""From a recorder's file to what people see: sentences, trace.json, trace.html."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from rich.console import Console

from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.trace.doubles import find
from firsttouch.trace.page import FILE_NAME as PAGE_NAME
from firsttouch.trace.page import render_trace
from firsttouch.trace.prices import price
from firsttouch.trace.records import open_recording
from firsttouch.trace.sentences import conclude, print_trace
from firsttouch.trace.sites import FILE_NAME, Trace, read_trace, trace_document
from firsttouch.trace.summary import summarize
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import Totals


@dataclass(frozen=True)
class Reading:
    """A trace with its faults and its sentences."""

    trace: Trace
    totals: Totals
    symbols: Symbols
    sentences: tuple[str, ...]

    def print(self, console: Console, directory: Path) -> None:
        """Print the answer; `directory` has the page."""
        more = f"More: {directory / PAGE_NAME} (`firsttouch report {shlex.quote(str(directory))}`)"
        print_trace(self.trace, console, more)


def read_recording(
    file: Path,
    root: Path = Path("/"),
    processor: str = "",
    numbers: Mapping[int, int] = MappingProxyType({}),
) -> Reading:
    """Return what a recorder's file shows; `root` is where the program's files are.

    `numbers` are those by which processes of containers know themselves.
    Prices are from the survey
    and the laboratory's results beside the file. `processor` is the CPU that it was
    recorded on; without, a trace.json beside the file tells.
    Raises UserError with the reason if there is no trace in it.
    """
    recording = open_recording(file)
    totals = find(recording, root)
    symbols = Symbols(root, numbers)
    trace = summarize(recording, totals, symbols)
    trace = replace(trace, processor=processor or _processor(file.parent / FILE_NAME))
    trace = price(trace, file.parent)
    return Reading(trace, totals, symbols, tuple(conclude(trace)))


def _processor(file: Path) -> str:
    """Return the CPU that a trace.json names; "" if there is none."""
    try:
        return read_trace(file).processor if file.is_file() else ""
    except UserError:
        return ""


def write_results(reading: Reading, directory: Path) -> str:
    """Write trace.json and trace.html into `directory`; return the text of the first."""
    text = trace_document(reading.trace, reading.sentences)
    write_atomically(directory / FILE_NAME, text)
    page = render_trace(reading.trace, reading.totals, reading.symbols, reading.sentences)
    write_atomically(directory / PAGE_NAME, page)
    return text
