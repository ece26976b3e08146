# SPDX-License-Identifier: GPL-2.0
"""Recordings of page faults that a guest printed, and the traces found in them.

A recording has a megabyte or more. A result keeps the trace instead: all
counts and sites, not each fault.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from firsttouch import finder
from firsttouch.errors import GuestError, UserError
from firsttouch.files import digest_files
from firsttouch.finder.document import parse_trace, trace_document
from firsttouch.finder.doubles import find
from firsttouch.finder.records import open_recording
from firsttouch.finder.sites import Trace, summarize
from firsttouch.finder.symbols import Symbols
from firsttouch.finder.vain import Page, Watch
from firsttouch.lab.results import Result
from firsttouch.tables import Json, Table, json_object
from firsttouch.vm.supervision import log_end

_RECORDING, _TRACE = "recording", "trace"


@functools.cache
def finder_digest() -> str:
    """Return the digest of the code that decides what is found in a recording."""
    folder = Path(finder.__path__[0])
    return digest_files(folder, folder.glob("*.py"))


def found_in(
    lines: Sequence[Mapping[str, Json]],
    root: Path,
    log: Path,
    watches: Iterator[Mapping[str, Json]],
) -> list[Mapping[str, Json]]:
    """Return a command's lines, with what is found in a recording in its place.

    `root` has the files of the recorded programs. `watches` are the PMU's, one
    for each recording, or none. Raises GuestError, with the end of `log`, if the
    recording is not whole, or its program failed.
    """
    return [
        _found(line, root, log, next(watches, None)) if _RECORDING in line else line
        for line in lines
    ]


def _found(
    line: Mapping[str, Json], root: Path, log: Path, watch: Mapping[str, Json] | None
) -> Mapping[str, Json]:
    watched = _watch(Table(log, watch)) if watch else None
    with tempfile.TemporaryDirectory(prefix="firsttouch-recording-") as scratch:
        file = Path(scratch, "data")
        try:
            file.write_bytes(bytes.fromhex(Table(log, line).take(_RECORDING, str)))
            recording = open_recording(file)
        except (ValueError, UserError) as error:
            raise GuestError(f"a guest recorded no faults: {error}", log_end(log)) from None
        trace = summarize(recording, find(recording, root), Symbols(root, root / "tmp"), watched)
    if trace.status or trace.lost or not trace.complete:
        raise GuestError(
            f"a recorded program ended with status {trace.status}, and {trace.lost:,} faults "
            "were lost",
            log_end(log),
        )
    return {_TRACE: json_object(trace_document(trace, ()))}


def _watch(table: Table) -> Watch:
    return Watch(
        tuple(Page(*row) for row in table.take("pages", list)),
        table.take("dc_zva_unplaced", int),
    )


def trace_of(result: Result) -> Trace | None:
    """Return the trace that a result has; None if it has none, UserError if it is broken."""
    for line in result.lines:
        if _TRACE in line:
            return parse_trace(Table(f"the result of {result.cell.title}", line).table(_TRACE))
    return None
