# SPDX-License-Identifier: GPL-2.0
"""What a person can act on: the findings in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from firsttouch.quantities import format_size
from firsttouch.survey.host import WRITE_INTENT
from firsttouch.survey.findings import ColorFinding, Findings, TouchFinding
from firsttouch.survey.geometry import CacheFinding, describe
from firsttouch.survey.tasks import FLOOR, kind_name
from firsttouch.survey.samples import Figure, differ

ATOMICS = ("ldadd", "swp", "cas", "casp", "ldxr")
_GIB = 1 << 30
# Fewer repetitions than this have no spread to speak of.
ENOUGH = 3


@dataclass(frozen=True)
class Sentence:
    """One answer; `about` is the question in a word or two."""

    about: str
    text: str


def conclude(findings: Findings) -> list[Sentence]:
    """Return the sentences that a survey ends in."""
    sentences = [_double_fault(findings), _cost(findings)]
    sentences += _huge_pages(findings)
    sentences += [_conflict(cache) for cache in findings.caches if cache.measured and cache.beyond]
    sentences += _zero_pages(findings)
    sentences += [_colors(finding, findings) for finding in findings.colors] or [
        Sentence("colours", _no_geometry(findings))
    ]
    sentences += _today(findings)
    sentences += _certainty(findings)
    return sentences


def doubled(findings: Findings) -> list[TouchFinding]:
    """Return the atomics whose first touch takes more than one fault a page."""
    return [t for t in _atomics(findings) if t.faults is not None and t.faults > 1.5]


def _atomics(findings: Findings) -> list[TouchFinding]:
    return [touch for kind in ATOMICS if (touch := findings.touch(kind))]


def _names(touches: list[TouchFinding], findings: Findings) -> str:
    names = [kind_name(touch.kind, findings.facts) for touch in touches]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _double_fault(findings: Findings) -> Sentence:
    about = "double fault"
    atomics, twice = _atomics(findings), doubled(findings)
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
    if findings.facts.architecture == "x86-64":
        return Sentence(about, f"{text}; x86-64 reports it as a write.")
    if findings.facts.write_intent:
        return Sentence(
            about,
            f"{text}: this kernel has write-intent faults (mode {findings.facts.write_intent}).",
        )
    return Sentence(about, f"{text}: it is handled as the write that it will be.")


def per_gib(value: Figure, page_size: int, findings: Findings) -> str:
    """Return a time per page of `page_size` bytes as the time of a GiB."""
    return _amount(value.median * _GIB / page_size, findings)


def _amount(nanoseconds: float, findings: Findings) -> str:
    if findings.virtual_time:
        return f"{nanoseconds / 1e6:,.0f} million instructions"
    return f"{nanoseconds / 1e6:,.0f} ms"


def _cost(findings: Findings) -> Sentence:
    about = "cost"
    store, floor = findings.touch("store"), findings.touch(FLOOR)
    worst = next(iter(doubled(findings) or _atomics(findings)), None)
    if not (store and worst and store.busy and worst.busy):
        return Sentence(about, "What that costs is not known: the touches were not measured.")
    times = "" if findings.virtual_time else "of processor time "
    name = kind_name(worst.kind, findings.facts)
    size = worst.page_size
    text = f"A GiB first touched by {name} takes {per_gib(worst.busy, size, findings)} {times}"
    text += f"and by a store {per_gib(store.busy, size, findings)}"
    if floor and floor.busy:
        text += f"; MADV_POPULATE_WRITE takes {per_gib(floor.busy, size, findings)}"
    extra = (worst.busy.median - store.busy.median) * _GIB / size
    if not doubled(findings):
        return Sentence(about, f"{text}. No double fault is part of it.")
    if not differ(worst.busy, store.busy):
        return Sentence(about, f"{text}. The double fault's part is lost in the noise.")
    return Sentence(about, f"The double fault costs {_amount(extra, findings)} per GiB. {text}.")


def _huge_pages(findings: Findings) -> list[Sentence]:
    store, atomic = findings.touch("store", "2m"), findings.touch("ldadd", "2m")
    if not (store and atomic and store.faults and atomic.faults):
        return []
    name = kind_name("ldadd", findings.facts)
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
    ways, page = describe(finding.geometry), format_size(findings.facts.page_size)
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
        f"worst case by {_percent(spread.median, meeting.median)} and the mean by "
        f"{_percent(spread.median, finding.mean)}.",
    )


def _percent(new: float, old: float) -> str:
    return f"{100 * (new - old) / old:+.0f} %"


def _no_geometry(findings: Findings) -> str:
    reasons = "; ".join(f"{cache.level.upper()}: {cache.agreement}" for cache in findings.caches)
    return (
        "Whether colours would matter is not known: the kernel does not tell the caches' ways, "
        f"and they cannot be seen either ({reasons})."
    )


def _today(findings: Findings) -> list[Sentence]:
    about = "today"
    arm64 = findings.facts.architecture == "arm64"
    twice = doubled(findings)
    sentences = []
    floor, store = findings.touch(FLOOR), findings.touch("store")
    worst = twice[0] if twice else None
    if worst and floor and worst.busy and floor.busy:
        size = worst.page_size
        sentences.append(
            "Populate by madvise(MADV_POPULATE_WRITE) (Linux 5.14), or by plain stores, before "
            f"atomics touch the memory: {per_gib(floor.busy, size, findings)} per GiB in place of "
            f"{per_gib(worst.busy, size, findings)}."
        )
    elif floor and store and floor.busy and store.busy and floor.busy.median < store.busy.median:
        size = store.page_size
        sentences.append(
            "To populate memory ahead of use, madvise(MADV_POPULATE_WRITE) is the cheapest way: "
            f"{per_gib(floor.busy, size, findings)} per GiB in place of a store's "
            f"{per_gib(store.busy, size, findings)}."
        )
    sentences.append(_thp_advice(findings))
    sentences.append(_jvm_advice(findings))
    if twice and findings.facts.write_intent:
        sentences.append(
            f"This kernel has write-intent faults, in mode {findings.facts.write_intent}: as root, "
            f"`echo exclusive > {WRITE_INTENT}` ends the double fault."
        )
    elif twice:
        sentences.append(
            "The kernel series ends the double fault for good: `firsttouch kernel series` writes "
            "it, docs/on-real-hardware.md tells how to build and install it."
        )
    elif not arm64:
        sentences.append("The kernel series is for arm64: it would change nothing on this machine.")
    return [Sentence(about, text) for text in sentences]


def _thp_advice(findings: Findings) -> str:
    enabled = findings.facts.thp.get("enabled")
    if enabled is None:
        return "This kernel has no transparent huge pages: each base page is a fault of its own."
    if enabled == "never":
        return (
            "Transparent huge pages are off: as root, `echo madvise > "
            "/sys/kernel/mm/transparent_hugepage/enabled` lets programs ask for them."
        )
    huge, small = findings.touch(FLOOR, "2m"), findings.touch(FLOOR)
    text = "Transparent huge pages are " + (
        "on for all memory" if enabled == "always" else "to be had by madvise(MADV_HUGEPAGE)"
    )
    if huge and small and huge.busy and small.busy:
        text += (
            f": populating a GiB in them takes {per_gib(huge.busy, huge.page_size, findings)}, "
            f"in base pages {per_gib(small.busy, small.page_size, findings)}"
        )
    atomic = findings.touch("ldadd", "2m")
    if atomic and atomic.faults and atomic.faults > 100:
        text += "; but not if atomics touch it first"
    return f"{text}."


def _jvm_advice(findings: Findings) -> str:
    exclusive = findings.touch("ldxr")
    if exclusive in doubled(findings):
        return (
            "A JVM with -XX:+AlwaysPreTouch takes two faults a page here (OpenJDK 21 and 25 touch "
            "the heap by load-exclusives): add -XX:+UseTransparentHugePages, with which it uses "
            "MADV_POPULATE_WRITE."
        )
    return "A JVM's -XX:+AlwaysPreTouch takes one fault a page here: no flag need change."


def _certainty(findings: Findings) -> list[Sentence]:
    sentences = []
    if findings.noisy:
        facts = findings.facts
        load = f" (the load is {facts.load:.1f} on {facts.cpus} CPUs)" if facts.load else ""
        governor = (
            f" and set the {facts.governor} frequency governor to performance"
            if facts.governor not in (None, "performance")
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
