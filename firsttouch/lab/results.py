# SPDX-License-Identifier: GPL-2.0
"""Results: the raw output of cells. results.jsonl has one line per cell, whatever its timing.

A result holds only what the program printed and what the PMU counted. Figures
are derived on reading (analysis/measurement.py). `lab`, `lab --time` and `survey` each
replace their own results in a directory's file, and leave the others.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.lab.cells import Cell, Timing
from firsttouch.tables import Fields, Json, json_object, read
from firsttouch.vm.host import Condition, Host

SCHEMA = 2
FILE_NAME = "results.jsonl"
# How the name of a file ends whose results are packed: docs/evidence/*.jsonl.xz.
PACKED = ".xz"
_TIMING = re.compile('"timing": "(kvm|host)"')


@dataclass(frozen=True)
class Counts:
    """What the PMU counted for one cell, as the plugin writes it.

    `regions` are those that the cell's lines name, in order. `not_modelled`
    names the kinds of access that QEMU does not show to plugins.
    """

    regions: tuple[Mapping[str, Json], ...]
    not_modelled: tuple[str, ...]


@dataclass(frozen=True)
class Provenance:
    """What decided a result: versions of tools, and the SHA-256 of each file.

    `digests` has those of the kernel's source, its image, the initial RAM disk,
    the programs in it, the device tree, the disk, the plugin and QEMU. `boot` is
    the kernel's command line. `commands` are what the guest ran. `command` is
    the shell command that runs only this cell. `tried` says what an arm of
    `firsttouch try` changes; it is empty for other arms. Times have the `host` that
    they were measured on, and a sentence for each thing that may have `disturbed` them.
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
    """A boot of a timed guest: its round, seed of KASLR and seconds, and the host at its end.

    `resumed` tells that the run was interrupted before this round.
    """

    round: int
    kaslr_seed: str
    seconds: float
    host: Condition
    resumed: bool = False


@dataclass(frozen=True)
class Result:
    """The raw output of a cell: the JSON lines that its command printed, and the PMU's counts.

    `key` is the digest of everything that decided it. `quick` tells whether
    --quick asked for it, which does not change how it was measured. Where a cell runs
    many times, as times do, each line has the number of its ``round``; `boots` has the
    guests of KVM.
    """

    key: str
    cell: Cell
    lines: tuple[Mapping[str, Json], ...]
    counts: Counts | None
    provenance: Provenance
    quick: bool = False
    boots: tuple[Boot, ...] = ()

    def document(self) -> dict[str, Json]:
        made = asdict(self.provenance)
        for name in ("tried", "host", "disturbed"):
            if not made[name]:
                del made[name]
        return {
            "schema": SCHEMA,
            "key": self.key,
            "cell": self.cell.document(),
            "lines": list(self.lines),
            "counts": None if self.counts is None else {
                "regions": list(self.counts.regions),
                "not_modelled": list(self.counts.not_modelled),
            },
            "provenance": {
                **made, "commands": list(self.provenance.commands),
            },
            **({"quick": True} if self.quick else {}),
            **({"boots": [asdict(boot) for boot in self.boots]} if self.boots else {}),
        }  # fmt: skip


def read_result(document: Mapping[str, Json], source: Path | str) -> Result:
    table = Fields(source, document)
    counts = table.table("counts") if document.get("counts") is not None else None
    return Result(
        table.take("key", str),
        # It also has the number of CPUs, and some of before more.
        read(table.table("cell"), Cell, strict=False),
        table.objects("lines"),
        Counts(counts.objects("regions"), counts.strings("not_modelled")) if counts else None,
        read(table.table("provenance"), Provenance, strict=False),
        table.take("quick", bool, False),
        tuple(read(boot, Boot, strict=False) for boot in table.tables("boots")),
    )


# Results of `lab --time`: the cells of stock, then the same of each other arm.
Times: TypeAlias = tuple[Result, ...]


@dataclass(frozen=True)
class ResultsFile:
    """What a results file holds: results, and the number of lines that are not results."""

    results: tuple[Result, ...]
    broken: int


def read_results(place: Path, timing: Timing = "icount") -> ResultsFile:
    """Return the results of one timing in a directory's results.jsonl, or a file of results.

    A file may be packed by xz. The last line for a cell wins. Raises UserError if there is no
    such file, or it has another schema.
    """
    file = file_of_results(place)
    hint = "give a directory that `firsttouch lab --out` has filled"
    if file != place and not place.is_dir():
        raise UserError(f"{place} is not a directory: {hint}.")
    try:
        packed = file.suffix == PACKED
        data = lzma.decompress(file.read_bytes()) if packed else file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): {hint}.") from None
    except lzma.LZMAError as error:
        raise UserError(f"{file} is not packed by xz ({error}): {hint}.") from None
    text = data.decode(errors="replace")
    results: dict[str, Result] = {}
    lines = text.split("\n")
    # A line without a newline at its end was cut off.
    broken = int(bool(lines.pop()))
    for line in lines:
        if _timing_of(line) != timing:
            continue
        document = json_object(line)
        if document is None:
            broken += 1
            continue
        _check_schema(document, file)
        try:
            result = read_result(document, file)
        except UserError:
            broken += 1
            continue
        results[result.cell.identity] = result
    return ResultsFile(tuple(results.values()), broken)


def read_times(place: Path) -> Times:
    """Return the times in a directory or file of results; UserError if it has none."""
    times = read_results(place, "kvm").results
    if not times:
        raise UserError(
            f"{place} has no times: give a directory that `firsttouch lab --time --out` has filled."
        )
    cells = {len(of_arm) for of_arm in results_by_arm(times).values()}
    boots = {len(result.boots) for result in times}
    if len(cells) > 1 or len(boots) > 1 or any(not r.provenance.host for r in times):
        raise UserError(
            f"{file_of_results(place)} lacks some of its times: measure again, with another --out."
        )
    return times


def results_by_arm(results: Iterable[Result]) -> dict[str, list[Result]]:
    arms: dict[str, list[Result]] = {}
    for result in results:
        arms.setdefault(result.cell.arm, []).append(result)
    return arms


def host_of(times: Times) -> Host:
    host = times[0].provenance.host
    assert host is not None
    return host


def file_of_results(place: Path) -> Path:
    """Return the file of results that `place` is, or that it has as a directory."""
    return place if place.suffix in (PACKED, ".jsonl") else place / FILE_NAME


def timings_in(place: Path) -> set[Timing]:
    """Return the timings of the results in a directory or file, none if it has no results."""
    file = file_of_results(place)
    if not file.is_file():
        return set()
    if file.suffix == PACKED:
        return {"icount"}
    with file.open(errors="replace") as lines:
        return set(map(_timing_of, lines))


def _timing_of(line: str) -> Timing:
    """Return the timing of a line's cell without parsing the line, which may have megabytes."""
    match = _TIMING.search(line.partition('"lines": ')[0])
    return "icount" if match is None else "kvm" if match[1] == "kvm" else "host"


def check_replaceable(directory: Path) -> None:
    """Raise UserError if a directory's results.jsonl has another schema, and so is to stay."""
    file = directory / FILE_NAME
    if file.exists():
        with file.open(errors="replace") as lines:
            _check_schema(json_object(lines.readline()) or {}, file)


def _check_schema(document: Mapping[str, Json], file: Path) -> None:
    if document.get("schema", SCHEMA) != SCHEMA:
        raise UserError(
            f"{file} has schema {document['schema']}, but this firsttouch reads schema "
            f"{SCHEMA}: measure again with `firsttouch lab --out` and another directory, or "
            "read it with the version that wrote it."
        )


def write_results(directory: Path, results: Iterable[Result], timing: Timing = "icount") -> None:
    """Replace the results of one timing in `directory`/results.jsonl by these."""
    file = directory / FILE_NAME
    write_atomically(file, _text(results) + "".join(_others(file, timing)))


def _others(file: Path, timing: Timing) -> Iterator[str]:
    """Yield the whole lines of a file that have another timing."""
    if file.exists():
        with file.open() as lines:
            for line in lines:
                if line.endswith("\n") and _timing_of(line) != timing:
                    yield line


def pack_results(file: Path, results: Iterable[Result]) -> None:
    """Write results to `file`, packed by xz: the same results give the same bytes."""
    write_atomically(file, lzma.compress(_text(results).encode(), preset=9 | lzma.PRESET_EXTREME))


def _text(results: Iterable[Result]) -> str:
    return "".join(json.dumps(result.document()) + "\n" for result in results)
