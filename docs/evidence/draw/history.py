# SPDX-License-Identifier: GPL-2.0
"""history.toml: changes whose outcome is known, each tried again as a small patch of ours.

``python -m docs.evidence.draw.history`` tries all, or those that are named, and writes what they
change to history.json.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docs.evidence.draw.declared import EVIDENCE
from firsttouch.analysis.verdicts import change_percent
from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.output.markdown import markdown_table
from firsttouch.quantities import format_change, format_count
from firsttouch.tables import Json, Table, dump_json, json_object, read_toml
from firsttouch.typed import read

HISTORY, COUNTED = "history.toml", "history.json"
_LICENCE = "SPDX-License-Identifier: GPL-2.0"


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

    def patch(self, folder: Path = EVIDENCE) -> Path:
        """Return the file of the patch."""
        return folder / "history" / f"{self.name}.patch"


@dataclass(frozen=True)
class Counted:
    """A count of a whole cell on stock and with the patch."""

    stock: float
    arm: float


def load_history(folder: Path = EVIDENCE) -> list[Change]:
    """Return the changes of `folder`/history.toml; UserError, which names the key, if wrong."""
    top = read_toml(folder / HISTORY)
    changes = [read(table, Change) for table in top.tables("change")]
    top.done()
    return changes


def read_counted(folder: Path = EVIDENCE) -> dict[str, list[Counted]]:
    """Return what was counted of each change, in the order of what it `shows`."""
    file = folder / COUNTED
    table = Table(file, json_object(file.read_text("utf-8")) or {})
    return {
        change.name: [read(entry, Counted) for entry in table.tables(change.name)]
        for change in load_history(folder)
    }


def count_again(change: Change, out: Path) -> list[Counted]:
    """Try a change, and return what was counted; UserError if a cell is not there."""
    words = ["try", str(change.patch()), "--release", change.release, *change.options]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = firsttouch([*words, "--json", "--out", str(out)])
    if status:
        raise UserError(f"firsttouch {' '.join(words)} ended with status {status}: see above.")
    document = Table(f"the answer about {change.name}", json_object(printed.getvalue()) or {})
    (arm,) = document.tables("arms")
    return [_counted(shown, arm.tables("cells")) for shown in change.shows]


def _counted(shown: Shown, cells: Iterable[Table]) -> Counted:
    for cell in cells:
        params = cell.table("params").scalars()
        if (
            cell.take("experiment", str) == shown.experiment
            and shown.where.items() <= params.items()
        ):
            return read(cell.table("counts").table(shown.count), Counted, strict=False)
    raise UserError(f"{HISTORY}: no cell is {shown.name}: correct its experiment and where.")


def draw_history(folder: Path = EVIDENCE) -> str:
    """Return the table of changes: claimed, counted, agreed or not, and why."""
    counted = read_counted(folder)
    lines = []
    for change in load_history(folder):
        said = [
            f"{shown.unit} of `{shown.name}`: {format_count(pair.stock)} to "
            f"{format_count(pair.arm)} ({format_change(change_percent(pair.stock, pair.arm))})"
            for shown, pair in zip(change.shows, counted[change.name], strict=True)
        ]
        title = f"[{change.title}](history/{change.name}.patch)"
        lines.append(
            [title, f"{change.claimed} ({change.source})", "; ".join(said), change.agreed,
             change.why]
        )  # fmt: skip
    table = markdown_table(("change", "claimed", "counted", "agreed", "why"), (), lines)
    return "".join(f"{line}\n" for line in ["", "", *table, ""])


def main(names: Sequence[str]) -> int:
    """Try the changes of these names again, or all; write what was counted beside the others."""
    file = EVIDENCE / COUNTED
    document: dict[str, Json] = (
        dict(json_object(file.read_text("utf-8")) or {}) if file.exists() else {}
    )
    for change in load_history():
        if not names or change.name in names:
            again = count_again(change, Path("out/history") / change.name)
            document[change.name] = [{"stock": counts.stock, "arm": counts.arm} for counts in again]
            write_atomically(file, dump_json({"licence": _LICENCE, **document}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
