# SPDX-License-Identifier: GPL-2.0
"""The conclusions of a survey: its findings in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from firsttouch.quantities import format_size
from firsttouch.survey.advice import advise
from firsttouch.survey.findings import ATOMICS, ColorFinding, Findings, TouchFinding
from firsttouch.survey.formats import per_gib, percent_change
from firsttouch.survey.geometry import CacheFinding
from firsttouch.survey.samples import differ
from firsttouch.survey.tasks import FLOOR, kind_name

# Fewer repetitions than this show no spread.
ENOUGH = 3


@dataclass(frozen=True)
class Sentence:
    """One conclusion; `about` is the question that it answers, in a word or two."""

    about: str
    text: str


def conclude(findings: Findings) -> list[Sentence]:
    """Return the conclusions that a survey ends in."""
    sentences = [_double_fault(findings), _cost(findings)]
    sentences += _huge_pages(findings)
    sentences += [_conflict(cache) for cache in findings.caches if cache.measured and cache.beyond]
    sentences += _zero_pages(findings)
    sentences += [_colors(finding, findings) for finding in findings.colors] or [
        Sentence("colours", _no_geometry(findings))
    ]
    sentences += [Sentence("today", text) for text in advise(findings)]
    sentences += _certainty(findings)
    return sentences


def _names(touches: list[TouchFinding], findings: Findings) -> str:
    names = [kind_name(touch.kind, findings.host) for touch in touches]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _double_fault(findings: Findings) -> Sentence:
    about = "double fault"
    atomics, twice = findings.atomics, findings.doubled
    if not atomics:
        reasons = [t.unavailable for t in findings.touches if t.kind in ATOMICS]
        why = reasons[0] if reasons else "nothing was measured"
        return Sentence(about, f"Whether atomics fault twice here is not known: {why}.")
    if twice:
        text = (
            f"Atomics fault twice here: the first touch of a page by {_names(twice, findings)} "
            f"takes {twice[0].faults:.2f} page faults"
        )
        once = [touch for touch in atomics if touch not in twice]
        text += f", by {_names(once, findings)} one." if once else ", by a store one."
        return Sentence(about, text)
    text = (
        "Atomics do not fault twice here: the first touch of a page by "
        f"{_names(atomics, findings)} takes {atomics[0].faults:.2f} page faults, like a store's"
    )
    if findings.host.architecture == "x86-64":
        return Sentence(about, f"{text}; x86-64 reports it as a write.")
    if findings.host.write_intent:
        return Sentence(
            about,
            f"{text}: this kernel has write-intent faults (mode {findings.host.write_intent}).",
        )
    return Sentence(about, f"{text}: the fault is handled as a write.")


def _cost(findings: Findings) -> Sentence:
    about = "cost"
    store, floor = findings.touch("store"), findings.touch(FLOOR)
    worst = next(iter(findings.doubled or findings.atomics), None)
    if not (store and worst and store.busy and worst.busy):
        return Sentence(about, "What that costs is not known: the touches were not measured.")
    page_size = worst.page_size

    def time(nanoseconds: float) -> str:
        return per_gib(nanoseconds, page_size, virtual_time=findings.virtual_time)

    times = "" if findings.virtual_time else "of processor time "
    text = (
        f"A GiB first touched by {kind_name(worst.kind, findings.host)} takes "
        f"{time(worst.busy.median)} {times}and by a store {time(store.busy.median)}"
    )
    if floor and floor.busy:
        text += f"; MADV_POPULATE_WRITE takes {time(floor.busy.median)}"
    if not findings.doubled:
        return Sentence(about, f"{text}. No double fault is part of it.")
    if not differ(worst.busy, store.busy):
        return Sentence(about, f"{text}. The double fault's part is lost in the noise.")
    extra = time(worst.busy.median - store.busy.median)
    return Sentence(about, f"The double fault costs {extra} per GiB. {text}.")


def _huge_pages(findings: Findings) -> list[Sentence]:
    store, atomic = findings.touch("store", "2m"), findings.touch("ldadd", "2m")
    if not (store and atomic and store.faults and atomic.faults):
        return []
    name = kind_name("ldadd", findings.host)
    if atomic.faults > store.faults * 1.5:
        text = (
            f"With huge pages the first touch of 2 MiB by {name} takes {atomic.faults:,.0f} page "
            f"faults where a store takes {store.faults:,.0f}"
        )
        text += ": the huge page is lost to the atomics." if atomic.faults > 100 else "."
    else:
        text = (
            f"With huge pages {name} takes {atomic.faults:,.0f} page fault for 2 MiB, as stores do."
        )
    return [Sentence("huge pages", text)]


def _conflict(cache: CacheFinding) -> Sentence:
    level = cache.level.upper()
    about = f"set conflict, {level}"
    assert cache.used
    if not (cache.within and cache.beyond and differ(cache.within, cache.beyond)):
        return Sentence(about, f"A conflict in one set of the {level} costs nothing that shows.")
    extra = cache.beyond.median - cache.within.median
    return Sentence(
        about,
        f"A read that misses because one set of the {level} is full costs {extra:.1f} ns more "
        f"than one that hits: {cache.within.median:.1f} ns becomes {cache.beyond.median:.1f} ns "
        f"with {cache.used.ways + 1} lines in {cache.used.ways} ways.",
    )


def _zero_pages(findings: Findings) -> list[Sentence]:
    if findings.zero_pages is None or findings.zero_pages == 1:
        return []
    return [Sentence("zero pages", f"This kernel has {findings.zero_pages} zero pages already.")]


def _colors(finding: ColorFinding, findings: Findings) -> Sentence:
    level = finding.geometry.level.upper()
    about = f"colours, {level}"
    ways, page = str(finding.geometry), format_size(findings.host.page_size)
    if finding.colors == 1:
        return Sentence(
            about,
            f"Colour zero pages would change nothing in the {level}: its {ways} are no larger "
            f"than a page of {page}, which makes one colour.",
        )
    start = f"The {level}, {ways}, has {finding.colors} colours"
    meeting, apart, spread = finding.meeting, finding.apart, finding.spread
    if not (meeting and apart and spread and finding.mean):
        return Sentence(about, f"{start}; what they would do was not measured: "
                               f"{finding.unavailable}.")  # fmt: skip
    cache = next(c for c in findings.caches if c.level == finding.geometry.level)
    if cache.measured != finding.geometry:
        return Sentence(
            about,
            f"{start}, but whether they would matter cannot be seen here: {cache.agreement}.",
        )
    loop = f"a loop over {finding.geometry.ways} lines of one set and untouched memory"
    if not differ(meeting, apart):
        return Sentence(
            about,
            f"{start}, but they would not matter: {loop} takes {meeting.median:.1f} ns a round "
            f"where it meets the zero page's colour and {apart.median:.1f} ns where it does not.",
        )
    return Sentence(
        about,
        f"{start}: {loop} takes {meeting.median:.1f} ns a round if it has the zero page's colour "
        f"(1 in {finding.colors}) and {apart.median:.1f} ns if not; with {finding.colors} zero "
        f"pages it takes {spread.median:.1f} ns whatever its colour. So colours would change the "
        f"worst case by {percent_change(spread.median, meeting.median)} and the mean by "
        f"{percent_change(spread.median, finding.mean)}.",
    )


def _no_geometry(findings: Findings) -> str:
    reasons = "; ".join(f"{cache.level.upper()}: {cache.agreement}" for cache in findings.caches)
    return (
        "Whether colours would matter is not known: sysfs does not have the ways of the caches, "
        f"and they cannot be measured either ({reasons})."
    )


def _certainty(findings: Findings) -> list[Sentence]:
    sentences = []
    if findings.noisy:
        host = findings.host
        load = f" (the load is {host.load:.1f} on {host.cpus} CPUs)" if host.load else ""
        governor = (
            f" and set the {host.governor} frequency governor to performance"
            if host.governor not in (None, "performance")
            else ""
        )
        sentences.append(
            f"This machine is too noisy to be sure of the times of {'; '.join(findings.noisy)}: "
            f"stop other programs{load}{governor}, and survey again with a larger --seconds. "
            "Page faults are counts, which noise does not change."
        )
    if findings.few < ENOUGH:
        times = "1 repetition" if findings.few == 1 else f"{findings.few} repetitions"
        sentences.append(f"Some figures rest on {times}: give more by --seconds.")
    sentences += [f"This failed and was left out: {failure}" for failure in findings.failures]
    return [Sentence("certainty", text) for text in sentences]
