# SPDX-License-Identifier: GPL-2.0
"""Words for values, verdicts and reasons, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from firsttouch.analysis.changes import JUDGED
from firsttouch.analysis.dataset import Distribution, Row
from firsttouch.analysis.verdicts import NOT_PUBLISHED
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment
from firsttouch.quantities import (
    format_change,
    format_count,
    format_size,
    format_value,
    parse_size,
)

# The label of results of `firsttouch lab --quick`.
QUICK = "quick: smaller sizes and fewer cells, a first answer"
_ONE = {"faults": "fault", "misses": "miss", "instructions": "instruction", "pages": "page"}


def value_label(value: float | None, unit: str) -> str:
    """Return a measured value with its unit."""
    if value is None:
        return "not measured"
    if unit == "ns":
        return format_value(value, unit)
    return f"{format_count(value)} {_ONE.get(unit, unit) if value == 1 else unit}"


def metric_words(name: str) -> str:
    """Return a metric's name as words: ``kernel instructions``."""
    return JUDGED.get(name) or name.removesuffix("_ns").replace("_", " ")


def change_head(pairs: Collection[tuple[str, str] | None], experiment: Experiment) -> str:
    """Return the head of a column of changes; it names the arms if they are not the usual pair."""
    named = {pair for pair in pairs if pair}
    if len(named) != 1 or named == {(BASE, experiment.compare)}:
        return "change"
    ((base, compared),) = named
    return f"change {base} -> {compared}"


# Heads of the columns of changes over layouts.
SPREAD = ("least", "median", "most")


def spread_words(row: Row) -> tuple[str, ...]:
    """Return the least, the median and the largest change over layouts; empty without layouts."""
    changes = row.changes_over()
    return changes_of(changes) if changes else ("", "", "")


def changes_of(changes: Distribution) -> tuple[str, ...]:
    """Return the least, the median and the largest of changes over layouts."""
    return tuple(map(format_change, changes.spread))


def verdict_words(row: Row) -> str:
    """Return a row's verdict and in how many layouts it holds; empty if nothing is judged."""
    held = row.holds_in()
    words = f"{row.verdict}, holds in {held[0]} of {held[1]}" if held else row.verdict
    return "" if row.verdict == NOT_PUBLISHED else words


def page_label(page: str | int) -> str:
    """Return a page size for people: ``4 KiB``."""
    try:
        return format_size(parse_size(page))
    except ValueError:
        return str(page)


@dataclass(frozen=True)
class Reason:
    """Why something is not available: the `names`, sorted, and `where` it is missing."""

    reason: str
    names: tuple[str, ...]
    where: tuple[str, ...]


def group_by_reason(items: Iterable[tuple[str, str, str]]) -> list[Reason]:
    """Return each reason once, from items of (what is missing, why, where).

    Two reasons that differ only in the name of what is missing are the same.
    """
    blank = "\0"
    names: dict[str, set[str]] = {}
    where: dict[str, set[str]] = {}
    for name, reason, place in items:
        form = reason.replace(name, blank)
        names.setdefault(form, set()).add(name)
        where.setdefault(form, set()).add(place)
    return [
        Reason(
            form.replace(blank, next(iter(missing)) if len(missing) == 1 else "them"),
            tuple(sorted(missing)),
            tuple(sorted(where[form] - {""})),
        )
        for form, missing in names.items()
    ]
