# SPDX-License-Identifier: GPL-2.0
"""Compares two traces, such as before and after a fix: what the doubles were and are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from rich.console import Console

from firsttouch.analysis.verdicts import change_percent
from firsttouch.errors import UserError
from firsttouch.finder.document import FILE_NAME, read_trace
from firsttouch.finder.found import KINDS
from firsttouch.finder.sites import Site, Trace
from firsttouch.finder.symbols import Location
from firsttouch.output.plain import may_wrap, plain, plain_table, print_table
from firsttouch.quantities import format_change
from firsttouch.tables import Json
from firsttouch.trace.sentences import command_line

# Sites that are printed.
_SITES = 15


@dataclass(frozen=True)
class TraceLine:
    """A count of both traces; `change_percent` is b against a, None if a is 0."""

    what: str
    a: int
    b: int
    change_percent: float | None


@dataclass(frozen=True)
class TraceComparison:
    """The comparison of two traces: the answer in sentences, counts, and sites that changed."""

    sentences: tuple[str, ...]
    lines: tuple[TraceLine, ...]
    sites: tuple[TraceLine, ...]


def compared_traces(a: Path, b: Path) -> TraceComparison | None:
    """Return the comparison of two traces; None if the paths have other results to compare.

    Raises UserError if only one is a trace, or one cannot be read.
    """
    one, other = _file(a), _file(b)
    if all(file is None or _has_others(path) for path, file in ((a, one), (b, other))):
        return None
    if not one or not other:
        raise UserError(
            f"{a if other else b} has no trace to compare with {b if other else a}: give two "
            "directories that `firsttouch trace --out` has filled."
        )
    return compare_traces(read_trace(one), read_trace(other))


def compare_traces(a: Trace, b: Trace) -> TraceComparison:
    """Return the comparison of two traces."""
    lines = [
        _line("page faults", a.faults, b.faults),
        _line("doubles", a.doubles, b.doubles),
        *(_line(f"  {kind}", a.of_kind(kind), b.of_kind(kind)) for kind in KINDS),
    ]
    ours, theirs = _by_site(a), _by_site(b)
    sites = [_line(site, ours[site], theirs[site]) for site in {**ours, **theirs}]
    changed = [line for line in sites if line.a != line.b]
    changed.sort(key=lambda line: (-abs(line.a - line.b), line.what))
    shown = tuple(line for line in lines if line.a or line.b)
    return TraceComparison(tuple(_sentences(a, b, changed)), shown, tuple(changed))


def trace_comparison_document(comparison: TraceComparison) -> dict[str, Json]:
    """Return a comparison as one JSON object."""
    return {"schema": 1, "kind": "traces", **asdict(comparison)}


def print_trace_comparison(comparison: TraceComparison, a: str, b: str, console: Console) -> None:
    """Print the sentences, the counts, and the sites that changed most."""
    console.print(plain(f"A: {a}"))
    console.print(plain(f"B: {b}"))
    for sentence in comparison.sentences:
        console.print(plain(sentence))
    console.print()
    table = plain_table(["what"], ["A", "B", "change"])
    may_wrap(table, 0, 24)
    for line in [*comparison.lines, *comparison.sites[:_SITES]]:
        table.add_row(
            plain(line.what), f"{line.a:,}", f"{line.b:,}", format_change(line.change_percent)
        )
    print_table(table, console)


def _file(path: Path) -> Path | None:
    """Return the file of a trace, if a path is one or has one."""
    if path.name == FILE_NAME:
        return path
    return path / FILE_NAME if (path / FILE_NAME).is_file() else None


def _has_others(directory: Path) -> bool:
    """Tell whether a directory has results of another kind, too."""
    return any((directory / name).exists() for name in ("results.jsonl", "survey.json"))


def _line(what: str, a: int, b: int) -> TraceLine:
    return TraceLine(what, a, b, change_percent(a, b))


def _by_site(trace: Trace) -> Counter[str]:
    """Return the doubles by site. A fix moves lines and addresses, so only functions count."""
    counted: Counter[str] = Counter()
    for site in trace.sites:
        counted[_name(site)] += site.doubles
    return counted


def _name(site: Site) -> str:
    read, write = _function(site.read), _function(site.write)
    where = read if read == write else f"{read}, written by {write}"
    return f"{where} ({site.kind})"


def _function(location: Location) -> str:
    return location.function or f"[{PurePath(location.object).name}]"


def _sentences(a: Trace, b: Trace, changed: list[TraceLine]) -> Iterator[str]:
    for trace, letter in ((a, "A"), (b, "B")):
        if trace.lower_bound:
            yield f"{letter} lost faults or was cut off: its number of doubles is a lower bound."
    if a.machine != b.machine:
        yield f"A is of {a.machine}, B of {b.machine}: the compiler chose other instructions."
    if a.command != b.command:
        yield f"The commands differ: A is {command_line(a)}, B is {command_line(b)}."
    if b.doubles < a.doubles:
        yield f"{a.doubles - b.doubles:,} of {a.doubles:,} double faults are gone."
    elif b.doubles > a.doubles:
        yield f"There are {b.doubles - a.doubles:,} more double faults, {b.doubles:,} in all."
    else:
        yield f"Both have {a.doubles:,} double faults."
    if changed:
        top = changed[0]
        yield f"The largest change: {top.a:,} before and {top.b:,} after in {top.what}."
