# SPDX-License-Identifier: GPL-2.0
"""The conclusions of a survey: its findings in sentences."""

from __future__ import annotations

from firsttouch.quantities import format_size
from firsttouch.survey.advice import Sentence, advise, huge_pages
from firsttouch.survey.findings import ATOMICS, ColorFinding, Findings, TouchFinding
from firsttouch.survey.formats import per_gib, percent_change, with_spread
from firsttouch.survey.geometry import CacheFinding
from firsttouch.survey.host import REMEDY
from firsttouch.survey.samples import Figure, differ
from firsttouch.survey.tasks import FLOOR, kind_name

# With fewer repetitions than this the spread means nothing.
ENOUGH = 3
# Seconds. A longer survey does not help, because conditions on the host change meanwhile.
_WORTH_SECONDS = 600


def conclude(findings: Findings) -> list[Sentence]:
    """Return the conclusions from the findings of a survey."""
    sentences = [_verdict(findings), _double_fault(findings), _cost(findings)]
    sentences += _huge_pages(findings)
    sentences += [
        _conflict(cache)
        for cache in findings.caches
        if cache.measured and cache.within and cache.beyond
    ]
    sentences += _zero_pages(findings)
    sentences += [_colors(finding, findings) for finding in findings.colors] or [
        Sentence("colours", _no_geometry(findings))
    ]
    sentences += advise(findings)
    sentences += _certainty(findings)
    return sentences


def _names(touches: list[TouchFinding], findings: Findings) -> str:
    names = [kind_name(touch.kind, findings.host) for touch in touches]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verdict(findings: Findings) -> Sentence:
    """Return one sentence on whether the host is affected, and one on what to do."""
    place = "guest" if findings.virtual_time else "host"
    about = "verdict"
    if not findings.atomics:
        text = f"Whether this {place} is affected is not known: {_no_atomics(findings)}."
        return Sentence(about, text)
    if not findings.doubled:
        text = f"This {place} is not affected: atomics take one fault at the first touch of a page."
        huge = huge_pages(findings, "store")
        if huge and huge.faster:
            text += (
                " Use huge pages where you can: a first touch of a GiB takes "
                f"{_per_gib(huge.huge_time, huge.huge, findings)} in place of "
                f"{_per_gib(huge.small_time, huge.small, findings)}."
            )
        else:
            text += " No setting has to change."
        return Sentence(about, text)
    text = f"This {place} is affected: atomics take two faults at the first touch of a page"
    worst, store = findings.doubled[0], findings.touch("store")
    if store and store.busy and worst.busy and differ(worst.busy, store.busy):
        text += f", which costs {_per_gib(worst.busy.minus(store.busy), worst, findings)} per GiB"
    if findings.host.write_intent:
        return Sentence(about, f"{text}. As root, {REMEDY} ends it.")
    return Sentence(
        about,
        f"{text}. Populate memory by madvise(MADV_POPULATE_WRITE) before atomics touch it, or "
        "install the kernel series.",
    )


def _no_atomics(findings: Findings) -> str:
    reasons = [t.unavailable for t in findings.touches if t.kind in ATOMICS]
    return reasons[0] if reasons else "nothing was measured"


def _per_gib(time: Figure, touch: TouchFinding, findings: Findings) -> str:
    return per_gib(time, touch.page_size, virtual_time=findings.virtual_time)


def _double_fault(findings: Findings) -> Sentence:
    about = "double fault"
    atomics, twice = findings.atomics, findings.doubled
    if not atomics:
        why = _no_atomics(findings)
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
    if findings.host.fault_ahead:
        return Sentence(
            about,
            f"{text}: this kernel has fault-ahead (folios of up to "
            f"{format_size(findings.host.fault_ahead)}).",
        )
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
        return Sentence(about, "The cost is not known: the first touches were not measured.")
    page_size = worst.page_size

    def time(figure: Figure) -> str:
        return per_gib(figure, page_size, virtual_time=findings.virtual_time)

    times = "" if findings.virtual_time else "of processor time "
    text = (
        f"A GiB first touched by {kind_name(worst.kind, findings.host)} takes "
        f"{time(worst.busy)} {times}and by a store {time(store.busy)}"
    )
    if floor and floor.busy:
        text += f"; MADV_POPULATE_WRITE takes {time(floor.busy)}"
    if not findings.doubled:
        return Sentence(about, f"{text}. No double fault is part of it.")
    if not differ(worst.busy, store.busy):
        return Sentence(about, f"{text}. The cost of the double fault is lost in the noise.")
    extra = time(worst.busy.minus(store.busy))
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
        text += ": the atomic splits the huge page." if atomic.faults > 100 else "."
    else:
        text = (
            f"With huge pages {name} takes {atomic.faults:,.0f} page fault for 2 MiB, as stores do."
        )
    return [Sentence("huge pages", text)]


def _conflict(cache: CacheFinding) -> Sentence:
    level = cache.level.upper()
    about = f"set conflict, {level}"
    assert cache.used and cache.within and cache.beyond and cache.lines
    fit, missing = cache.lines
    within, beyond = with_spread(cache.within, "ns"), with_spread(cache.beyond, "ns")
    if not differ(cache.within, cache.beyond):
        return Sentence(
            about,
            f"The time of a read rises when one set of the {level} is full, but the difference is "
            f"lost in the noise: {within} with {fit} lines, {beyond} with {missing}.",
        )
    extra = with_spread(cache.beyond.minus(cache.within), "ns")
    return Sentence(
        about,
        f"A read that misses because one set of the {level} is full costs {extra} more than a "
        f"hit: {beyond} with {missing} lines in {cache.used.ways} ways, not {within}.",
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
        return Sentence(about, f"{start}; their effect was not measured: "
                               f"{finding.unavailable}.")  # fmt: skip
    cache = next(c for c in findings.caches if c.level == finding.geometry.level)
    if cache.measured != finding.geometry:
        return Sentence(
            about,
            f"{start}, but whether they matter cannot be seen here: {cache.agreement}.",
        )
    loop = f"a loop over {finding.geometry.ways} lines of one set and untouched memory"
    if not differ(meeting, apart):
        return Sentence(
            about,
            f"{start}, but they would not matter: {loop} takes {with_spread(meeting, 'ns')} a "
            f"round if it has the zero page's colour and {with_spread(apart, 'ns')} if not.",
        )
    return Sentence(
        about,
        f"{start}: {loop} takes {with_spread(meeting, 'ns')} a round if it has the zero page's "
        f"colour (1 in {finding.colors}) and {with_spread(apart, 'ns')} if not; with "
        f"{finding.colors} zero pages it takes {with_spread(spread, 'ns')} for any colour. "
        "Colour zero pages would change the worst case by "
        f"{percent_change(spread.median, meeting.median)} and the mean by "
        f"{percent_change(spread.median, finding.mean)}.",
    )


def _no_geometry(findings: Findings) -> str:
    reasons = "; ".join(f"{cache.level.upper()}: {cache.agreement}" for cache in findings.caches)
    return (
        "Whether colours matter is not known: sysfs does not have the ways of the caches, "
        f"and measurements do not show them ({reasons})."
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
            f"This host is too noisy for certain times of {'; '.join(findings.noisy)}: "
            f"stop other programs{load}{governor}{_more_time(findings)}. "
            "Page faults are counts, which noise does not change."
        )
    if findings.interrupted:
        sentences.append("The survey was interrupted: figures are from the samples before that.")
    elif findings.few < ENOUGH:
        times = "1 repetition" if findings.few == 1 else f"{findings.few} repetitions"
        sentences.append(f"Some figures rest on {times}: give a larger --seconds.")
    sentences += [f"This failed and was left out: {failure}" for failure in findings.failures]
    return [Sentence("certainty", text) for text in sentences]


def _more_time(findings: Findings) -> str:
    """Return how much more time would help; empty if that is not known."""
    if findings.seconds_needed is None:
        return ""
    if findings.seconds_needed > _WORTH_SECONDS:
        return ", and survey again; a larger --seconds alone would not help"
    return f", or survey again with --seconds {findings.seconds_needed}"
