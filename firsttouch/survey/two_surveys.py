# SPDX-License-Identifier: GPL-2.0
"""Compares two surveys: what differs between them, and which figures changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from firsttouch.analysis.verdicts import change_percent
from firsttouch.errors import UserError
from firsttouch.lab.results import FILE_NAME, PACKED
from firsttouch.output.comparison import COMPARABLE, SAME, Comparison, Difference, Line, kind_of
from firsttouch.quantities import format_change, format_size
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import ATOMICS, Findings, examine
from firsttouch.survey.formats import PLUS_MINUS, per_gib, with_spread
from firsttouch.survey.samples import Figure, Survey, differ
from firsttouch.survey.tasks import kind_name

# What a comparison can be about. Any other difference is a second cause of changed times.
_SUBJECTS = ("kernel", "write-intent faults", "zero pages", "boot parameters", "arm")


def find_survey(path: Path) -> Path | None:
    """Return the file of a survey: `path` itself, or the survey in that directory.

    None if the directory has no survey.json, and not exactly one survey of a
    guest, or if `path` is a file of the laboratory's results.
    """
    if path.is_file() and path.name != FILE_NAME:
        return None if path.suffix == PACKED else path
    if (path / "survey.json").is_file():
        return path / "survey.json"
    of_guests = sorted(path.glob("survey-*.json"))
    return of_guests[0] if len(of_guests) == 1 else None


def compared_surveys(a: Path, b: Path) -> Comparison | None:
    """Return the comparison of two surveys; None if the paths hold results of the laboratory.

    Raises UserError if one is a survey and the other holds none, or if one
    cannot be read.
    """
    of_a, of_b = find_survey(a), find_survey(b)
    if all((path / "results.jsonl").exists() for path in (a, b)) or not (of_a or of_b):
        return None
    if not of_a or not of_b:
        survey, none = (a, b) if of_a else (b, a)
        if (survey / "results.jsonl").exists():
            return None
        raise UserError(
            f"{survey} is a survey, but {none} has none: compare two surveys, "
            "or two directories of `firsttouch lab --out`."
        )
    return compare_surveys(read_survey(of_a), read_survey(of_b))


def compare_surveys(a: Survey, b: Survey) -> Comparison:
    """Return the comparison; UserError if one survey has times and the other instructions."""
    if a.virtual_time != b.virtual_time:
        raise UserError(
            "A and B are not comparable: a guest's clock counts instructions, a host's measures "
            "time; survey the host in both cases, or a guest in both by --guest."
        )
    ours, theirs = examine(a), examine(b)
    differences = tuple(_differences(a, b))
    lines = tuple(_lines(ours, theirs))
    if not lines:
        raise UserError(
            "A and B are not comparable: they have no figure in common; survey both again."
        )
    kind = kind_of(differences, _SUBJECTS, len(_SUBJECTS))
    sentences = (_judge(kind, differences, lines), *_double_fault(ours, theirs))
    return Comparison(kind, sentences, differences, ("", "figure"), lines, note=PLUS_MINUS)


def _differences(a: Survey, b: Survey) -> Iterator[Difference]:
    ours, theirs = _facts(a), _facts(b)
    for what, value in ours.items():
        if value != theirs[what]:
            yield Difference(what, value, theirs[what])


def _fault_ahead(size: int | None) -> str:
    if size is None:
        return "none"
    return f"folios of up to {format_size(size)}" if size else "off"


def _facts(survey: Survey) -> dict[str, str]:
    """Return the facts that decide the figures of a survey, in words."""
    host, guest = survey.host, survey.guest
    policies = ("enabled", "defrag", "shmem_enabled", "use_zero_page")
    return {
        "processor": f"{host.processor}, {host.architecture}",
        "kernel": host.kernel,
        "page size": format_size(host.page_size),
        "write-intent faults": host.write_intent or "none",
        "fault-ahead": _fault_ahead(host.fault_ahead),
        "huge pages": ", ".join(f"{p} {host.thp[p]}" for p in policies if p in host.thp) or "none",
        "mTHP": ", ".join(f"{format_size(s)} {p}" for s, p in host.mthp.items()) or "none",
        "frequency governor": host.governor or "unknown",
        "arm": guest.arm if guest else "none",
        "machine of the catalogue": guest.machine if guest else "none",
        "boot parameters": (guest.boot if guest else "") or "none",
    }


def _lines(a: Findings, b: Findings) -> Iterator[Line]:
    time = "instructions" if a.virtual_time else "ns"
    theirs = {(t.kind, t.page): t for t in b.touches}
    for touch in a.touches:
        other = theirs.get((touch.kind, touch.page))
        if other is None or touch.page_size != other.page_size:
            continue
        what = f"{kind_name(touch.kind, a.host)}, {format_size(touch.page_size)}"
        if touch.faults is not None and other.faults is not None:
            yield _line(what, "faults", "a page", _count(touch.faults), _count(other.faults))
        yield from _timed(what, "processor", f"{time} a page", touch.busy, other.busy)
    operations = {operation.name: operation for operation in b.operations}
    for operation in a.operations:
        if same_one := operations.get(operation.name):
            what = operation.name
            yield from _timed(what, "processor", f"{time} each", operation.busy, same_one.busy)
    for ours, cache in ((c, d) for c in a.caches for d in b.caches if c.level == d.level):
        what = ours.level.upper()
        yield from _timed(what, "hit", "ns a read", ours.within, cache.within)
        yield from _timed(what, "conflict", "ns a read", ours.beyond, cache.beyond)
    for color, same in ((c, d) for c in a.colors for d in b.colors if c.geometry == d.geometry):
        what = f"{color.geometry.level.upper()} colours"
        unit = "ns"
        yield from _timed(what, "1 zero page, worst", unit, color.meeting, same.meeting)
        yield from _timed(what, "1 zero page, best", unit, color.apart, same.apart)
        yield from _timed(what, "one of each colour", unit, color.spread, same.spread)


def _count(value: float) -> Figure:
    return Figure(value, 0.0, 1)


def _timed(what: str, metric: str, unit: str, a: Figure | None, b: Figure | None) -> Iterator[Line]:
    if a and b:
        yield _line(what, metric, unit, a, b)


def _line(what: str, metric: str, unit: str, a: Figure, b: Figure) -> Line:
    counted = metric == "faults"
    changed = a.median != b.median if counted else differ(a, b)
    change = change_percent(a.median, b.median)
    before, after = (
        f"{figure.median:,.2f}" if counted else with_spread(figure) for figure in (a, b)
    )
    said = "0 %" if a.median == b.median else format_change(change) if changed else "noise"
    return Line(
        {"what": what, "metric": metric, "unit": unit, "a_spread": a.spread, "b_spread": b.spread},
        (what, f"{metric}, {unit}"),
        a.median,
        b.median,
        change,
        (before, after, said),
        changed,
    )


def _judge(kind: str, differences: Iterable[Difference], lines: Sequence[Line]) -> str:
    changed = sum(line.changed for line in lines)
    outcome = f"{changed:,} of {len(lines):,} figures changed by more than noise"
    named = ", ".join(difference.what for difference in differences)
    if kind == SAME:
        return f"The same host, kernel and settings: {outcome}."
    if kind == COMPARABLE:
        return f"Comparable: they differ in the {named}; {outcome}, because of that."
    return f"Comparable with care: they differ in the {named}; {outcome}, for any of these reasons."


def _double_fault(a: Findings, b: Findings) -> Iterator[str]:
    """Return a sentence on the change of the first atomic that both surveys have."""
    for kind in ATOMICS:
        first, second = a.touch(kind), b.touch(kind)
        if first and second and first.busy and second.busy:
            before, after = (
                per_gib(time, touch.page_size, virtual_time=a.virtual_time)
                for time, touch in ((first.busy, first), (second.busy, second))
            )
            change = (
                format_change(change_percent(first.busy.median, second.busy.median))
                if differ(first.busy, second.busy)
                else "no more than noise"
            )
            yield (
                f"The first touch of a page by {kind_name(kind, a.host)} takes {first.faults:.2f} "
                f"page faults in A and {second.faults:.2f} in B; a GiB takes {before} in A and "
                f"{after} in B ({change})."
            )
            return
