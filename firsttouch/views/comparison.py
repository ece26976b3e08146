# SPDX-License-Identifier: GPL-2.0
"""A comparison of two results, surveys or traces: as a record, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from firsttouch.tables import Json
from firsttouch.views.plain import fits, heading, may_wrap, plain, plain_table, print_table

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
    _print_differences(comparison.differences, console)
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in comparison.lines:
        if line.shown:
            groups.setdefault(line.group, []).append(line)
    for (title, about), lines in groups.items():
        console.print()
        if title:
            console.print(heading(title, about))
        table = _table(comparison.columns, lines)
        if not fits(table, console):
            # Its rows become lines: each must say what it is of.
            table = _table(comparison.columns, lines, whole=True)
        print_table(table, console)
    if comparison.note:
        console.print(plain(comparison.note, "dim"))


def _print_differences(differences: Sequence[Difference], console: Console) -> None:
    """Print one difference of each kind, and the number of further ones of that kind."""
    for what in dict.fromkeys(difference.what for difference in differences):
        alike = [difference for difference in differences if difference.what == what]
        more = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
        console.print(plain(f"  {what}{more}"))
        for side, value in (("A", alike[0].a), ("B", alike[0].b)):
            console.print(plain(f"    {side} {value}", "dim"))


def _table(columns: Sequence[str], lines: Sequence[Line], *, whole: bool = False) -> Table:
    """Return a table of lines; not `whole`: without a first name that is that of the row above."""
    table = plain_table(columns, ["A", "B", "change"])
    # Only this column folds: a number that is cut would be a wrong number.
    may_wrap(table, 0)
    table.columns[0].overflow = "fold"
    last = ""
    for line in lines:
        first, *names = line.names
        shown = "" if first == last and not whole else first
        table.add_row(*map(plain, (shown, *names, *line.texts)))
        last = first
    return table


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
