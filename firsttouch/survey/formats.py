# SPDX-License-Identifier: GPL-2.0
"""Formats of the survey's figures, in sentences and in tables."""

from __future__ import annotations

from firsttouch.quantities import format_size
from firsttouch.survey.samples import Figure

GIB = 1 << 30
# The meaning of the sign in all times.
PLUS_MINUS = "A time is a median; ± is half the width of the middle half of its samples."


def with_spread(value: Figure, unit: str = "", *, decimals: int | None = None) -> str:
    """Return a median with half the width of the middle half: ``281 ± 8 ms``.

    By default, a value has at least three significant digits.
    """
    if decimals is None:
        size = abs(value.median)
        decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    text = f"{value.median:,.{decimals}f} ± {value.spread / 2:,.{decimals}f}"
    return f"{text} {unit}" if unit else text


def per_gib(per_page: Figure, page_size: int, *, virtual_time: bool) -> str:
    """Return a time per page of `page_size` bytes, in ns, as the time per GiB."""
    millions = per_page.times(GIB / page_size / 1e6)
    if virtual_time:
        return f"{millions.median:,.0f} million instructions"
    return with_spread(millions, "ms")


def one_page(per_page: Figure, *, virtual_time: bool) -> str:
    """Return a time per page, in ns, as the time that a program waits for one page."""
    if virtual_time:
        return f"{per_page.median:,.0f} instructions"
    return with_spread(per_page.times(1e-3), "us")


def percent_change(new: float, old: float) -> str:
    """Return the change from `old` to `new`: ``-75 %``."""
    return f"{100 * (new - old) / old:+.0f} %"


def median_or_dash(value: Figure | None, decimals: int) -> str:
    """Return the median of a figure; a dash for None."""
    return "-" if value is None else f"{value.median:,.{decimals}f}"


def figure_or_dash(value: Figure | None, decimals: int) -> str:
    """Return a figure with its spread; a dash for None."""
    return "-" if value is None else with_spread(value, decimals=decimals)


def size_or_dash(value: int | None) -> str:
    """Return a size; a dash for None."""
    return "-" if value is None else format_size(value)


def count_or_dash(value: int | None) -> str:
    """Return a count; a dash for None."""
    return "-" if value is None else str(value)
