# SPDX-License-Identifier: GPL-2.0
"""How the survey writes its figures, in sentences and in tables."""

from __future__ import annotations

from firsttouch.quantities import format_size
from firsttouch.survey.samples import Figure

_GIB = 1 << 30


def per_gib(nanoseconds: float, page_size: int, *, virtual_time: bool) -> str:
    """Return a time per page of `page_size` bytes as the time of a GiB."""
    millions = nanoseconds * _GIB / page_size / 1e6
    return f"{millions:,.0f} {'million instructions' if virtual_time else 'ms'}"


def percent_change(new: float, old: float) -> str:
    """Return the change from `old` to `new`: ``-75 %``."""
    return f"{100 * (new - old) / old:+.0f} %"


def median_or_dash(value: Figure | None, decimals: int) -> str:
    """Return the median of a figure; a dash where there is none."""
    return "-" if value is None else f"{value.median:,.{decimals}f}"


def size_or_dash(value: int | None) -> str:
    """Return a size; a dash where it is not known."""
    return "-" if value is None else format_size(value)


def count_or_dash(value: int | None) -> str:
    """Return a count; a dash where it is not known."""
    return "-" if value is None else str(value)
