# SPDX-License-Identifier: GPL-2.0
"""Words for values, verdicts and reasons, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from firsttouch.analysis.dataset import Row
from firsttouch.analysis.distributions import (
    Distribution,
    changes_over,
    holds_in,
)
from firsttouch.analysis.verdicts import NOT_JUDGED, NOT_PUBLISHED
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment
from firsttouch.quantities import (
    format_change,
    format_count,
    format_size,
    format_value,
    parse_size,
)

# Verdicts have a sign as well as a colour.
SIGNS = {
    "reproduced": "✓",
    "exceeded": "▲",
    "not reproduced": "✗",
    NOT_JUDGED: "-",
    NOT_PUBLISHED: "·",
    "not measured": "·",
}
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


def change_head(pairs: Collection[tuple[str, str] | None], experiment: Experiment) -> str:
    """Return the head of a column of changes; it names the arms if they are not the usual pair."""
    named = {pair for pair in pairs if pair}
    if len(named) != 1 or named == {(BASE, experiment.compare)}:
        return "change"
    ((base, compared),) = named
    return f"change {base} -> {compared}"


# Heads of the columns of changes over layouts.
SPREAD = ("least", "median", "most")


def spread_words(row: Row) -> tuple[str, str, str]:
    """Return the least, the median and the largest change over layouts; empty without layouts."""
    changes = changes_over(row)
    return changes_of(changes) if changes else ("", "", "")


def changes_of(changes: Distribution) -> tuple[str, str, str]:
    """Return the least, the median and the largest of changes over layouts."""
    return format_change(changes.least), format_change(changes.median), format_change(changes.most)


def change_range(changes: Distribution) -> str:
    """Return changes over layouts as words."""
    least, median, most = changes_of(changes)
    return f"{least} to {most}, median {median}"


def share_words(row: Row) -> str:
    """Return in how many layouts a row's verdict holds; empty if there is nothing to say."""
    held = holds_in(row)
    return f"holds in {held[0]} of {held[1]}" if held else ""


def verdict_words(row: Row) -> str:
    """Return a row's verdict and in how many layouts it holds; empty if nothing is judged."""
    words = [row.verdict, share_words(row)]
    return "" if row.verdict == NOT_PUBLISHED else ", ".join(filter(None, words))


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
