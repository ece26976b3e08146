# SPDX-License-Identifier: GPL-2.0
"""A Comparison is two sides of the same figures: for `compare`, `try`, its matrix and its mail.

The sides are two results, surveys or traces, or two arms. `compare` makes that of two sets of
results: first whether they are comparable, then what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from rich.console import Console

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case, Measurement
from firsttouch.errors import UserError
from firsttouch.quantities import format_change, format_number_of, format_value
from firsttouch.tables import Json
from firsttouch.views.rows import cell_name, facts_of
from firsttouch.views.tables import Table, print_table, print_tables
from firsttouch.views.terminal import heading, plain

SCHEMA = 3
# Differences that follow from another difference, and are not listed beside it.
_FOLLOWS = {
    "kernel source": {"kernel"},
    "kernel image": {"kernel", "kernel source", "compiler"},
    "device tree": {"machine"},
    "initial RAM disk": {"ftbench", "init", "guest's commands"},
    "QEMU's program": {"QEMU"},
}
_SHORT = 12


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
    columns of the comparison, and `texts` has a, b, the change and what follows. `changed`
    tells whether b differs from a by more than noise. `group` is the heading of
    its table and what that is about; only `shown` lines are in the tables.
    """

    of: Mapping[str, Json]
    names: tuple[str, ...]
    a: float
    b: float
    change_percent: float | None
    texts: tuple[str, ...]
    changed: bool
    group: tuple[str, str] = ("", "")
    shown: bool = True


@dataclass(frozen=True)
class Comparison:
    """The comparison of two `sides`; the first of its `sentences` says whether it holds.

    `columns` head the names of its lines, `changes` what follows both sides, by the heading of
    a table if tables differ in it. Without `columns`, that heading heads the names in the table.
    `contradictory`: the sides should be equal, and are not. `notes` follow the tables. With a
    `title`, the sides are arms.
    """

    sentences: tuple[str, ...]
    differences: tuple[Difference, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    contradictory: bool = False
    notes: tuple[str, ...] = ()
    title: str = ""
    sides: tuple[str, str] = ("A", "B")
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def print_comparison(comparison: Comparison, console: Console, a: str = "", b: str = "") -> None:
    """Print what the comparison says, what differs, and the figures.

    `a` and `b` are names of the two sides, such as their directories, if it has no title.
    """
    if comparison.title:
        console.print(heading(comparison.title), soft_wrap=True)
    else:
        console.print(plain(f"A: {a}"))
        console.print(plain(f"B: {b}"))
    for sentence in comparison.sentences:
        console.print(plain(sentence))
    for each in comparison.differences:
        console.print(plain(f"  {each.what}"))
        for side, value in (("A", each.a), ("B", each.b)):
            console.print(plain(f"    {side} {value}", "dim"))
    if comparison.title:
        for table in comparison_tables(comparison):
            print_table(table, console)
    else:
        print_tables(comparison_tables(comparison), console)
    for note in comparison.notes:
        console.print(plain(note))


def comparison_tables(comparison: Comparison) -> list[Table]:
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in comparison.lines:
        if line.shown:
            groups.setdefault(line.group, []).append(line)
    names = comparison.columns
    return [
        Table(
            title if names else "",
            (*(names or [title]), *comparison.sides, *comparison.changes.get(title, ("change",))),
            [(*line.names, *line.texts) for line in lines],
            about=about,
            names=len(names) or 1,
            wraps={0: 12} if names else {},
        )
        for (title, about), lines in groups.items()
    ]


def comparison_document(comparison: Comparison) -> dict[str, Json]:
    return {
        "schema": SCHEMA,
        "contradictory": comparison.contradictory,
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


# A case, and what was measured of it on both sides.
_Pair = tuple[Case, Measurement, Measurement]


def compare(a: Dataset, b: Dataset) -> Comparison:
    """Return the comparison of two sets.

    If each set has only one release, the releases may differ; so may the machines and the
    settings. Raises UserError if the sets have no cell in common.
    """
    free = [
        what
        for what in ("release", "machine", "setting")
        if all(len({getattr(case.platform, what) for case in each.cases}) == 1 for each in (a, b))
    ]
    ours, theirs = _cells(a, free), _cells(b, free)
    pairs = [
        (case, measured, theirs[key][1]) for key, (case, measured) in ours.items() if key in theirs
    ]
    if not pairs:
        raise UserError(
            "A and B are not comparable: they have no cell in common; measure the same "
            "experiments, arms and --size on both sides."
        )
    differences = tuple(_differences(pairs))
    lines = tuple(_lines(pairs))
    return Comparison(
        (
            _judge(differences, lines, len(pairs)),
            *(
                f"{format_number_of(only, 'cells')} {'is' if only == 1 else 'are'} in {side} only "
                "and not compared."
                for side, cells in (("A", ours), ("B", theirs))
                if (only := len(cells) - len(pairs))
            ),
        ),
        differences,
        ("cell", "arm", "metric"),
        lines,
        contradictory=not differences and any(line.changed for line in lines),
    )


def _cells(
    dataset: Dataset, free: Sequence[str]
) -> dict[tuple[object, ...], tuple[Case, Measurement]]:
    """Return the cells by what tells them apart; of a platform, not what is `free` to differ."""
    return {
        (
            replace(case.platform, **dict.fromkeys(free, "")),
            case.experiment.name,
            tuple(sorted(case.params.items())),
            arm,
        ): (case, measured)
        for case in dataset.cases
        for arm, measured in case.arms.items()
    }


def _differences(pairs: Iterable[_Pair]) -> Iterator[Difference]:
    differences: dict[Difference, None] = {}
    for _, a, b in pairs:
        ours, theirs = _facts(a), _facts(b)
        for what in dict.fromkeys([*ours, *theirs]):
            before, after = ours.get(what, "none"), theirs.get(what, "none")
            if before != after:
                differences[Difference(what, before, after)] = None
    named = {difference.what for difference in differences}
    for difference in differences:
        if not _FOLLOWS.get(difference.what, set()) & named:
            yield difference


def _facts(measured: Measurement) -> dict[str, str]:
    made, cell = measured.result.provenance, measured.result.cell
    digests, commands = made.digests.values(), made.commands
    return {
        "machine": cell.machine,
        "setting": cell.setting or "none",
        **{
            name: value[:_SHORT] if value in digests else value
            for name, value in facts_of(made).items()
        },
        "guest's commands": (
            commands[0] if len(commands) == 1 else f"{len(commands)} cells in one guest"
        ),
    }


def _lines(pairs: Sequence[_Pair]) -> Iterator[Line]:
    for case, a, b in pairs:
        ours, theirs = a.result.cell, b.result.cell
        experiment, arm = case.experiment, ours.arm
        release, machine = _both(ours.release, theirs.release), _both(ours.machine, theirs.machine)
        setting = _both(ours.setting, theirs.setting)
        # The table's title has the experiment.
        name = cell_name(experiment, case.params).removeprefix(f"{experiment.name} ")
        for metric in experiment.metrics:
            before, after = a.metrics.get(metric.name), b.metrics.get(metric.name)
            if before is None or after is None:
                continue
            change = change_percent(before, after)
            yield Line(
                {
                    **case.document(),
                    "arm": arm,
                    "release": release,
                    "machine": machine,
                    "setting": setting,
                    "metric": metric.name,
                    "unit": metric.unit,
                },
                (name, arm, metric.name),
                before,
                after,
                change,
                (
                    format_value(before, metric.unit),
                    format_value(after, metric.unit),
                    format_change(change),
                ),
                before != after,
                (experiment.name, f"({', '.join(filter(None, (release, machine, setting)))})"),
                metric.shown,
            )


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a or 'no setting'} against {b or 'no setting'}"


def _judge(differences: Sequence[Difference], lines: Sequence[Line], cells: int) -> str:
    common = format_number_of(cells, "cells")
    if not differences:
        unequal = sum(line.changed for line in lines)
        outcome = (
            f"but {unequal:,} of {len(lines):,} figures differ: these runs were not identical"
            if unequal
            else f"and all {len(lines):,} figures are equal"
        )
        return f"The same: {common} made from the same parts, {outcome}."
    named = ", ".join(dict.fromkeys(difference.what for difference in differences))
    return f"{common} in common; the changes come from: {named}."
