# SPDX-License-Identifier: GPL-2.0
"""What other rules of fault-ahead would save, simulated over recordings of programs.

A rule is that of linux/mm/fault_ahead.c with another number of streams, of pages that a
write in order earns, or of pages in the largest folio.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from docs.evidence.draw.packed import pack, unpack
from docs.evidence.draw.programs import program_root, record_script
from firsttouch.catalog.experiments import Packages
from firsttouch.errors import HostError
from firsttouch.finder.doubles import find
from firsttouch.finder.records import open_recording
from firsttouch.finder.worlds import Ahead, World
from firsttouch.output.markdown import markdown_table
from firsttouch.progress import Reporter
from firsttouch.typed import read

STREAMS = "streams"
_KERNEL = "the kernel's: 3 streams, 4 pages, 64 KiB"


def _rule(**of: int) -> type[World]:
    return type("Rule", (Ahead,), of)


# By what the table says of them.
RULES: Mapping[str, type[World]] = {
    _KERNEL: Ahead,
    **{f"{n} stream{'s' * (n > 1)}": _rule(streams=n) for n in (1, 2, 4, 8)},
    **{f"{n} page{'s' * (n > 1)} for a page in order": _rule(earned=n) for n in (1, 2, 3, 8, 15)},
    **{f"folios of up to {4 << n} KiB": _rule(largest=n) for n in (2, 3, 5)},
}


@dataclass(frozen=True)
class Simulated:
    """A program: all its faults, and by rule those that are saved, and pages too many at a time."""

    name: str
    faults: int
    saved: Mapping[str, int]
    spare: Mapping[str, int]


def simulate(
    packages: Packages, scripts: Mapping[str, str], reporter: Reporter
) -> Iterator[Simulated]:
    """Yield each script with what the rules would save of its faults here, without huge pages.

    Raises HostError as `programs.program_root` and `record_script`, or if faults were lost.
    """
    with program_root(packages, reporter) as root, tempfile.TemporaryDirectory() as scratch:
        for name, script in scripts.items():
            reporter.say(f"Tracing {name}")
            data = Path(scratch, name)
            record_script(script, root, data, reporter)
            recording = open_recording(data)
            totals = find(recording, root, worlds=RULES)
            if recording.ending is None or recording.ending.faults != recording.ending.samples:
                raise HostError(f"{name}: faults were lost: run it again.")
            yield Simulated(
                name,
                recording.ending.faults,
                {rule: totals.outcomes[rule].saved for rule in RULES},
                {rule: totals.outcomes[rule].most for rule in RULES},
            )
            data.unlink()


def keep_simulated(file: Path, programs: Iterable[Simulated]) -> None:
    """Write programs, packed."""
    pack(file, map(asdict, programs))


def read_simulated(file: Path) -> list[Simulated]:
    """Return the programs in a file of `keep_simulated`; UserError if it cannot be read."""
    return [read(entry, Simulated) for entry in unpack(file)]


def draw_simulated(programs: list[Simulated]) -> str:
    """Return the table of the rules over all programs."""
    faults = sum(program.faults for program in programs)
    saved, spare = Counter[str](), Counter[str]()
    for program in programs:
        saved.update(program.saved)
        spare.update(program.spare)
    heads = ["rule", "faults saved", "of all", "than the kernel's", "pages too many at a time"]
    lines = [
        [
            rule,
            f"{saved[rule]:,}",
            f"{100 * saved[rule] / faults:.1f} %",
            f"{saved[rule] - saved[_KERNEL]:+,}",
            f"{spare[rule]:,}",
        ]
        for rule in RULES
    ]
    table = markdown_table(heads, range(1, len(heads)), lines)
    origin = (
        f"- {len(programs)} programs of Debian 13 with {faults:,} faults in all, recorded on an "
        "x86-64 host without huge pages; their scripts are in `experiments/doubles.toml`."
    )
    return "".join(f"{line}\n" for line in ["", "", *table, "", origin, ""])
