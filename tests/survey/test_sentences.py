# SPDX-License-Identifier: GPL-2.0
"""The sentences that a survey ends in, from recorded surveys and simulated hosts."""

from __future__ import annotations

import dataclasses
import io
import math
import re
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from rich.console import Console

from firsttouch.survey.findings import ATOMICS, Findings, examine
from firsttouch.survey.printing import print_survey
from firsttouch.survey.samples import Line, Sample, Survey
from firsttouch.survey.sentences import conclude
from tests.support.golden import Golden
from tests.support.surveys import (
    N1,
    N1_HOST,
    SOME_HOST,
    K,
    Silicon,
    color_samples,
    doubled,
    examined,
    recorded,
    texts,
    touches,
)

# Sets that no test fills.
_FLAT = Silicon(64, 16 * K, 64, 128 * K)
# Nanoseconds a page of 2 MiB: a GiB of them takes 51.2 ms, in base pages 131 ms.
_HUGE = {f"2m {kind}": 100_000.0 for kind in ("store", "ldadd", "ldxr", "madvise")}
_NO_LSE = dict.fromkeys(("ldadd", "swp", "cas", "casp"), "this CPU has no LSE")
_NO_MEMORY = dict.fromkeys(("store", *ATOMICS, "madvise", "read", "load-store"), "no memory")
_FRAGMENTED = {f"2m {kind}": "memory is fragmented" for kind in ("store", "ldadd", "madvise")}
_RECORDED = ("stock", "off", "on", "x86-64")


def _recorded(name: str) -> Findings:
    return examine(recorded(name))


def _with_huge_pages(
    enabled: str = "madvise",
    shmem: str = "never",
    *,
    faults: Mapping[str, float] | None = None,
    factor: float = 1.0,
    jitter: float = 0.0,
    unavailable: Mapping[str, str] | None = None,
) -> Findings:
    """Return the findings of a host with huge pages, which take `factor` times _HUGE."""
    thp = {"enabled": enabled, "shmem_enabled": shmem, "hpage_pmd_size": str(2 << 20)}
    host = dataclasses.replace(N1_HOST, thp=thp, nr_hugepages=0)
    times = {kind: factor * time for kind, time in _HUGE.items()}
    samples = touches(host, faults or {}, times, jitter=jitter, unavailable=unavailable)
    return examined(host, samples)


def _colors(silicon: Silicon, *, virtual: bool = False, meeting: float = 80.0) -> Findings:
    host = dataclasses.replace(N1_HOST, virtual=virtual)
    colors = color_samples(host, meeting=meeting, apart=10, spread=min(meeting, 20))
    return examined(host, [*silicon.conflict_samples(host), *colors])


def _noisy(seconds: int | None, jitter: float) -> Findings:
    host = dataclasses.replace(N1_HOST, governor="schedutil")
    samples = touches(host, {}, {}, jitter=jitter)
    return examine(Survey(host, (), tuple(samples), seconds=seconds))


def _failed() -> Findings:
    failure = Sample("colors l2 1 0", 0, None, "ftbench: colors-here: hot line 0 is off")
    return examined(N1_HOST, [*touches(N1_HOST, {}, {}), failure])


def _shaken(sample: Sample) -> Sample:
    """Return a sample with the time of a disturbed run in the last two of three rounds."""
    assert sample.line is not None
    shift = {0: 0.0, 1: 0.0, 2: 20.0}[sample.round] * sample.line.metrics["reads"]
    metrics = {**sample.line.metrics, "sys_ns": shift}
    return dataclasses.replace(sample, line=dataclasses.replace(sample.line, metrics=metrics))


# What there is to say something of, and about what; all, if nothing is named.
_CASES: Mapping[str, tuple[Callable[[], Findings], tuple[str, ...]]] = {
    **{f"recorded {name}": (partial(_recorded, name), ()) for name in _RECORDED},
    "two faults": (lambda: doubled(N1_HOST), ("verdict", "cost", "certainty")),
    "two faults, no huge pages": (
        lambda: doubled(dataclasses.replace(N1_HOST, thp={"enabled": "never"})),
        ("today",),
    ),
    "two faults, features off": (
        lambda: doubled(dataclasses.replace(N1_HOST, write_intent="off")),
        ("verdict", "today"),
    ),
    "two faults, fault-ahead off": (
        lambda: doubled(dataclasses.replace(N1_HOST, fault_ahead=0)),
        ("today",),
    ),
    "fault-ahead": (
        lambda: examined(
            dataclasses.replace(N1_HOST, fault_ahead=65536), touches(N1_HOST, {"ldadd": 0.4}, {})
        ),
        ("double fault",),
    ),
    "two faults, rounds 2": (lambda: doubled(N1_HOST, rounds=2), ("certainty",)),
    # 262,144 pages of 300 ns, and 16,384.
    "two faults, 64 KiB pages": (
        lambda: doubled(dataclasses.replace(N1_HOST, page_size=65536)),
        ("cost", "colours, L1D"),
    ),
    # Faults are counts: noise does not change them.
    "two faults, noisy": (
        lambda: doubled(dataclasses.replace(N1_HOST, load=7.5, governor="schedutil"), jitter=0.5),
        ("double fault", "certainty"),
    ),
    "two faults by ldxr alone, mode rmw": (
        lambda: examined(
            dataclasses.replace(N1_HOST, write_intent="rmw"),
            touches(N1_HOST, {"ldxr": 2}, {"ldxr": 800}),
        ),
        ("double fault", "cost", "JVM", "today"),
    ),
    "no LSE": (
        lambda: examined(
            N1_HOST, touches(N1_HOST, {"ldxr": 2}, {"ldxr": 900}, unavailable=_NO_LSE)
        ),
        ("double fault", "cost"),
    ),
    "one fault": (lambda: examined(N1_HOST, touches(N1_HOST, {}, {})), ("verdict",)),
    "nothing measured": (
        lambda: examined(SOME_HOST, touches(SOME_HOST, {}, {}, unavailable=_NO_MEMORY)),
        ("double fault", "cost", "colours", "JVM", "PostgreSQL", "memory stores"),
    ),
    "no time": (lambda: examined(N1_HOST, []), ("verdict", "double fault")),
    "a failure": (_failed, ("certainty",)),
    "a cost within the noise": (
        lambda: examined(
            N1_HOST,
            touches(N1_HOST, dict.fromkeys(ATOMICS, 2), dict.fromkeys(ATOMICS, 550), jitter=0.4),
        ),
        ("cost",),
    ),
    # The mean of one zero page: (80 + 3 * 10) / 4 = 27.5.
    "colours that matter": (lambda: _colors(N1), ("colours, L1D",)),
    "colours that do not matter": (lambda: _colors(N1, meeting=10), ("colours, L1D",)),
    "colours that do not show": (lambda: _colors(_FLAT, virtual=True), ("colours, L1D",)),
    "a step within the noise": (
        lambda: examined(N1_HOST, map(_shaken, N1.conflict_samples(N1_HOST))),
        ("set conflict, L1D",),
    ),
    "huge pages": (_with_huge_pages, ("verdict", "JVM", "PostgreSQL", "memory stores")),
    "huge pages, noisy": (lambda: _with_huge_pages(factor=2.0, jitter=0.8), ("JVM",)),
    "huge pages that cost more": (lambda: _with_huge_pages(factor=4.0), ("JVM",)),
    "huge pages never": (lambda: _with_huge_pages("never"), ("JVM", "memory stores")),
    "huge pages always": (lambda: _with_huge_pages("always"), ("JVM", "memory stores")),
    "huge pages always, split by atomics": (
        lambda: _with_huge_pages(
            "always", faults={"2m ldadd": 513.0, "2m ldxr": 513.0, "ldxr": 2.0}
        ),
        ("JVM",),
    ),
    "huge pages, none to be had": (lambda: _with_huge_pages(unavailable=_FRAGMENTED), ("JVM",)),
    "huge pages, shared by advice": (lambda: _with_huge_pages(shmem="advise"), ("PostgreSQL",)),
    "huge pages, shared within size": (
        lambda: _with_huge_pages(shmem="within_size"),
        ("PostgreSQL",),
    ),
    "a guest, noisy": (lambda: _noisy(None, 0.5), ("certainty",)),
    "more seconds would help": (lambda: _noisy(45, 0.25), ("certainty",)),
    "more seconds would not help": (lambda: _noisy(45, 9.0), ("certainty",)),
}


@pytest.mark.parametrize("case", _CASES)
def test_what_is_said(case: str, golden: Golden) -> None:
    findings, abouts = _CASES[case]
    said = conclude(findings())
    golden("\n".join(f"{s.about}: {s.text}" for s in said if not abouts or s.about in abouts))


def test_the_verdict_is_said_and_printed_first() -> None:
    findings = doubled(N1_HOST)
    first = conclude(findings)[0]
    assert first.about == "verdict"
    output = io.StringIO()
    print_survey(recorded("stock"), findings, conclude(findings), Console(file=output, width=200))
    assert output.getvalue().startswith(first.text[:60])


def test_a_narrow_terminal_has_no_place_for_figures_that_there_are_not() -> None:
    survey = recorded("stock")
    findings = examine(survey)
    printed = {}
    for width in (60, 200):
        output = io.StringIO()
        print_survey(survey, findings, conclude(findings), Console(file=output, width=width))
        printed[width] = output.getvalue()
    assert re.search(r" - ", printed[200])
    assert not re.search(r" -\s", printed[60])
    assert "ways 4" in printed[60]


def test_each_headline_time_has_its_spread() -> None:
    # 500 to 750 ns in base pages: the middle half is 250 ns wide.
    findings = doubled(N1_HOST, jitter=0.25)
    for about in ("verdict", "cost", "today"):
        said = texts(findings, about)
        assert re.search(r"\d ± [1-9]", said), about
        assert not re.search(r"\d (?<!± \d )(?<!± \d\d )ms", re.sub(r"± [\d.,]+ ms", "", said))


@pytest.mark.parametrize("name", _RECORDED)
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_every_terminal_shows_every_figure_and_sentence(name: str, width: int) -> None:
    survey = recorded(name)
    findings = examine(survey)
    printed = []
    for columns in (100, width):
        output = io.StringIO()
        print_survey(survey, findings, conclude(findings), Console(file=output, width=columns))
        assert max(map(len, output.getvalue().splitlines())) <= columns
        assert "…" not in output.getvalue()
        printed.append(set(re.findall(r"\d[\d,]*\.\d+", output.getvalue())))
        for sentence in conclude(findings):
            # A word that is longer than a line is broken.
            first = "".join(sentence.text.split()[:4])
            assert first in "".join(output.getvalue().split())
    assert printed[0] <= printed[1]


# -- what the findings hold that sentences are made of


def test_a_virtual_machine_without_a_pmu_has_no_counters() -> None:
    findings = examine(recorded("x86-64"))
    counters = {finding.name: finding.unavailable for finding in findings.counters}
    assert len(counters) == 10
    assert all("virtual machine without a PMU" in reason for reason in counters.values())
    # load-store faults twice on every host: it is not an atomic.
    load_store = findings.touch("load-store")
    assert load_store and load_store.faults == 2


def test_what_is_missing_has_its_reason() -> None:
    findings = _CASES["no LSE"][0]()
    assert {t.kind: t.unavailable for t in findings.touches if t.unavailable} == _NO_LSE
    nothing = examined(N1_HOST, [])
    reasons = [t.unavailable for t in nothing.touches]
    reasons += [counter.unavailable for counter in nothing.counters]
    assert len(reasons) == 9 + 10
    assert all("no time" in reason for reason in reasons)


@pytest.mark.parametrize("visible", [True, False])
def test_noise_counts_where_something_is_concluded(visible: bool) -> None:
    silicon = N1 if visible else _FLAT
    times = iter([10, 80] * 99)
    colors = [
        dataclasses.replace(
            sample,
            line=dataclasses.replace(
                sample.line, metrics={"user_ns": next(times) * 1000, "sys_ns": 0}
            ),
        )
        for sample in color_samples(N1_HOST, meeting=80, apart=10, spread=20)
        if sample.line
    ]
    noisy = examined(N1_HOST, [*silicon.conflict_samples(N1_HOST), *colors]).noisy
    assert ("L1D, one zero page" in noisy) == visible


def test_the_first_round_is_left_out_of_medians() -> None:
    samples = [
        dataclasses.replace(sample, line=_slower(sample.line)) if sample.round == 0 else sample
        for sample in touches(N1_HOST, {}, {}, rounds=4)
    ]
    store = examined(N1_HOST, samples).touch("store")
    assert store and store.busy
    assert (store.busy.median, store.busy.samples) == (500, 3)


def _slower(measured: Line | None) -> Line:
    assert measured is not None
    metrics = {name: 100 * value for name, value in measured.metrics.items()}
    return dataclasses.replace(measured, metrics=metrics)


def test_the_time_that_is_advised_is_enough() -> None:
    """As many more samples as the advice says make every figure certain."""
    samples = touches(N1_HOST, {}, {}, jitter=0.25, rounds=7)
    findings = examine(Survey(N1_HOST, (), tuple(samples), seconds=40))
    assert findings.noisy and findings.seconds_needed
    more = 1 + 6 * math.ceil(findings.seconds_needed / 40)
    longer = touches(N1_HOST, {}, {}, jitter=0.25, rounds=more)
    assert not examined(N1_HOST, longer).noisy
