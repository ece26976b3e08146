# SPDX-License-Identifier: GPL-2.0
"""The conclusions of a survey, in at most ten sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firsttouch.analysis.figures import Middle
from firsttouch.quantities import format_list, format_number_of, format_size
from firsttouch.survey.findings import ATOMICS, ConflictFinding, Findings, TouchFinding
from firsttouch.survey.tasks import FLOOR, kind_name
from firsttouch.vm.host import WRITE_INTENT

_GIB = 1 << 30
# What the sign means in all times.
PLUS_MINUS = "A time is a median; ± is half the width of the middle half of its samples."
# With fewer repetitions than this the spread means nothing.
_ENOUGH = 3
# With more page faults than these in 2 MiB, the huge page was split.
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
        Sentence("double fault", _double_fault(findings)),
        *(Sentence("cost", text) for text in _cost(findings)),
        *(Sentence("populate", text) for text in _populate(findings)),
        *(Sentence("huge pages", text) for text in _huge_pages(findings)),
        *(Sentence("set conflict", _conflict(found, findings)) for found in findings.conflicts),
        *(Sentence("certainty", text) for text in _certainty(findings)),
    ]


def per_gib(touch: TouchFinding, time: Middle | None = None) -> str:
    """Return a time per page, by default the processor time, as the time per GiB."""
    assert touch.busy
    return (time or touch.busy.middle).times(_GIB / touch.page_size / 1e6).words("ms")


def _no_atomics(findings: Findings) -> str:
    reasons = [t.unavailable for t in findings.touches if t.kind in ATOMICS]
    return reasons[0] if reasons else "nothing was measured"


def _verdict(findings: Findings) -> str:
    if not findings.atomics:
        return f"Whether this host is affected is not known: {_no_atomics(findings)}."
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


def _double_fault(findings: Findings) -> str:
    host, atomics, twice = findings.host, findings.atomics, findings.doubled
    if not atomics:
        return f"Whether atomics fault twice here is not known: {_no_atomics(findings)}."

    def names(touches: list[TouchFinding]) -> str:
        return format_list([kind_name(touch.kind, host) for touch in touches], len(ATOMICS))

    if twice:
        once = [touch for touch in atomics if touch not in twice]
        return (
            f"The first touch of a page by {names(twice)} takes {twice[0].faults:.2f} page faults, "
            f"by {names(once) if once else 'a store'} one."
        )
    text = (
        f"The first touch of a page by {names(atomics)} takes {atomics[0].faults:.2f} page faults, "
        "like a store's"
    )
    if host.architecture == "x86-64":
        return f"{text}: x86-64 reports it as a write."
    if host.fault_ahead:
        size = format_size(host.fault_ahead)
        return f"{text}: this kernel has fault-ahead (folios of up to {size})."
    if host.write_intent:
        return f"{text}: this kernel has write-intent faults (mode {host.write_intent})."
    return f"{text}: the fault is handled as a write."


def _cost(findings: Findings) -> Iterator[str]:
    store = findings.touch("store")
    worst = next(iter(findings.doubled or findings.atomics), None)
    if not (store and worst):
        yield "The cost is not known: the first touches were not measured."
        return
    text = (
        f"A GiB first touched by {kind_name(worst.kind, findings.host)} takes {per_gib(worst)} of "
        f"processor time, by a store {per_gib(store)}"
    )
    lost = findings.doubled and _extra(findings) is None
    yield f"{text}; the cost of the double fault is lost in the noise." if lost else f"{text}."


def _populate(findings: Findings) -> Iterator[str]:
    floor, store = findings.touch(FLOOR), findings.touch("store")
    if not (floor and store and floor.busy and store.busy and floor.busy.differs(store.busy)):
        return
    if floor.busy.median < store.busy.median:
        yield (
            "madvise(MADV_POPULATE_WRITE) is the cheapest way to populate memory: "
            f"{per_gib(floor)} per GiB."
        )


def _huge_pages(findings: Findings) -> Iterator[str]:
    host, store = findings.host, findings.touch("store")
    huge, atomic = findings.touch("store", "2m"), findings.touch("ldadd", "2m")
    if huge and store and huge.faults < _SPLIT:
        text = (
            f"In huge pages of 2 MiB a store touches a GiB with {_faults(huge)} and in "
            f"{per_gib(huge)}, in base pages with {_faults(store)} and in {per_gib(store)}"
        )
        if atomic and atomic.faults > _SPLIT:
            text += f"; {kind_name('ldadd', host)} as the first touch splits the huge page"
        yield f"{text}."


def _faults(touch: TouchFinding) -> str:
    return format_number_of(round(touch.faults * _GIB / touch.page_size), "faults")


def _conflict(found: ConflictFinding, findings: Findings) -> str:
    ways, level = found.cache.ways, found.cache.level.upper()
    if not (found.hit and found.conflict):
        return f"The set conflict of the {level} was not measured: {found.unavailable}."
    hit, conflict = found.hit.middle.words("ns"), found.conflict.middle.words("ns")
    text = f"One line more than the {ways} ways of a set of the {level} makes "
    if found.conflict.median > found.hit.median and found.hit.differs(found.conflict):
        text += f"a read take {conflict} instead of {hit}"
    else:
        text += f"no difference beyond noise ({conflict} a read instead of {hit})"
    if findings.host.virtual and found.cache.way_size > findings.host.page_size:
        # Guest and host addresses have the same bits only within a page.
        text += "; this virtual machine's physical addresses need not be the host's"
    return f"{text}."


def _certainty(findings: Findings) -> Iterator[str]:
    host = findings.host
    if findings.noisy:
        governor = (
            f", set the {host.before.governor} frequency governor to performance"
            if host.before.governor not in ("", "performance")
            else ""
        )
        cpus = format_number_of(host.online, "CPUs")
        yield (
            f"Times of {format_list(findings.noisy)} vary too much on this host: stop other "
            f"programs (the load is {host.before.load:.1f} on {cpus}){governor}, or "
            "give a larger --seconds; page faults are counts without noise."
        )
    if findings.interrupted:
        yield "The survey was interrupted: figures are from the samples before that."
    elif 0 < findings.few < _ENOUGH:
        times = format_number_of(findings.few, "repetitions")
        yield f"Some figures rest on {times}: give a larger --seconds."
    if findings.failures:
        yield f"Tasks that failed and are left out: {'; '.join(findings.failures)}."
