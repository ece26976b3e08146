# SPDX-License-Identifier: GPL-2.0
"""What `firsttouch count` counted on one kernel or several, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from firsttouch.analysis.figures import change_percent
from firsttouch.quantities import format_change, format_value
from firsttouch.views.tables import Table

# How a program ended: said before any count, because counts of other work say nothing.
STATE = ("exit_status", "output_bytes", "output_digest")
# Counts of memory, and how much they may differ between kernels that do the same work.
_MEMORY = {"peak_resident_bytes": 0.02, "thp_fault_alloc": 0.0}
# What is counted by name: a field of Counted, and the head of its table.
NAMED = {"functions": "kernel functions, instructions", "system_calls": "system calls",
         "processes": "processes, instructions"}  # fmt: skip
# Lines of a table of functions or system calls.
_FIRST = 12


@dataclass(frozen=True)
class Counted:
    """A program's counts in each layout, on a kernel, in a root of the user's or ""."""

    release: str
    arm: str
    root: str
    layouts: Sequence[Mapping[str, float]]
    functions: Mapping[str, int] = field(default_factory=dict)
    system_calls: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, float]:
        return self.layouts[0]

    @property
    def label(self) -> str:
        """The head of its column."""
        return f"{self.release} {self.arm} {self.root}".strip()

    @property
    def state(self) -> tuple[int, ...]:
        """How the program ended: its exit status, its output's size and digest."""
        return tuple(int(self.counts[name]) for name in STATE)


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def ended(counted: Sequence[Counted]) -> str:
    """Return a sentence: whether the program ended alike on all kernels."""
    ends = [f"exit status {each.state[0]}, {each.state[1]:,} bytes of output" for each in counted]
    if len({each.state for each in counted}) > 1:
        each_with = [f"{each.label} with {end}" for each, end in zip(counted, ends, strict=True)]
        return (
            "The outcomes differ, by status or output, so the counts do not compare: "
            f"{'; '.join(each_with)}."
        )
    said = f"{'The same outcome' if len(counted) > 1 else 'Ended'}: {ends[0]}."
    for name, tolerated in _MEMORY.items():
        values = [each.counts.get(name, 0.0) for each in counted]
        if max(values) - min(values) > tolerated * max(values):
            on = ", ".join(
                f"{format_value(value)} on {each.label}"
                for value, each in zip(values, counted, strict=True)
            )
            said += f" But its memory use differs: {_words(name)} {on}."
    return said


def counts_table(counted: Sequence[Counted], missing: Iterable[str]) -> Table:
    """Return the counts, a column for each kernel; the last is compared with the first.

    `missing` has the reasons why other counts are not there.
    """
    layouts = list(zip(counted[0].layouts, counted[-1].layouts, strict=False))
    spread = len(counted) > 1 and len(layouts) > 1
    rows = []
    for name in counted[0].counts:
        if name not in STATE:
            changes = [change_percent(one.get(name), other.get(name)) for one, other in layouts]
            known = [each for each in changes if each is not None]
            ends = [format_change(end) for end in (min(known), max(known))] if known else ["-"]
            values = [format_value(each.counts.get(name)) for each in counted]
            row = [_words(name), *values, format_change(changes[0])]
            rows.append([*row, " to ".join(ends)] if spread else row)
    note = "; ".join(f"other counts are missing: {why}" for why in missing)
    return _table("", counted, rows, note, [f"in {len(layouts)} layouts"] * spread)


def name_tables(counted: Sequence[Counted]) -> Iterator[Table]:
    """Yield what was counted by name, the largest change first, or the largest of one kernel."""
    for name, what in NAMED.items():
        values = [getattr(each, name) for each in counted]
        rows = {name: [each.get(name, 0) for each in values] for each in values for name in each}
        order = sorted((-abs(row[-1] - row[0]), -max(row), name) for name, row in rows.items())
        lines = [
            [name, *(f"{value:,}" for value in rows[name]), f"{rows[name][-1] - rows[name][0]:+,}"]
            for _, _, name in order[:_FIRST]
        ]
        more = f"{len(rows) - _FIRST:,} more: --json has all" if len(rows) > _FIRST else ""
        if all(values):
            yield _table(what, counted, lines, more)


def _table(
    head: str, counted: Sequence[Counted], rows: Sequence[Sequence[str]], note: str,
    more: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Return `rows` with a head; a single kernel has no change."""
    heads = [head, *(each.label for each in counted), "change", *more]
    if len(counted) == 1:
        heads, rows = heads[:2], [row[:2] for row in rows]
    return Table("", heads, rows, note)
