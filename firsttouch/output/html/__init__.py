# SPDX-License-Identifier: GPL-2.0
"""report.html: the results of a directory as one page that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.store import write_atomically
from firsttouch.analysis.dataset import EXPERIMENTS, read_dataset
from firsttouch.output.html.page import render


@dataclass(frozen=True)
class Drawn:
    """A report that was written, and what of the results it could not draw, a sentence each."""

    file: Path
    notes: list[str]


def draw_report(
    directory: Path, current: Collection[str] = (), folder: Path = EXPERIMENTS
) -> Drawn:
    """Write `directory`/report.html from its results.jsonl.

    `current` are the keys of the cells of the run that ends here: they are
    drawn where the directory holds the same cells from other builds too.
    `folder` has the experiments that the results are read by.
    The same results give the same bytes. Raises UserError if there is
    nothing to draw.
    """
    dataset = read_dataset(directory, current, folder)
    file = directory / "report.html"
    write_atomically(file, render(dataset))
    return Drawn(file, dataset.notes)
