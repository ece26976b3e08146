# SPDX-License-Identifier: GPL-2.0
"""What a survey advises: first of all, for programs, and to be certain."""

from __future__ import annotations

import dataclasses
import math

import pytest

from firsttouch.survey.findings import Findings, examine
from firsttouch.survey.host import Host
from firsttouch.survey.samples import Survey
from firsttouch.survey.sentences import conclude
from tests.support.surveys import N1_HOST, doubled, examined, recorded, texts, touches

THP_HOST = dataclasses.replace(
    N1_HOST,
    thp={"enabled": "madvise", "shmem_enabled": "never", "hpage_pmd_size": str(2 << 20)},
    nr_hugepages=0,
)
# Nanoseconds a page of 2 MiB: a GiB of them takes 51.2 ms, in base pages 131 ms.
HUGE = {f"2m {kind}": 100_000.0 for kind in ("store", "ldadd", "ldxr", "madvise")}


def _with_huge_pages(host: Host, huge: float = 1.0, *, jitter: float = 0.0) -> Findings:
    times = {kind: huge * time for kind, time in HUGE.items()}
    return examined(host, touches(host, {}, times, jitter=jitter))


def test_the_verdict_comes_first_and_says_what_to_do() -> None:
    first = conclude(doubled(N1_HOST))[0]
    assert first.about == "verdict"
    assert first.text.startswith("This host is affected: atomics take two faults")
    assert "which costs 78.6 ± 0.0 ms per GiB. Populate memory by madvise" in first.text
    switched_off = dataclasses.replace(N1_HOST, write_intent="off")
    assert "`echo exclusive > " in texts(doubled(switched_off), "verdict")
    well = _with_huge_pages(THP_HOST)
    assert conclude(well)[0].text == (
        "This host is not affected: atomics take one fault at the first touch of a page. Use huge "
        "pages where you can: a first touch of a GiB takes 51.2 ± 0.0 ms in place of 131 ± 0 ms."
    )
    assert texts(examined(N1_HOST, touches(N1_HOST, {}, {})), "verdict").endswith(
        "No setting has to change."
    )
    assert texts(examined(N1_HOST, []), "verdict").startswith("Whether this host is affected is")
    assert texts(examine(recorded("stock")), "verdict").startswith("This guest is affected")


def test_a_jvm_gains_by_huge_pages() -> None:
    said = texts(_with_huge_pages(THP_HOST), "JVM")
    assert "one fault a page here: add -XX:+UseTransparentHugePages" in said
    assert "512 page faults and 51.2 ± 0.0 ms in huge pages" in said
    assert "262,144 and 131 ± 0 ms in base pages (ldxr)" in said
    assert "noise" not in said


def test_a_jvm_where_noise_hides_what_huge_pages_gain() -> None:
    said = texts(_with_huge_pages(THP_HOST, 2.0, jitter=0.8), "JVM")
    assert "add -XX:+UseTransparentHugePages" in said
    assert "the times differ by no more than the noise" in said


def test_a_jvm_where_huge_pages_cost_more() -> None:
    said = texts(_with_huge_pages(THP_HOST, 4.0), "JVM")
    assert "huge pages do not make it cheaper" in said
    assert "-XX:+UseTransparentHugePages" not in said


@pytest.mark.parametrize(
    ("enabled", "fragment"),
    [
        ("never", "-XX:+UseTransparentHugePages changes nothing while"),
        ("always", "gets huge pages here without -XX:+UseTransparentHugePages"),
    ],
)
def test_a_jvm_under_other_policies(enabled: str, fragment: str) -> None:
    host = dataclasses.replace(THP_HOST, thp={**THP_HOST.thp, "enabled": enabled})
    assert fragment in texts(_with_huge_pages(host), "JVM")


def test_a_jvm_whose_atomics_split_the_huge_pages() -> None:
    host = dataclasses.replace(THP_HOST, thp={**THP_HOST.thp, "enabled": "always"})
    faults = {"2m ldadd": 513.0, "2m ldxr": 513.0, "ldxr": 2.0}
    said = texts(examined(host, touches(host, faults, HUGE)), "JVM")
    assert "two faults a page" in said
    assert "add -XX:+UseTransparentHugePages" in said


def test_a_jvm_where_no_huge_page_was_to_be_had() -> None:
    missing = {f"2m {kind}": "memory is fragmented" for kind in ("store", "ldadd", "madvise")}
    findings = examined(THP_HOST, touches(THP_HOST, {}, {}, unavailable=missing))
    assert "was not measured: memory is fragmented" in texts(findings, "JVM")


@pytest.mark.parametrize(
    ("shared", "fragments"),
    [
        ("never", ["huge_pages at try", "sysctl vm.nr_hugepages", "0 are reserved now"]),
        ("advise", ["huge_pages at try", "because shmem_enabled is advise"]),
        ("within_size", ["without a setting of PostgreSQL"]),
    ],
)
def test_postgresql(shared: str, fragments: list[str]) -> None:
    host = dataclasses.replace(THP_HOST, thp={**THP_HOST.thp, "shmem_enabled": shared})
    said = texts(_with_huge_pages(host), "PostgreSQL")
    for fragment in [*fragments, "51.2 ± 0.0 ms in huge pages", "131 ± 0 ms in base pages"]:
        assert fragment in said


@pytest.mark.parametrize(
    ("enabled", "fragment"),
    [("always", "`echo madvise > "), ("madvise", "leave "), ("never", "")],
)
def test_stores_in_memory(enabled: str, fragment: str) -> None:
    host = dataclasses.replace(THP_HOST, thp={**THP_HOST.thp, "enabled": enabled})
    said = texts(_with_huge_pages(host), "memory stores")
    assert fragment in said
    assert ("100 ± 0 us for a huge page, 0.50 ± 0.00 us for a base page" in said) == bool(fragment)


@pytest.mark.parametrize(
    ("seconds", "jitter", "fragment"),
    [
        (None, 0.5, "schedutil"),
        (45, 0.25, "or survey again with --seconds "),
        (45, 9.0, "a larger --seconds alone would not help"),
    ],
)
def test_more_time_is_advised_where_it_helps(
    seconds: int | None, jitter: float, fragment: str
) -> None:
    host = dataclasses.replace(N1_HOST, governor="schedutil")
    samples = touches(host, {}, {}, jitter=jitter)
    findings = examine(Survey(host, (), tuple(samples), seconds=seconds))
    said = texts(findings, "certainty")
    assert fragment in said
    assert ("--seconds" in said) == (seconds is not None)


def test_the_time_that_is_advised_is_enough() -> None:
    """As many more samples as the advice says make every figure certain."""
    samples = touches(N1_HOST, {}, {}, jitter=0.25, rounds=7)
    findings = examine(Survey(N1_HOST, (), tuple(samples), seconds=40))
    assert findings.noisy and findings.seconds_needed
    more = 1 + 6 * math.ceil(findings.seconds_needed / 40)
    longer = touches(N1_HOST, {}, {}, jitter=0.25, rounds=more)
    assert not examined(N1_HOST, longer).noisy
