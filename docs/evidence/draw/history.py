# SPDX-License-Identifier: GPL-2.0
"""history.toml: changes whose outcome is known, each tried again as a small patch of ours."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from docs.evidence.draw.sets import EVIDENCE
from firsttouch.analysis.figures import change_percent
from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.quantities import format_change, format_count
from firsttouch.tables import Fields, dump_json, json_object, read, read_toml
from firsttouch.views import tables

HISTORY, COUNTED = "history.toml", "history-counts.json"


@dataclass(frozen=True)
class Shown:
    """A count of a cell that shows a change, or that ought not to move; `name` is the cell's."""

    name: str
    experiment: str
    count: str
    unit: str
    where: Mapping[str, str | int]


@dataclass(frozen=True)
class Change:
    """A change, what was said of it and where, the cells that show it, and what came of it.

    docs/evidence/history/NAME.patch does it, or undoes it, on `release`;
    `options` are those of `firsttouch try` that select the cells. `agreed` says
    whether what was counted is what was said, and `why`.
    """

    name: str
    title: str
    release: str
    claimed: str
    source: str
    options: tuple[str, ...]
    shows: tuple[Shown, ...]
    agreed: Literal["yes", "no", "not judged"]
    why: str

    def patch(self) -> Path:
        return EVIDENCE / "history" / f"{self.name}.patch"


@dataclass(frozen=True)
class Counted:
    """A count of a whole cell on stock and with the patch."""

    stock: float
    arm: float


def load_history() -> list[Change]:
    top = read_toml(EVIDENCE / HISTORY)
    changes = [read(table, Change) for table in top.tables("change")]
    top.done()
    return changes


def read_counted() -> dict[str, list[Counted]]:
    """Return what was counted of each change, in the order of what it `shows`."""
    table = Fields(COUNTED, json_object((EVIDENCE / COUNTED).read_text("utf-8")) or {})
    return {
        change.name: [read(entry, Counted) for entry in table.tables(change.name)]
        for change in load_history()
    }


def count_again(change: Change, out: Path) -> list[Counted]:
    """Try a change, and return what was counted; UserError if a cell is not there."""
    words = ["try", str(change.patch()), "--release", change.release, *change.options]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = firsttouch([*words, "--json", "--out", str(out)])
    if status:
        raise UserError(f"firsttouch {' '.join(words)} ended with status {status}: see above.")
    document = Fields(f"the answer about {change.name}", json_object(printed.getvalue()) or {})
    (arm,) = document.tables("arms")
    counted = []
    for shown in change.shows:
        of = [
            cell for cell in arm.tables("cells")
            if cell.take("experiment", str) == shown.experiment
            and shown.where.items() <= cell.table("params").scalars().items()
        ]  # fmt: skip
        if not of:
            raise UserError(f"{HISTORY}: no cell is {shown.name}: correct its experiment, where.")
        counts = of[0].table("counts").table(shown.count)
        counted.append(read(counts, Counted, strict=False))
    return counted


def draw() -> str:
    counted = read_counted()
    lines = []
    for change in load_history():
        said = [
            f"{shown.unit} of `{shown.name}`: {format_count(pair.stock)} to "
            f"{format_count(pair.arm)} ({format_change(change_percent(pair.stock, pair.arm))})"
            for shown, pair in zip(change.shows, counted[change.name], strict=True)
        ]
        title = f"[{change.title}](history/{change.name}.patch)"
        lines.append([title, change.source, "; ".join(said), change.agreed])
    head = ("change", "source", "counted", "agrees")
    return "".join(f"{line}\n" for line in tables.markdown(tables.Table("", head, lines, names=4)))


def measure() -> None:
    """Try all changes again, and store what was counted."""
    counted = {
        change.name: [asdict(n) for n in count_again(change, Path("out/history") / change.name)]
        for change in load_history()
    }
    write_atomically(EVIDENCE / COUNTED, dump_json(counted))
