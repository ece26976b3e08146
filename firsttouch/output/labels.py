# SPDX-License-Identifier: GPL-2.0
"""How the report words cases and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firsttouch.catalog.experiments import Experiment
from firsttouch.quantities import format_count, format_size
from firsttouch.analysis.dataset import Case
from firsttouch.output.terminal import format_params

# What each kind of first touch is in words, for the alternatives of pictures
# and for readers who do not know the instruction.
TOUCHES = {
    "store": "a store",
    "load-store": "a load, then a store",
    "ldadd": "an atomic add (ldadd)",
    "swp": "an atomic swap (swp)",
    "cas": "a compare-and-swap (cas)",
    "casp": "a compare-and-swap of a pair (casp)",
    "ldxr": "a load-exclusive (ldxr)",
    "madvise": "MADV_POPULATE_WRITE",
}


_ONE = {"faults": "fault", "misses": "miss", "instructions": "instruction"}


def cell_name(experiment: Experiment, params: Mapping[str, Any]) -> str:
    """Return an experiment and those parameters that it or the machine varies, and the size."""

    def tells(name: str) -> bool:
        listed = [str(value) for value in experiment.parameters.get(name, ())]
        return name == "size" or len(listed) != 1 or listed[0].startswith("@")

    telling = {name: value for name, value in params.items() if tells(name)}
    return f"{experiment.name} {format_params(telling)}".replace(" size ", " ").rstrip()


def case_label(case: Case, among: Sequence[Case]) -> str:
    """Return the parameters of `case` that tell it from the others."""
    telling = {
        name: value
        for name, value in case.params.items()
        if len({str(other.params.get(name)) for other in among}) > 1
    }
    return format_params(telling) if telling else cell_name(case.experiment, case.params)


def value_label(value: float | None, unit: str) -> str:
    """Return a measured value with its unit; times are milliseconds of the guest's clock."""
    if value is None:
        return "not measured"
    if unit == "ns":
        return f"{value / 1e6:,.2f} ms"
    return f"{format_count(value)} {_ONE.get(unit, unit) if value == 1 else unit}"


def page_label(page: str) -> str:
    """Return a page size parameter as people write it: ``4 KiB``."""
    digits = "".join(letter for letter in page if letter.isdigit())
    unit = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(page[-1:].lower(), 1)
    return format_size(int(digits) * unit) if digits else page


def ratio_label(value: float) -> str:
    """Return a small ratio with as many decimals as tell something: ``2``, ``1.06``, ``513``."""
    if abs(value - round(value)) < 0.005:
        return f"{round(value):,}"
    return f"{value:,.{2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0}f}"
