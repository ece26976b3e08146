# SPDX-License-Identifier: GPL-2.0
"""The conclusions of a survey, in at most ten sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.analysis.figures import Middle
from firsttouch.quantities import format_list, format_number_of
from firsttouch.survey.findings import ATOMICS, ConflictFinding, Findings, TouchFinding
from firsttouch.survey.tasks import kind_name
from firsttouch.vm.host import WRITE_INTENT

_GIB = 1 << 30
# What the sign means in all times.
PLUS_MINUS = "Times are medians; ± is half the interquartile range of the samples."
# With more page faults than these in 2 MiB, there was no huge page.
_SPLIT = 100


@dataclass(frozen=True)
class Sentence:
    """One conclusion; `about` is its subject, in a word or two."""

    about: str
    text: str


def conclude(findings: Findings) -> list[Sentence]:
    """Return the conclusions from the findings of a survey; the first is the verdict."""
    return [
        Sentence("verdict", _verdict(findings)),
        *(Sentence("double fault", text) for text in _double_fault(findings)),
        *(Sentence("cost", text) for text in _cost(findings)),
        *(Sentence("huge pages", text) for text in _huge_pages(findings)),
        *(Sentence("set conflict", _conflict(found, findings)) for found in findings.conflicts),
        *(Sentence("certainty", text) for text in _certainty(findings)),
    ]


def per_gib(touch: TouchFinding, time: Middle | None = None) -> str:
    """Return a time per page, by default the processor time, as the time per GiB."""
    assert touch.busy
    return (time or touch.busy.middle).times(_GIB / touch.page_size / 1e6).words("ms")


def _verdict(findings: Findings) -> str:
    if not findings.atomics:
        reasons = [t.unavailable for t in findings.touches if t.kind in ATOMICS]
        why = next(filter(None, reasons), "no atomic was measured in base pages")
        return f"It is unknown whether this host is affected: {why}."
    if not findings.doubled:
        return "This host is not affected: atomics take one fault at the first touch of a page."
    text = "This host is affected: atomics take two faults at the first touch of a page"
    if (extra := _extra(findings)) is not None:
        text += f", which costs {per_gib(findings.doubled[0], extra)} per GiB"
    if findings.host.write_intent:
        return f"{text}. As root, `echo 1 > {WRITE_INTENT}` ends it."
    return (
        f"{text}. Populate memory by madvise(MADV_POPULATE_WRITE) before atomics touch it, or "
        "install the kernel series."
    )


def _extra(findings: Findings) -> Middle | None:
    """Return the cost of the double fault in ns a page; None if it is lost in the noise."""
    worst, store = findings.doubled[0], findings.touch("store")
    if not (store and store.busy and worst.busy and worst.busy.differs(store.busy)):
        return None
    return worst.busy.middle.minus(store.busy.middle)


def _double_fault(findings: Findings) -> Iterator[str]:
    twice = findings.doubled
    once = [touch for touch in findings.atomics if touch not in twice]
    for touches, store in ((twice, "a store takes one"), (once, "like a store")):
        if touches:
            names = format_list([kind_name(t.kind, findings.host) for t in touches], len(ATOMICS))
            faults = f"{touches[0].faults:.2f} page faults"
            yield f"The first touch of a page by {names} takes {faults}, {store}."


def _cost(findings: Findings) -> Iterator[str]:
    store = findings.touch("store")
    worst = next(iter(findings.doubled or findings.atomics), None)
    if not (store and worst):
        yield "The cost is unknown: first touches were not measured."
        return
    yield (
        f"First touches of 1 GiB take {per_gib(worst)} of CPU time by "
        f"{kind_name(worst.kind, findings.host)}, {per_gib(store)} by a store."
    )


def _huge_pages(findings: Findings) -> Iterator[str]:
    store, huge = findings.touch("store"), findings.touch("store", "2m")
    if huge and store and huge.faults < _SPLIT:
        yield (
            f"First touches of 1 GiB by a store take {_faults(huge)} and {per_gib(huge)} in 2 MiB "
            f"huge pages, {_faults(store)} and {per_gib(store)} in base pages."
        )


def _faults(touch: TouchFinding) -> str:
    return format_number_of(round(touch.faults * _GIB / touch.page_size), "faults")


def _conflict(found: ConflictFinding, findings: Findings) -> str:
    ways, level = found.cache.ways, found.cache.level.upper()
    if not (found.hit and found.conflict):
        return f"The set conflict of the {level} was not measured: {found.unavailable}."
    hit, conflict = found.hit.middle.words("ns"), found.conflict.middle.words("ns")
    text = f"With one line more than the {ways} ways of an {level} set, a read takes {conflict} "
    if found.conflict.median > found.hit.median and found.hit.differs(found.conflict):
        text += f"instead of {hit}"
    else:
        text += f"instead of {hit}, which is noise"
    if findings.host.virtual and found.cache.way_size > findings.host.page_size:
        # Guest and host addresses have the same bits only within a page.
        text += "; physical addresses of a virtual machine may differ from the host's"
    return f"{text}."


def _certainty(findings: Findings) -> Iterator[str]:
    if findings.noisy:
        yield (
            f"The times of {format_list(findings.noisy)} are too noisy: stop other programs (load "
            f"{findings.host.before.load:.1f}), set the frequency governor to performance, or use "
            "a larger --seconds."
        )
    if findings.interrupted:
        yield "The survey was interrupted: figures are from the samples before that."
    if findings.failures:
        yield f"Failed and left out: {'; '.join(findings.failures)}."
