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
from firsttouch.trace.kinds import NAMES as FAULT_NAMES
from firsttouch.trace.kinds import SECOND
from firsttouch.trace.sentences import command_line
from firsttouch.trace.sites import FILE_NAME, Location, Site, Trace, read_trace
from firsttouch.trace.totals import KINDS
from firsttouch.views.comparison import COMPARABLE, WITH_CARE, Comparison, Line

# Sites that are printed.
_SITES = 15


def compared_traces(a: Path, b: Path) -> Comparison | None:
    """Return the comparison of two traces; None if the paths have other results to compare.

    Raises UserError if only one is a trace, or one cannot be read.
    """
    of_a, of_b = _file(a), _file(b)
    if all(file is None or _has_others(path) for path, file in ((a, of_a), (b, of_b))):
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
        _line("doubles", a.doubles, b.doubles),
        *(_line(f"  {kind}", a.of_kind(kind), b.of_kind(kind)) for kind in KINDS),
    ]
    if a.fault_kinds and b.fault_kinds:
        counts[1:1] = [
            _line(f"  {name}", a.fault_kinds.get(name, 0), b.fault_kinds.get(name, 0))
            for name in FAULT_NAMES
        ]
    ours, theirs = _by_site(a), _by_site(b)
    sites = [_line(site, ours[site], theirs[site]) for site in {**ours, **theirs}]
    changed = [line for line in sites if line.changed]
    changed.sort(key=lambda line: (-abs(line.a - line.b), line.names))
    lines = [
        *(line for line in counts if line.a or line.b),
        *changed[:_SITES],
        *(replace(line, shown=False) for line in changed[_SITES:]),
    ]
    care = a.machine != b.machine or a.command != b.command or a.lower_bound or b.lower_bound
    kind = WITH_CARE if care else COMPARABLE
    sentences = (*_sentences(a, b), *_largest(changed))
    return Comparison(kind, sentences, (), ("what",), tuple(lines))


def _file(path: Path) -> Path | None:
    """Return the file of a trace, if a path is one or has one."""
    if path.name == FILE_NAME:
        return path
    return path / FILE_NAME if (path / FILE_NAME).is_file() else None


def _has_others(directory: Path) -> bool:
    """Tell whether a directory has results of another kind, too."""
    return (directory / "results.jsonl").exists()


def _line(what: str, a: int, b: int) -> Line:
    change = change_percent(a, b)
    texts = (f"{a:,}", f"{b:,}", format_change(change))
    return Line({"what": what.strip()}, (what,), a, b, change, texts, a != b)


def _by_site(trace: Trace) -> Counter[str]:
    """Return the doubles by site, and other faults by place and kind.

    A fix moves lines and addresses, so only functions count.
    """
    counted: Counter[str] = Counter()
    for site in trace.sites:
        counted[_name(site)] += site.doubles
    for place in trace.fault_places:
        if place.kind != FAULT_NAMES[SECOND]:
            leaf = f", {place.leaf}" if place.leaf else ""
            counted[f"{_function(place.place)} ({place.kind}{leaf})"] += place.faults
    return counted


def _of_all(a: Trace, b: Trace) -> Iterator[str]:
    """Say how the faults changed, and by which kind most."""
    if a.faults == b.faults:
        yield f"Both have {a.faults:,} page faults."
    else:
        yield (
            f"{a.faults:,} page faults before, {b.faults:,} after "
            f"({format_change(change_percent(a.faults, b.faults))})."
        )
    kinds = [(a.fault_kinds.get(name, 0), b.fault_kinds.get(name, 0), name) for name in FAULT_NAMES]
    before, after, name = max(kinds, key=lambda entry: abs(entry[0] - entry[1]))
    if before != after:
        yield f"The kind that changed most: {name}, {before:,} before and {after:,} after."


def _name(site: Site) -> str:
    read, write = _function(site.read), _function(site.write)
    where = read if read == write else f"{read}, written by {write}"
    return f"{where} ({site.kind})"


def _function(location: Location) -> str:
    return location.function or f"[{PurePath(location.object).name}]"


def _sentences(a: Trace, b: Trace) -> Iterator[str]:
    for trace, letter in ((a, "A"), (b, "B")):
        if trace.lower_bound:
            yield f"{letter} lost faults or was cut off: its number of doubles is a lower bound."
    if a.machine != b.machine:
        yield f"A is of {a.machine}, B of {b.machine}: the compiler chose other instructions."
    if a.command != b.command:
        yield f"The commands differ: A is {command_line(a)}, B is {command_line(b)}."
    if a.fault_kinds and b.fault_kinds:
        yield from _of_all(a, b)
        if not a.doubles and not b.doubles:
            return
    if b.doubles < a.doubles:
        yield f"{a.doubles - b.doubles:,} of {a.doubles:,} double faults are gone."
    elif b.doubles > a.doubles:
        yield f"There are {b.doubles - a.doubles:,} more double faults, {b.doubles:,} in all."
    else:
        yield f"Both have {a.doubles:,} double faults."


def _largest(changed: list[Line]) -> Iterator[str]:
    if changed:
        top = changed[0]
        before, after, _ = top.texts
        yield f"The largest change: {before} before and {after} after in {top.names[0]}."
