# SPDX-License-Identifier: GPL-2.0
"""The table of the cost of features that are built in and switched off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.arms import BASE
from firsttouch.quantities import format_change, format_count
from firsttouch.views.labels import value_label
from firsttouch.views.names import cell_name

_OFF = "off"
_PRICE, _UNIT = "instructions_kernel", "instructions"


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
        stock, off = case.value(BASE, _PRICE), case.value(_OFF, _PRICE)
        if stock is not None and off is not None:
            where = f", {case.platform}" if several else ""
            yield OffCost(
                f"{cell_name(case.experiment, case.params)}{where}: {_PRICE}",
                value_label(stock, _UNIT),
                value_label(off, _UNIT),
                format_change(change_percent(stock, off)),
                _per_page(case, off - stock),
                case.command(_OFF),
            )


def _per_page(case: Case, difference: float) -> str:
    pages = case.pages()
    if pages is None:
        return "-"
    value = difference / pages
    if value == 0:
        return f"0 {_UNIT}"
    sign = "+" if value > 0 else "-"
    return f"{sign}{format_count(float(f'{abs(value):.3g}'))} {_UNIT}"
