# SPDX-License-Identifier: GPL-2.0
"""results.jsonl: one line per cell, added to as cells end, never half of one."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.cache import write_atomically
from firsttouch.cells import SCHEMA
from firsttouch.errors import UserError

Result = dict[str, Any]
_KEYS = {"schema", "cell", "release", "arm", "machine", "experiment", "params", "metrics",
         "unavailable", "provenance"}  # fmt: skip
_NAMES = ("cell", "release", "arm", "machine", "experiment")


@dataclass(frozen=True)
class Reading:
    """What a results file holds: results, lines that are none, lines of other schemas."""

    results: list[Result]
    broken: int
    foreign: dict[str, int]

    def refuse_foreign(self, file: Path) -> None:
        """Raise UserError if there are lines of another schema."""
        if self.foreign:
            raise UserError(
                f"{file} is of schema {', '.join(self.foreign)}, and this firsttouch reads schema "
                f"{SCHEMA}: read it with the version that wrote it."
            )


def read_lines(file: Path) -> Reading:
    """Return what is in `file`; a later line for the same cell replaces an earlier one.

    Raises UserError if the file cannot be read.
    """
    found: dict[str, Result] = {}
    broken = 0
    foreign: dict[str, int] = {}
    try:
        text = file.read_text(errors="replace")
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror}): give a directory that "
            "`firsttouch lab --out` has filled."
        ) from None
    lines = text.split("\n")
    # What follows the last newline was being written when its writer died.
    unfinished = lines.pop()
    broken += bool(unfinished)
    for line in lines:
        try:
            result = json.loads(line)
        except ValueError:
            broken += 1
            continue
        if isinstance(result, dict) and result.get("schema", SCHEMA) != SCHEMA:
            version = str(result["schema"])
            foreign[version] = foreign.get(version, 0) + 1
        elif _is_result(result):
            found[result["cell"]] = result
        else:
            broken += 1
    return Reading(list(found.values()), broken, foreign)


def _is_result(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and line.keys() >= _KEYS
        and all(isinstance(line[key], str) for key in _NAMES)
        and all(isinstance(line[key], dict) for key in ("params", "metrics", "provenance"))
        and all(isinstance(value, (str, int)) for value in line["params"].values())
        and all(isinstance(value, (int, float)) for value in line["metrics"].values())
    )


def read_results(file: Path) -> tuple[list[Result], int]:
    """Return the results in `file`, and how many of its lines are not whole.

    Raises UserError if the file is of another schema version or cannot be read.
    """
    reading = read_lines(file)
    reading.refuse_foreign(file)
    return reading.results, reading.broken


class ResultStore:
    """The results of one output directory; the caller holds the directory's lock."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "results.jsonl"
        self._lock = threading.Lock()
        self.broken = 0
        self._results: dict[str, Result] = {}
        if self.file.exists():
            results, self.broken = read_results(self.file)
            self._results = {result["cell"]: result for result in results}
            if self.broken:
                # A line of its own must begin where the half line ends.
                write_atomically(self.file, "".join(_line(result) for result in results))

    def get(self, key: str) -> Result | None:
        """Return the result of the cell named `key`, if it has one."""
        return self._results.get(key)

    def add(self, result: Result) -> None:
        """Add a result; it is on the disk when this returns."""
        with self._lock:
            with self.file.open("ab") as file:
                file.write(_line(result).encode())
                file.flush()
                os.fsync(file.fileno())
            self._results[result["cell"]] = result


def _line(result: Result) -> str:
    return json.dumps(result, sort_keys=True) + "\n"
