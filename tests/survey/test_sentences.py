# SPDX-License-Identifier: GPL-2.0
"""The sentences that a survey ends in, from recorded surveys and simulated hosts."""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console

from firsttouch.survey.findings import ATOMICS, examine
from firsttouch.survey.printing import print_survey
from firsttouch.survey.samples import Line, Sample
from firsttouch.survey.sentences import conclude
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


def test_a_recorded_stock_guest_faults_twice() -> None:
    findings = examine(recorded("stock"))
    said = texts(findings, "double fault")
    assert said.startswith("Atomics fault twice here")
    assert "ldadd, swp, cas, casp and ldxr takes 2.00 page faults, by a store one" in said
    # The second fault takes 1,085 instructions a page, of which a GiB has 262,144.
    assert "The double fault costs 285 million instructions per GiB" in texts(findings, "cost")
    assert "513 page faults where a store takes 1" in texts(findings, "huge pages")
    today = texts(findings, "today")
    for advice in ("MADV_POPULATE_WRITE", "kernel series"):
        assert advice in today
    assert "takes two faults a page here" in texts(findings, "JVM")
    assert "add -XX:+UseTransparentHugePages" in texts(findings, "JVM")
    assert "certainty" not in {sentence.about for sentence in conclude(findings)}


def test_a_recorded_guest_with_both_features_does_not() -> None:
    findings = examine(recorded("on"))
    said = texts(findings, "double fault")
    assert said.startswith("Atomics do not fault twice here")
    assert "ldadd, swp, cas, casp and ldxr takes 1.00 page faults" in said
    assert "No double fault is part of it" in texts(findings, "cost")
    assert "1 page fault for 2 MiB" in texts(findings, "huge pages")
    assert "has write-intent faults (mode exclusive)" in said
    assert texts(findings, "zero pages") == "This kernel has 4 zero pages already."
    assert "takes one fault a page here: add -XX:+UseTransparentHugePages" in texts(findings, "JVM")
    assert "kernel series" not in texts(findings, "today")


def test_a_recorded_guest_that_has_the_features_switched_off() -> None:
    findings = examine(recorded("off"))
    assert texts(findings, "double fault").startswith("Atomics fault twice here")
    assert texts(findings, "zero pages") == ""
    today = texts(findings, "today")
    assert "write-intent faults, in mode off" in today
    assert "echo exclusive > /proc/sys/vm/write_intent" in today


def test_a_recorded_x86_virtual_machine() -> None:
    findings = examine(recorded("x86-64"))
    assert "LOCK CMPXCHG16B takes 1.00 page faults, like a store's" in texts(
        findings, "double fault"
    )
    assert "9 lines in 8 ways" in texts(findings, "set conflict, L1D")
    assert "which makes one colour" in texts(findings, "colours, L1D")
    assert "cannot be seen here" in texts(findings, "colours, L2")
    assert "would change nothing on this host" in texts(findings, "today")
    counters = {finding.name: finding.unavailable for finding in findings.counters}
    assert len(counters) == 10
    assert all("virtual machine without a PMU" in reason for reason in counters.values())
    # load-store faults twice on every host: it is not an atomic.
    load_store = findings.touch("load-store")
    assert load_store and load_store.faults == 2


@pytest.mark.parametrize("name", ["stock", "off", "on", "x86-64"])
def test_all_of_it_fits_the_terminal(name: str) -> None:
    survey = recorded(name)
    findings = examine(survey)
    output = io.StringIO()
    print_survey(survey, findings, conclude(findings), Console(file=output, width=100))
    text = output.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    for sentence in conclude(findings):
        first = " ".join(sentence.text.split()[:4])
        assert first in " ".join(text.split())


def test_what_the_double_fault_costs_and_what_to_do() -> None:
    host = dataclasses.replace(N1_HOST, thp={"enabled": "never"})
    findings = doubled(host)
    # 262,144 pages of 300 ns.
    assert "The double fault costs 78.6 ± 0.0 ms per GiB" in texts(findings, "cost")
    today = texts(findings, "today")
    assert "131 ± 0 ms per GiB in place of 210 ± 0 ms" in today
    assert "Transparent huge pages are off" in today


def test_only_kinds_that_fault_twice_are_named() -> None:
    findings = examined(N1_HOST, touches(N1_HOST, {"ldxr": 2}, {"ldxr": 800}))
    said = texts(findings, "double fault")
    assert "by ldxr takes 2.00 page faults, by ldadd, swp, cas and casp one." in said
    # 300 ns a page, of ldxr and not of ldadd.
    assert "The double fault costs 78.6 ± 0.0 ms per GiB. A GiB first touched by ldxr" in texts(
        findings, "cost"
    )
    assert "two faults a page" in texts(findings, "JVM")


def test_a_kernel_with_the_series_switched_off() -> None:
    host = dataclasses.replace(N1_HOST, write_intent="rmw")
    findings = examined(host, touches(host, {"ldxr": 2}, {"ldxr": 800}))
    today = texts(findings, "today")
    assert "in mode rmw" in today
    assert "echo exclusive > /proc/sys/vm/write_intent" in today
    assert "kernel series" not in today


def test_a_cpu_without_lse_has_load_exclusives() -> None:
    missing = dict.fromkeys(("ldadd", "swp", "cas", "casp"), "this CPU has no LSE")
    samples = touches(N1_HOST, {"ldxr": 2}, {"ldxr": 900}, unavailable=missing)
    findings = examined(N1_HOST, samples)
    assert "by ldxr takes 2.00 page faults, by a store one" in texts(findings, "double fault")
    assert "The double fault costs 105 ± 0 ms per GiB" in texts(findings, "cost")
    reasons = {t.kind: t.unavailable for t in findings.touches if t.unavailable}
    assert reasons == missing


def test_nothing_is_claimed_where_nothing_could_be_measured() -> None:
    host = SOME_HOST
    missing = dict.fromkeys(("store", *ATOMICS, "madvise", "read", "load-store"), "no memory")
    findings = examined(host, touches(host, {}, {}, unavailable=missing))
    assert "is not known: no memory" in texts(findings, "double fault")
    assert "is not known" in texts(findings, "cost")
    assert "is not known" in texts(findings, "colours")
    assert "two faults" not in texts(findings, "JVM")
    assert texts(findings, "PostgreSQL") == texts(findings, "memory stores") == ""


def test_what_the_double_fault_costs_with_64k_pages() -> None:
    host = dataclasses.replace(N1_HOST, page_size=65536)
    findings = doubled(host)
    assert "The double fault costs 4.92 ± 0.00 ms per GiB" in texts(findings, "cost")
    assert "which makes one colour" in texts(findings, "colours, L1D")


def test_colors_that_matter() -> None:
    samples = [
        *N1.conflict_samples(N1_HOST),
        *color_samples(N1_HOST, meeting=80, apart=10, spread=20),
    ]
    said = texts(examined(N1_HOST, samples), "colours, L1D")
    # The mean of one zero page: (80 + 3 * 10) / 4 = 27.5.
    assert "worst case by -75 % and the mean by -27 %" in said
    assert "(1 in 4)" in said


def test_colors_that_do_not_matter() -> None:
    samples = [
        *N1.conflict_samples(N1_HOST),
        *color_samples(N1_HOST, meeting=10, apart=10, spread=10),
    ]
    assert "would not matter" in texts(examined(N1_HOST, samples), "colours, L1D")


def test_colors_where_the_sets_do_not_show() -> None:
    host = dataclasses.replace(N1_HOST, virtual=True)
    samples = [
        *_FLAT.conflict_samples(host),
        *color_samples(host, meeting=80, apart=10, spread=20),
    ]
    assert "cannot be seen here" in texts(examined(host, samples), "colours, L1D")


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


def test_noise_is_named_with_its_remedy() -> None:
    host = dataclasses.replace(N1_HOST, load=7.5, governor="schedutil")
    findings = doubled(host, jitter=0.5)
    said = texts(findings, "certainty")
    assert "too noisy" in said
    assert "ldadd in 4 KiB pages" in said
    assert "the load is 7.5 on 4 CPUs" in said
    assert "schedutil" in said
    # Faults are counts: noise does not change them.
    assert "Atomics fault twice here" in texts(findings, "double fault")


def test_a_difference_within_the_noise_is_no_cost() -> None:
    samples = touches(N1_HOST, dict.fromkeys(ATOMICS, 2), dict.fromkeys(ATOMICS, 550), jitter=0.4)
    assert "lost in the noise" in texts(examined(N1_HOST, samples), "cost")


def test_few_repetitions_are_reported() -> None:
    findings = doubled(N1_HOST, rounds=2)
    assert "rest on 1 repetition" in texts(findings, "certainty")
    assert texts(doubled(N1_HOST), "certainty") == ""


def test_what_there_was_no_time_for_is_listed() -> None:
    findings = examined(N1_HOST, [])
    reasons = [t.unavailable for t in findings.touches]
    reasons += [counter.unavailable for counter in findings.counters]
    assert len(reasons) == 9 + 10
    assert all("no time" in reason for reason in reasons)
    assert "is not known: there was no time" in texts(findings, "double fault")


def test_a_failure_is_left_out_and_named() -> None:
    samples = touches(N1_HOST, {}, {})
    samples.append(Sample("colors l2 1 0", 0, None, "ftbench: colors-here: hot line 0 is off"))
    findings = examined(N1_HOST, samples)
    assert "hot line 0 is off" in texts(findings, "certainty")


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


def test_the_verdict_is_the_first_line_that_is_printed() -> None:
    survey = recorded("stock")
    findings = examine(survey)
    output = io.StringIO()
    print_survey(survey, findings, conclude(findings), Console(file=output, width=100))
    assert output.getvalue().startswith("This guest is affected: atomics take two faults")


def test_each_headline_time_has_its_spread() -> None:
    # 500 to 750 ns in base pages: the middle half is 250 ns wide.
    findings = doubled(N1_HOST, jitter=0.25)
    for about in ("verdict", "cost", "today"):
        said = texts(findings, about)
        assert re.search(r"\d ± [1-9]", said), about
        assert not re.search(r"\d (?<!± \d )(?<!± \d\d )ms", re.sub(r"± [\d.,]+ ms", "", said))


def test_a_step_whose_cost_is_noise_is_not_called_free() -> None:
    samples = [
        dataclasses.replace(sample, line=_shaken(sample)) for sample in N1.conflict_samples(N1_HOST)
    ]
    said = texts(examined(N1_HOST, samples), "set conflict, L1D")
    assert "lost in the noise" in said
    assert "costs nothing" not in said


def _shaken(sample: Sample) -> Line:
    """Return its line with the time of a disturbed run in the last two of three rounds."""
    assert sample.line is not None
    shift = {0: 0.0, 1: 0.0, 2: 20.0}[sample.round] * sample.line.metrics["reads"]
    metrics = {**sample.line.metrics, "sys_ns": shift}
    return dataclasses.replace(sample.line, metrics=metrics)


@pytest.mark.parametrize("name", ["stock", "x86-64"])
@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_every_figure(name: str, width: int) -> None:
    survey = recorded(name)
    findings = examine(survey)
    printed = []
    for columns in (100, width):
        output = io.StringIO()
        print_survey(survey, findings, conclude(findings), Console(file=output, width=columns))
        assert max(map(len, output.getvalue().splitlines())) <= columns
        assert "…" not in output.getvalue()
        printed.append(set(re.findall(r"\d[\d,]*\.\d+", output.getvalue())))
    assert printed[0] <= printed[1]
