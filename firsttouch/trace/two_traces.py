# SPDX-License-Identifier: GPL-2.0
"""Compares two traces, such as before and after a fix: their faults by kind and place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePath

from firsttouch.analysis.figures import change_percent
from firsttouch.errors import UserError
from firsttouch.quantities import format_change
from firsttouch.trace.kinds import NAMES
from firsttouch.trace.sentences import command_line
from firsttouch.trace.sites import FILE_NAME, Trace, read_trace
from firsttouch.views.comparison import Comparison, Line

# Places that are printed.
_PLACES = 15


def compared_traces(a: Path, b: Path) -> Comparison | None:
    """Return the comparison of two traces; None if the paths have other results to compare.

    Raises UserError if only one is a trace, or one cannot be read.
    """
    of_a, of_b = (
        path if path.name == FILE_NAME else file if (file := path / FILE_NAME).is_file() else None
        for path in (a, b)
    )
    # Both have results of another kind, too.
    others = ((path / "results.jsonl").exists() for path in (a, b))
    if all(file is None or other for file, other in zip((of_a, of_b), others, strict=True)):
        return None
    if not of_a or not of_b:
        raise UserError(
            f"{a if of_b else b} has no trace to compare with {b if of_b else a}: give two "
            "directories that `firsttouch trace --out` has filled."
        )
    return compare_traces(read_trace(of_a), read_trace(of_b))


def compare_traces(a: Trace, b: Trace) -> Comparison:
    ours, theirs = _by_place(a), _by_place(b)
    changed = [
        _line(place, ours[place], theirs[place])
        for place in {**ours, **theirs}
        if ours[place] != theirs[place]
    ]
    changed.sort(key=lambda line: (-abs(line.a - line.b), line.names))
    kinds = ((kind, a.fault_kinds.get(kind, 0), b.fault_kinds.get(kind, 0)) for kind in NAMES)
    lines = [
        _line("page faults", a.faults, b.faults),
        *(_line(f"  {kind}", *counts) for kind, *counts in kinds if any(counts)),
        *(replace(line, shown=number < _PLACES) for number, line in enumerate(changed)),
    ]
    doubts = [
        sentence
        for differs, sentence in (
            (a.lower_bound or b.lower_bound, "A trace lost faults or was cut off."),
            (a.machine != b.machine, f"A is of {a.machine}, B of {b.machine}."),
            (a.command != b.command, f"A is {command_line(a)}, B is {command_line(b)}."),
        )
        if differs
    ]
    said = *doubts, f"{a.faults:,} page faults before, {b.faults:,} after."
    return Comparison(said, (), ("what",), tuple(lines))


def _line(what: str, a: int, b: int) -> Line:
    change = change_percent(a, b)
    texts = (f"{a:,}", f"{b:,}", format_change(change))
    return Line({"what": what.strip()}, (what,), a, b, change, texts, a != b)


def _by_place(trace: Trace) -> Counter[str]:
    """Return the faults by place and kind. A fix moves lines and addresses: functions count."""
    counted: Counter[str] = Counter()
    for fault in trace.fault_places:
        where = fault.place.function or f"[{PurePath(fault.place.object).name}]"
        leaf = f", {fault.leaf}" if fault.leaf else ""
        counted[f"{where} ({fault.kind}{leaf})"] += fault.faults
    return counted
