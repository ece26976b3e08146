# SPDX-License-Identifier: GPL-2.0
"""Compares two surveys: which facts of the hosts differ, and which figures changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firsttouch.analysis.figures import Figure, change_percent
from firsttouch.errors import UserError
from firsttouch.quantities import format_change, format_size
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.printing import host_facts
from firsttouch.survey.sentences import PLUS_MINUS
from firsttouch.survey.tasks import kind_name
from firsttouch.tables import Json
from firsttouch.views.comparison import Comparison, Difference, Line, kind_of

# A comparison is about these. Any other difference is a second cause of changed times.
_SUBJECTS = ("kernel", "write intent", "fault-ahead")


def compared_surveys(a: Path, b: Path) -> Comparison:
    """Return the comparison of two surveys; UserError if one cannot be read."""
    return compare_surveys(*(examine(read_survey(place)) for place in (a, b)))


def compare_surveys(a: Findings, b: Findings) -> Comparison:
    """Return the comparison; UserError if the surveys have no figure in common."""
    ours, theirs = host_facts(a.host), host_facts(b.host)
    differences = tuple(
        Difference(what, ours.get(what, "none"), theirs.get(what, "none"))
        for what in {**ours, **theirs}
        if ours.get(what) != theirs.get(what)
    )
    before, after = dict(_figures(a)), dict(_figures(b))
    lines = tuple(_line(*key, before[key], after[key]) for key in before if key in after)
    if not lines:
        raise UserError("the surveys have no figure in common: survey both again.")
    changed = sum(line.changed for line in lines)
    of = f" They differ in: {', '.join(d.what for d in differences)}." if differences else ""
    sentence = f"{changed:,} of {len(lines):,} figures changed by more than noise.{of}"
    kind = kind_of(differences, _SUBJECTS, len(_SUBJECTS))
    return Comparison(kind, (sentence,), differences, ("", "figure"), lines, notes=(PLUS_MINUS,))


def _figures(findings: Findings) -> Iterator[tuple[tuple[str, str], Figure]]:
    for touch in findings.touches:
        what = f"{kind_name(touch.kind, findings.host)}, {format_size(touch.page_size)}"
        if touch.busy:
            yield (what, "faults a page"), Figure("faults", (round(touch.faults, 2),))
            yield (what, "ns a page"), touch.busy
    for found in findings.conflicts:
        for name, time in (("hit", found.hit), ("conflict", found.conflict)):
            if time:
                yield (found.cache.level.upper(), f"{name}, ns a read"), time


def _line(what: str, metric: str, a: Figure, b: Figure) -> Line:
    changed, change = a.differs(b), change_percent(a.median, b.median)
    said = "0 %" if a.median == b.median else format_change(change) if changed else "noise"
    before, after = (f.middle.words() if f.unit == "ns" else f"{f.median:,.2f}" for f in (a, b))
    of: dict[str, Json] = {"what": what, "metric": metric}
    of |= {"a_spread": a.middle.spread, "b_spread": b.middle.spread}
    return Line(of, (what, metric), a.median, b.median, change, (before, after, said), changed)
