# SPDX-License-Identifier: GPL-2.0
"""Results: the raw output of cells. results.jsonl has one line per cell, whatever its timing.

A result holds only what the program printed and what the PMU counted. Figures
are derived on reading (analysis/measurement.py). `lab`, `lab --time` and `survey` each
replace their own results in a directory's file, and leave the others.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.lab.cells import Cell, Timing
from firsttouch.tables import Fields, Json, json_object, read
from firsttouch.vm.guest import Counts
from firsttouch.vm.host import Condition, Host

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 2
FILE_NAME = "results.jsonl"
# How packed files begin: docs/evidence/*.jsonl.xz, and what others send.
_PACKED: Mapping[bytes, Callable[..., TextIO]] = {b"\xfd7zXZ": lzma.open, b"\x1f\x8b": gzip.open}
# In a line, what was found in a recording of page faults.
TRACE = "trace"
_TIMING = re.compile('"timing": "(kvm|host)"')


@dataclass(frozen=True)
class Provenance:
    """What decided a result: versions of tools, and the SHA-256 of each file.

    `boot` is the kernel's command line, `commands` are what the guest ran, `command` is the shell
    command that runs only this cell. `tried` says what an arm of `firsttouch try` changes. Times
    have the `host` that they were measured on, and what may have `disturbed` them.
    """

    kernel_version: str
    qemu: str
    compiler: str
    digests: Mapping[str, str]
    boot: str
    commands: tuple[str, ...]
    command: str
    tried: str = ""
    host: Host | None = None
    disturbed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Boot:
    """A boot of a timed guest: its round and seed of KASLR, and the host at its end."""

    round: int
    kaslr_seed: str
    host: Condition


@dataclass(frozen=True)
class Result:
    """The raw output of a cell: the JSON lines that its command printed, and the PMU's counts.

    `key` is the digest of everything that decided it. Where a cell runs many times, as times do,
    each line has the number of its ``round``; `boots` has the guests of KVM.
    """

    key: str
    cell: Cell
    lines: tuple[Mapping[str, Json], ...]
    counts: Counts | None
    provenance: Provenance
    quick: bool = False
    boots: tuple[Boot, ...] = ()

    def line(self) -> str:
        """Return the line of results.jsonl."""
        return json.dumps({"schema": SCHEMA, **_document(self)}, default=_document) + "\n"


def _document(value: DataclassInstance) -> Mapping[str, object]:
    """Return the fields of a dataclass that differ from their default."""
    if isinstance(value, Cell):
        return value.document()
    # Not asdict(), which would copy lines and regions: they have megabytes.
    values = [(field, getattr(value, field.name)) for field in fields(value)]
    return {field.name: has for field, has in values if has != field.default}


def read_results(place: Path, timing: Timing = "icount") -> tuple[Result, ...]:
    """Return the results of one timing in a directory's results.jsonl, or a file of results.

    A file may be packed by xz or gzip. The last line for a cell wins. Raises UserError if there
    is no such file, it has another schema, or a line that is cut off or no result.
    """
    file = file_of_results(place)
    results: dict[str, Result] = {}
    for number, line in enumerate(_lines(file), 1):
        if _timing_of(line) != timing:
            continue
        document = json_object(line)
        if document is None:
            raise UserError(f"{file}: line {number} is cut off or no result: measure again.")
        if (schema := document.get("schema", SCHEMA)) != SCHEMA:
            raise UserError(
                f"{file} has schema {schema}, but this firsttouch reads schema {SCHEMA}: measure "
                "again with another --out."
            )
        result = read(Fields(f"{file}: line {number}", document), Result, strict=False)
        results[result.cell.identity] = result
    return tuple(results.values())


def file_of_results(place: Path) -> Path:
    """Return the file of results that `place` is, or that it has as a directory."""
    return place / FILE_NAME if place.is_dir() else place


def timings_in(place: Path) -> set[Timing]:
    """Return the timings of the results in a directory or file, none if it has no results."""
    file = file_of_results(place)
    return set(map(_timing_of, _lines(file))) if file.is_file() else set()


def _lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file of results; UserError if it cannot be read."""
    try:
        with file.open("rb") as data:
            magic = data.read(6)
        opened = next((each for begin, each in _PACKED.items() if magic.startswith(begin)), open)
        with opened(file, "rt", errors="replace") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise UserError(
            f"{file} cannot be read ({getattr(error, 'strerror', '') or error}): give the "
            "directory of a run's --out, or a whole file of results."
        ) from None


def _timing_of(line: str) -> Timing:
    """Return the timing of a line's cell without parsing the line, which may have megabytes."""
    match = _TIMING.search(line.partition('"lines": ')[0])
    return "icount" if match is None else "kvm" if match[1] == "kvm" else "host"


def write_results(directory: Path, results: Iterable[Result], timing: Timing = "icount") -> None:
    """Replace the results of one timing in `directory`/results.jsonl by these."""
    file = directory / FILE_NAME
    others = [
        line
        for line in (_lines(file) if file.exists() else ())
        if line.endswith("\n") and _timing_of(line) != timing
    ]
    write_atomically(file, "".join([*(result.line() for result in results), *others]))


def pack_results(file: Path, results: Iterable[Result]) -> None:
    """Write results to `file`, packed by xz: the same results give the same bytes."""
    text = "".join(result.line() for result in results)
    write_atomically(file, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
