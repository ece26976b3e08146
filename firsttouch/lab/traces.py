# SPDX-License-Identifier: GPL-2.0
"""Recordings of page faults that a guest printed, and the traces found in them.

A recording has a megabyte or more. The outcome of a guest has it as it was
printed. A result has the trace instead: all counts and sites, not each fault.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

from firsttouch import trace
from firsttouch.errors import GuestError, UserError
from firsttouch.files import digest_files
from firsttouch.lab.results import Result
from firsttouch.tables import Fields, Json, json_object
from firsttouch.trace.records import open_recording
from firsttouch.trace.sites import Trace, parse_trace, trace_document

_RECORDING, _TRACE = "recording", "trace"


@functools.cache
def trace_digest() -> str:
    """Return the digest of the code that decides what is found in a recording."""
    folder = Path(trace.__path__[0])
    return digest_files(folder, folder.glob("*.py"))


def with_traces(outcome: Fields, root: Path) -> dict[str, Json]:
    """Return an outcome that has what is found in each recording in its place.

    `root` has the files of the recorded programs. Raises GuestError if a
    recording is not whole, or its program failed.
    """
    commands: list[Json] = [
        {
            "lines": [
                _traced(Fields(outcome.file, line), root) if _RECORDING in line else line
                for line in command.objects("lines")
            ],
            **command.rest(),
        }
        for command in outcome.tables("commands")
    ]
    return {"commands": commands, **outcome.rest()}


def _traced(line: Fields, root: Path) -> Mapping[str, Json]:
    # The libraries that they use take longer to import than all that reads a result.
    from firsttouch.trace.doubles import find
    from firsttouch.trace.reading import summarize
    from firsttouch.trace.symbols import Symbols

    with tempfile.TemporaryDirectory(prefix="firsttouch-recording-") as scratch:
        file = Path(scratch, "data")
        try:
            file.write_bytes(bytes.fromhex(line.take(_RECORDING, str)))
            recording = open_recording(file)
            faults = find(recording, root, copies=True)
        except (ValueError, UserError) as error:
            raise GuestError(f"a guest recorded no faults: {error}") from None
        trace = summarize(recording, faults, Symbols(root, copies=True))
    if trace.status or trace.lost or not trace.complete:
        raise GuestError(
            f"a recorded program ended with status {trace.status}, and {trace.lost:,} faults "
            "were lost"
        )
    return {_TRACE: json_object(trace_document(trace, ()))}


def trace_of(result: Result) -> Trace | None:
    """Return the trace that a result has; None if it has none, UserError if it is broken."""
    for line in result.lines:
        if _TRACE in line:
            return parse_trace(Fields(f"the result of {result.cell.title}", line).table(_TRACE))
    return None
