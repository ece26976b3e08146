# SPDX-License-Identifier: GPL-2.0
"""KTAP: nested suites, skips, suites that died, kernel logs around them."""

from __future__ import annotations

from tests.support.ktap import Case, parse

_KUNIT = """\
[    0.912345] KTAP version 1
[    0.912345] 1..2
[    0.912346]     KTAP version 1
[    0.912346]     # Subtest: color_zero_page
[    0.912346]     1..2
[    0.912350]     ok 1 sizes
[    0.912351] random: crng init done
[    0.912352]     not ok 2 grows
[    0.912353] # color_zero_page: pass:1 fail:1 skip:0 total:2
[    0.912354] not ok 1 color_zero_page
[    0.912355]     KTAP version 1
[    0.912355]     # Subtest: decoder
[    0.912355]     1..1
[    0.912356]         KTAP version 1
[    0.912356]         # Subtest: by_size
[    0.912357]         ok 1 32 bits
[    0.912358]         ok 2 64 bits # SKIP no such CPU
[    0.912359]     ok 1 by_size
[    0.912360] ok 2 decoder
"""


def test_nested_suites_of_a_kernel_log() -> None:
    assert parse(_KUNIT.splitlines()) == [
        Case("color_zero_page/sizes", "passed"),
        Case("color_zero_page/grows", "failed"),
        Case("decoder/by_size/32 bits", "passed"),
        Case("decoder/by_size/64 bits", "skipped", "no such CPU"),
    ]


def test_a_flat_kselftest() -> None:
    text = "TAP version 13\n1..3\nok 1 fork\n# a remark\nok 2 - mremap # SKIP one\nnot ok 3 cow\n"
    assert parse(text.splitlines()) == [
        Case("fork", "passed"),
        Case("mremap", "skipped", "one"),
        Case("cow", "failed"),
    ]


def test_an_expected_failure_passes() -> None:
    assert parse(["KTAP version 1", "1..1", "not ok 1 x # XFAIL known"]) == [
        Case("x", "passed", "known")
    ]


def test_a_suite_that_died_has_a_failed_case() -> None:
    text = "TAP version 13\n1..3\nok 1 fork\n"
    assert parse(text.splitlines()) == [
        Case("fork", "passed"),
        Case("plan", "failed", "2 of 3 results are missing"),
    ]


def test_a_nested_suite_that_died_has_a_failed_case() -> None:
    text = "KTAP version 1\n1..1\n    KTAP version 1\n    1..2\n    ok 1 a\nnot ok 1 suite\n"
    assert parse(text.splitlines()) == [
        Case("suite/a", "passed"),
        Case("suite/plan", "failed", "1 of 2 results are missing"),
    ]


def test_a_log_without_ktap_has_no_cases() -> None:
    assert parse(["[    0.1] Linux version 6.12", "ok then"]) == []
