# SPDX-License-Identifier: GPL-2.0
"""Sizes and numbers as people write and read them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str | int) -> int:
    """Return the bytes that `text` stands for: ``65536``, ``"64K"``, ``"1G"``, ``"512KiB"``.

    The letters are binary multiples. Raises ValueError, which names `text`, for anything else.
    """
    match = _SIZE.fullmatch(str(text).strip())
    value = int(match[1]) * _FACTOR[match[2].upper()] if match else 0
    if value <= 0:
        raise ValueError(f"{text!r} is not a size: write bytes or a number with K, M or G")
    return value


def format_size(size: int) -> str:
    """Return `size` bytes in the largest binary unit that divides it: ``64 KiB``."""
    for letter in "GMK":
        if size and size % _FACTOR[letter] == 0:
            return f"{size // _FACTOR[letter]} {letter}iB"
    return f"{size} B"


def format_count(value: float) -> str:
    """Return a count with thousands separators; a fraction below 1000 has at most four digits."""
    whole = float(value).is_integer() or abs(value) >= 1000
    return f"{round(value):,}" if whole else f"{value:,.4g}"


def format_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def format_change(percent: float | None) -> str:
    """Return a signed percentage, or a dash for None; a change that rounds to zero has no sign."""
    if percent is None:
        return "-"
    text = f"{percent:+.2f}"
    return f"{text.lstrip('+-') if float(text) == 0 else text} %"


def format_number_of(number: int, unit: str) -> str:
    """Return a number of things, `unit` in the plural: ``1 cell``, ``2,048 cells``."""
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


def format_list(names: Sequence[str], most: int = 3) -> str:
    """Return names as words, ``a, b and c``; only the first of more than `most`, and a number."""
    shown = list(names) if len(names) <= most else [names[0], f"{len(names) - 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def format_duration(seconds: float) -> str:
    """Return minutes and seconds: ``4 min 05 s``, ``12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def format_value(value: float | None, unit: str = "") -> str:
    """Return a value for a table that names its metric: a time in ms, or a count without unit."""
    if value is None:
        return "-"
    return f"{value / 1e6:,.2f} ms" if unit == "ns" else format_count(value)
