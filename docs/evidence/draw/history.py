# SPDX-License-Identifier: GPL-2.0
"""history.toml: changes whose outcome is known, each tried again as a small patch of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docs.evidence.draw.sets import EVIDENCE
from docs.evidence.draw.tables import document
from firsttouch.analysis.changes import changes
from firsttouch.analysis.dataset import read_dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.cli.main import main as firsttouch
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.quantities import format_change, format_count
from firsttouch.tables import dump_json, read, read_json, read_toml
from firsttouch.views.rows import cell_name, metric_words
from firsttouch.views.tables import Table, markdown

HISTORY, COUNTED = "history.toml", "history-counts.json"


@dataclass(frozen=True)
class Change:
    """A change, where it was published, the counts that show it, and what came of it.

    docs/evidence/history/NAME.patch does it, or undoes it, on `release`; `options` of
    `firsttouch try` select the cells. `shows` has counts that move, or that ought not to, each
    as ``COUNT of CELL``. `agreed` says whether what was counted is what was claimed.
    """

    name: str
    title: str
    release: str
    source: str
    options: tuple[str, ...]
    shows: tuple[str, ...]
    agreed: Literal["yes", "no", "not judged"]

    def patch(self) -> Path:
        return EVIDENCE / "history" / f"{self.name}.patch"


def load_history() -> list[Change]:
    top = read_toml(EVIDENCE / HISTORY)
    history = [read(table, Change) for table in top.tables("change")]
    top.done()
    return history


def read_counted() -> dict[str, list[Mapping[str, float]]]:
    """Return the count of each cell of a change's `shows`, on ``stock`` and on its ``arm``."""
    table = read_json(EVIDENCE / COUNTED)
    return {
        change.name: [entry.values_of(float) for entry in table.tables(change.name)]
        for change in load_history()
    }


def count_again(change: Change, out: Path) -> list[Mapping[str, float]]:
    """Try a change, and return its counts as `read_counted`; UserError if a cell is not there."""
    words = ["try", str(change.patch()), "--release", change.release, *change.options]
    if status := firsttouch([*words, "--out", str(out)]):
        raise UserError(f"firsttouch {' '.join(words)} ended with status {status}: see above.")
    (tried,) = changes(read_dataset(out))
    cells = {cell_name(each.case.experiment, each.case.params): each for each in tried.cells}
    counted: list[Mapping[str, float]] = []
    for shown in change.shows:
        count, _, cell = shown.partition(" of ")
        if cell not in cells:
            raise UserError(f"{HISTORY}: {change.name} has no cell {cell}: correct its options.")
        stock, arm = cells[cell].figures[count]
        counted.append({"stock": stock.median, "arm": arm.median})
    return counted


def draw() -> str:
    counted = read_counted()
    lines = []
    for change in load_history():
        said = []
        for shown, pair in zip(change.shows, counted[change.name], strict=True):
            count, _, cell = shown.partition(" of ")
            values = f"{format_count(pair['stock'])} to {format_count(pair['arm'])}"
            percent = format_change(change_percent(pair["stock"], pair["arm"]))
            said.append(f"{metric_words(count)} of `{cell}`: {values} ({percent})")
        title = f"[{change.title}](history/{change.name}.patch)"
        lines.append([title, change.source, "; ".join(said), change.agreed])
    table = markdown(Table("", ("change", "source", "counted", "agrees"), lines, names=4))
    return document("history-counts", ".", ["", *table])


def measure() -> None:
    """Try all changes again, and store what was counted."""
    history = load_history()
    counted = {each.name: count_again(each, Path("out/history") / each.name) for each in history}
    write_atomically(EVIDENCE / COUNTED, dump_json(counted))
