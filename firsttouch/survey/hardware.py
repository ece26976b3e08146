# SPDX-License-Identifier: GPL-2.0
"""Surveys of real machines that users sent, as figures of the report: times, not counts.

docs/hardware/README.md says how they are laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from firsttouch.catalog.collection import Catalog
from firsttouch.output.html.arm_symbols import symbols
from firsttouch.output.html.dumbbells import Bar, Group, describe, draw_dumbbells
from firsttouch.output.html.figure import Figure, SmallTable, pictures
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import Findings, TouchFinding, examine
from firsttouch.survey.formats import PLUS_MINUS, with_spread
from firsttouch.survey.tasks import kind_name

_CAPTION = (
    "Processor time of the first touch of a base page, in ns. "
    f"{PLUS_MINUS} These are times of one machine, not counts."
)
# The name of a kernel without the features.
_STOCK = "stock"


def hardware_figures(folder: Path, catalog: Catalog) -> list[Figure]:
    """Return a figure for each machine in `folder`, in the order of their names.

    Raises UserError if a file there is no survey.
    """
    figures = []
    for machine in sorted(path for path in folder.glob("*") if path.is_dir()):
        surveys = {
            found.host.write_intent or _STOCK: found
            for file in sorted(machine.rglob("survey.json"))
            if (found := examine(read_survey(file))).touches
        }
        if surveys:
            stock_first = sorted(surveys, key=lambda mode: (mode != _STOCK, mode))
            ordered = {mode: surveys[mode] for mode in stock_first}
            figures.append(_figure(machine.name, ordered, catalog))
    return figures


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
    kernels = ", ".join(f"{mode}: {found.host.kernel}" for mode, found in surveys.items())
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
    for kind in dict.fromkeys(t.kind for found in surveys.values() for t in found.touches):
        found = {mode: touch for mode, one in surveys.items() if (touch := one.touch(kind))}
        if measured := {mode: touch for mode, touch in found.items() if touch.busy}:
            kinds[kind] = measured
    return kinds


def _words(touch: TouchFinding | None) -> str:
    if touch is None or touch.busy is None:
        return "not measured"
    faults = "" if touch.faults is None else f", {touch.faults:.2f} faults"
    return f"{with_spread(touch.busy, 'ns')}{faults}"
