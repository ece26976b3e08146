# SPDX-License-Identifier: GPL-2.0
"""A comparison of two results, surveys or traces: as a record, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from rich.console import Console

from firsttouch.tables import Json
from firsttouch.views.tables import Table, print_tables
from firsttouch.views.terminal import plain

SCHEMA = 2
# Made from the same parts; different in what a comparison can be about; different in more.
SAME, COMPARABLE, WITH_CARE = "same", "comparable", "with care"
_STYLES = {SAME: "green", COMPARABLE: "green", WITH_CARE: "yellow"}


@dataclass(frozen=True)
class Difference:
    """What differs between the two sides; `a` and `b` are the values of each."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Line:
    """A figure of both sides; `change_percent` is b against a, None if a is 0.

    `of` says what it is of, for programs. For people, `names` says it in the
    columns of the comparison, and `texts` has a, b and the change. `changed`
    tells whether b differs from a by more than noise. `group` is the heading of
    its table and what that is about; only `shown` lines are in the tables.
    """

    of: Mapping[str, Json]
    names: tuple[str, ...]
    a: float
    b: float
    change_percent: float | None
    texts: tuple[str, str, str]
    changed: bool
    group: tuple[str, str] = ("", "")
    shown: bool = True


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sides; the first of its `sentences` says whether it holds.

    `columns` head the names of its lines. `contradictory`: the sides should be
    equal, and are not. `note` explains the figures.
    """

    kind: str
    sentences: tuple[str, ...]
    differences: tuple[Difference, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    contradictory: bool = False
    note: str = ""


def kind_of(differences: Iterable[Difference], subjects: Iterable[str], most: int) -> str:
    """Return the kind of a comparison that can be about `subjects`, about `most` at once."""
    kinds = {difference.what for difference in differences}
    if not kinds:
        return SAME
    return COMPARABLE if kinds <= set(subjects) and len(kinds) <= most else WITH_CARE


def print_comparison(comparison: Comparison, a: str, b: str, console: Console) -> None:
    """Print what the comparison says, what differs, and the figures.

    `a` and `b` are names of the two sides, such as their directories.
    """
    console.print(plain(f"A: {a}"))
    console.print(plain(f"B: {b}"))
    style = "red" if comparison.contradictory else _STYLES[comparison.kind]
    for sentence in comparison.sentences:
        console.print(plain(sentence, style))
        style = ""
    for what in dict.fromkeys(difference.what for difference in comparison.differences):
        first, *more = (each for each in comparison.differences if each.what == what)
        console.print(plain(f"  {what}" + (f" (and {len(more):,} more)" if more else "")))
        for side, value in (("A", first.a), ("B", first.b)):
            console.print(plain(f"    {side} {value}", "dim"))
    print_tables(comparison_tables(comparison), console)
    if comparison.note:
        console.print(plain(comparison.note, "dim"))


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return a table for each group of lines: both sides, and a column for the change."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in comparison.lines:
        if line.shown:
            groups.setdefault(line.group, []).append(line)
    return [
        Table(
            title,
            (*comparison.columns, "A", "B", "change"),
            [(*line.names, *line.texts) for line in lines],
            about=about,
            names=len(comparison.columns),
            wraps={0: 12},
        )
        for (title, about), lines in groups.items()
    ]


def comparison_document(comparison: Comparison) -> dict[str, Json]:
    """Return a comparison as `firsttouch compare --json` prints it."""
    return {
        "schema": SCHEMA,
        "kind": comparison.kind,
        "sentences": list(comparison.sentences),
        "differences": [asdict(difference) for difference in comparison.differences],
        "figures": [
            {
                **line.of,
                "a": line.a,
                "b": line.b,
                "change_percent": line.change_percent,
                "changed": line.changed,
            }
            for line in comparison.lines
        ],
    }
