# SPDX-License-Identifier: GPL-2.0
"""The table of the cost of features that are built in and switched off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.names import cell_name
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.output.labels import value_label
from firsttouch.quantities import format_change, format_count

_OFF = "off"
# The first of these that was measured is the cost; instructions are more exact than time.
_PRICES = (("instructions_kernel", "instructions"), ("sys_ns", "ns"))


@dataclass(frozen=True)
class OffCost:
    """What features cost one cell when they are built in and switched off."""

    cell: str
    stock: str
    off: str
    change: str
    per_page: str
    command: str


def off_costs(dataset: Dataset) -> Iterator[OffCost]:
    """Return the cost for each case that was measured on stock and with the features off."""
    cases = [case for case in dataset.cases if {BASE, _OFF} <= case.arms.keys()]
    several = len({case.platform for case in cases}) > 1
    for case in cases:
        for metric, unit in _PRICES:
            stock, off = case.value(BASE, metric), case.value(_OFF, metric)
            if stock is not None and off is not None:
                where = f", {case.platform}" if several else ""
                yield OffCost(
                    f"{cell_name(case.experiment, case.params)}{where}: {metric}",
                    value_label(stock, unit),
                    value_label(off, unit),
                    format_change(change_percent(stock, off)),
                    _per_page(case, off - stock, unit),
                    case.command(_OFF),
                )
                break


def _per_page(case: Case, difference: float, unit: str) -> str:
    pages = case.pages()
    if pages is None:
        return "-"
    value = difference / pages
    if value == 0:
        return f"0 {unit}"
    sign = "+" if value > 0 else "-"
    return f"{sign}{format_count(float(f'{abs(value):.3g}'))} {unit}"
