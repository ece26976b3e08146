# SPDX-License-Identifier: GPL-2.0
"""Compares two traces, such as before and after a fix: what the doubles were and are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath

from firsttouch.analysis.figures import change_percent
from firsttouch.errors import UserError
from firsttouch.quantities import format_change
from firsttouch.trace.kinds import NAMES, SECOND
from firsttouch.trace.sentences import command_line
from firsttouch.trace.sites import FILE_NAME, Location, Trace, read_trace
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
    """Return the comparison of two traces."""
    counts = [
        _line("page faults", a.faults, b.faults),
        *(_line(f"  {name}", a.fault_kinds.get(name, 0), b.fault_kinds.get(name, 0))
          for name in NAMES),
        _line("doubles", a.doubles, b.doubles),
    ]  # fmt: skip
    ours, theirs = _by_place(a), _by_place(b)
    places = [_line(place, ours[place], theirs[place]) for place in {**ours, **theirs}]
    changed = [line for line in places if line.changed]
    changed.sort(key=lambda line: (-abs(line.a - line.b), line.names))
    lines = [
        *(line for line in counts if line.a or line.b),
        *(replace(line, shown=number < _PLACES) for number, line in enumerate(changed)),
    ]
    sentences = list(_sentences(a, b))
    sentences.append(f"{a.faults:,} page faults before, {b.faults:,} after.")
    if changed:
        before, after, _ = changed[0].texts
        where = changed[0].names[0]
        sentences.append(f"The largest change: {before} before and {after} after in {where}.")
    return Comparison(tuple(sentences), (), ("what",), tuple(lines))


def _line(what: str, a: int, b: int) -> Line:
    change = change_percent(a, b)
    texts = (f"{a:,}", f"{b:,}", format_change(change))
    return Line({"what": what.strip()}, (what,), a, b, change, texts, a != b)


def _by_place(trace: Trace) -> Counter[str]:
    """Return the doubles by site, and other faults by place and kind.

    A fix moves lines and addresses, so only functions count.
    """
    counted: Counter[str] = Counter()
    for site in trace.sites:
        read, write = _function(site.read), _function(site.write)
        where = read if read == write else f"{read}, written by {write}"
        counted[f"{where} ({site.kind})"] += site.doubles
    for place in trace.fault_places:
        if place.kind != NAMES[SECOND]:
            leaf = f", {place.leaf}" if place.leaf else ""
            counted[f"{_function(place.place)} ({place.kind}{leaf})"] += place.faults
    return counted


def _function(location: Location) -> str:
    return location.function or f"[{PurePath(location.object).name}]"


def _sentences(a: Trace, b: Trace) -> Iterator[str]:
    """Yield what speaks against a comparison."""
    if a.lower_bound or b.lower_bound:
        yield "A trace lost faults or was cut off: its number of doubles is a lower bound."
    if a.machine != b.machine:
        yield f"A is of {a.machine}, B of {b.machine}: the compiler chose other instructions."
    if a.command != b.command:
        yield f"The commands differ: A is {command_line(a)}, B is {command_line(b)}."
