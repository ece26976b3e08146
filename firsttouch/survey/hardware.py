# SPDX-License-Identifier: GPL-2.0
"""Surveys and times of real machines that users sent, as figures of the report: no counts.

docs/hardware/README.md says how they are laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.times import ELAPSED, timed_rows
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.collection import Catalog, load_catalog
from firsttouch.lab.times import FILE_NAME, Times, read_times
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.output.html.figure import Figure, SmallTable, pictures
from firsttouch.output.time_sentences import agreement, sentences
from firsttouch.output.times import cell_title, change_words
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import Findings, TouchFinding, examine
from firsttouch.survey.formats import PLUS_MINUS, with_spread
from firsttouch.survey.tasks import kind_name

_CAPTION = (
    "Processor time of the first touch of a base page, in ns. "
    f"{PLUS_MINUS} These are times of one machine, not counts."
)
_TIMES = "Elapsed time of each cell, not a count: medians of boots, changes with intervals of 95 %."
# The name of a kernel without the features.
_STOCK = "stock"


def hardware_figures(folder: Path, catalog: Catalog) -> list[Figure]:
    """Return a figure for each machine in `folder`, in the order of their names.

    Raises UserError if a file there is no survey.
    """
    figures = []
    for machine in sorted(path for path in folder.glob("*") if path.is_dir()):
        surveys = {
            findings.host.write_intent or _STOCK: findings
            for file in sorted(machine.rglob("survey.json"))
            if (findings := examine(read_survey(file))).touches
        }
        if surveys:
            stock_first = sorted(surveys, key=lambda mode: (mode != _STOCK, mode))
            ordered = {mode: surveys[mode] for mode in stock_first}
            figures.append(_figure(machine.name, ordered, catalog))
        figures += [
            times_figure(machine.name, read_times(file), catalog)
            for file in sorted(machine.rglob(FILE_NAME))
        ]
    return figures


def times_figure(
    name: str, times: Times, catalog: Catalog, counted: Dataset | None = None
) -> Figure:
    """Return the figure of the times that `firsttouch lab --time` measured on a machine.

    Its caption says how far they agree with what emulation `counted` of the same images.
    """
    experiments = load_catalog([cell.experiment for cell in times.cells], (), ())
    every = timed_rows(times, experiments)
    rows = [row for row in every if row.metric == ELAPSED]
    more = agreement(times, every, counted) if counted else ()
    arms = [arm.name for arm in times.arms]
    bars = tuple(
        Bar(
            cell_title(row.cell, times.cells), {arm: value / 1e6 for arm, value in row.arms.items()}
        )
        for row in rows
    )
    groups = (Group("", bars),)
    wide, narrow = pictures(
        f"times-{name}",
        f"Times on {times.host.processor}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, symbols(catalog, arms), "ms"),
    )
    others = [arm for arm in arms if arm != BASE]
    table = tuple(
        (cell_title(row.cell, times.cells), *(change_words(row.changes.get(arm)) for arm in others))
        for row in rows
    )
    return Figure(
        f"{name}: {times.host.processor}, guests of KVM with Linux {times.kernel}",
        " ".join([_TIMES, *sentences(times, rows), *more]),
        wide,
        narrow,
        (),
        (),
        SmallTable(("change against stock", *others), table),
    )


def _figure(name: str, surveys: Mapping[str, Findings], catalog: Catalog) -> Figure:
    """Return the figure of a machine; `surveys` are by the mode of write-intent faults."""
    host = next(iter(surveys.values())).host
    kinds = _by_kind(surveys)
    bars = tuple(
        Bar(
            kind_name(kind, host),
            {mode: touch.busy.median for mode, touch in measured.items() if touch.busy},
        )
        for kind, measured in kinds.items()
    )
    groups = (Group("", bars),)
    wide, narrow = pictures(
        f"hardware-{name}",
        f"The first touch of a page on {host.processor}",
        f"{describe(groups)}.",
        lambda width: draw_dumbbells(width, groups, symbols(catalog, surveys), "ns per page"),
    )
    kernels = ", ".join(f"{mode}: {findings.host.kernel}" for mode, findings in surveys.items())
    rows = tuple(
        (kind_name(kind, host), *(_words(measured.get(mode)) for mode in surveys))
        for kind, measured in kinds.items()
    )
    return Figure(
        f"{name}: {host.processor} ({kernels})",
        _CAPTION,
        wide,
        narrow,
        (),
        (),
        SmallTable(("first touch by", *surveys), rows),
    )


def _by_kind(surveys: Mapping[str, Findings]) -> dict[str, dict[str, TouchFinding]]:
    """Return the kinds of touch of base pages that were measured: findings by mode for each."""
    kinds: dict[str, dict[str, TouchFinding]] = {}
    for kind in dict.fromkeys(t.kind for findings in surveys.values() for t in findings.touches):
        touches = {
            mode: touch for mode, findings in surveys.items() if (touch := findings.touch(kind))
        }
        if measured := {mode: touch for mode, touch in touches.items() if touch.busy}:
            kinds[kind] = measured
    return kinds


def _words(touch: TouchFinding | None) -> str:
    if touch is None or touch.busy is None:
        return "not measured"
    faults = "" if touch.faults is None else f", {touch.faults:.2f} faults"
    return f"{with_spread(touch.busy, 'ns')}{faults}"
