# SPDX-License-Identifier: GPL-2.0
"""The sentences and tables of a survey, from a recorded survey and made-up hosts."""

import io
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.console import Console

from firsttouch.survey.findings import ATOMICS, examine
from firsttouch.survey.printing import print_survey
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import Sample, Survey
from firsttouch.vm.host import Condition
from tests.support.golden import Golden
from tests.support.surveys import HOST, SLOWER, TWICE, made, recorded

_NO_LSE = dict.fromkeys(("ldadd", "swp", "cas", "casp"), "this CPU has no LSE")
_NO_MEMORY = dict.fromkeys(("store", *ATOMICS, "madvise", "read", "load-store"), "no memory")
_HUGE = {f"2m {kind}": 100_000.0 for kind in ("store", "ldadd", "ldxr", "madvise")}
_FAILED = Sample("conflict l2 9", 0, error="ftbench: set-conflict: no huge page")

_CASES: Mapping[str, Survey] = {
    "one fault": made(),
    "recorded": recorded(),
    "two faults": made(HOST, TWICE, SLOWER),
    "two faults, features off": made(replace(HOST, write_intent="off"), TWICE, SLOWER),
    # 262,144 pages of 300 ns, and 16,384.
    "two faults, 64 KiB pages": made(replace(HOST, page_size=65536), TWICE, SLOWER),
    "two faults by ldxr": made(replace(HOST, write_intent="rmw"), {"ldxr": 2}, {"ldxr": 800}),
    "one fault, huge pages": made(HOST, nanoseconds=_HUGE),
    "no LSE": made(HOST, {"ldxr": 2}, {"ldxr": 900}, unavailable=_NO_LSE),
    "no memory": made(replace(HOST, thp={}), unavailable=_NO_MEMORY),
    "no time": made(rounds=0),
    "interrupted": replace(made(rounds=0), interrupted=True),
    "a failure": replace(made(unavailable={"l2 9": ""}), samples=(_FAILED, *made().samples[:60])),
    "noisy": made(replace(HOST, before=Condition(7.5, 0, "schedutil")), jitter=0.5),
    "a virtual machine, noisy": made(replace(HOST, virtual=True), jitter=90),
    "no caches": made(replace(HOST, caches=())),
}


@pytest.mark.parametrize("case", _CASES)
def test_sentences(case: str, golden: Golden) -> None:
    said = conclude(examine(_CASES[case]))
    assert said[0].about == "verdict" and len(said) <= 10
    # Only what this case changes.
    usual = conclude(examine(_CASES["one fault"]))
    own = said if case == "one fault" else [each for each in said if each not in usual]
    golden("\n".join(f"{sentence.about}: {sentence.text}" for sentence in own))


def _printed(survey: Survey, width: int) -> str:
    findings, output = examine(survey), io.StringIO()
    print_survey(findings, conclude(findings), Console(file=output, width=width))
    return output.getvalue()


@pytest.mark.parametrize("case", ["recorded", "no memory"])
def test_tables(case: str, golden: Golden) -> None:
    golden("\n".join(map(str.rstrip, _printed(_CASES[case], 100).splitlines())))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_every_terminal_shows_every_figure(width: int) -> None:
    wide, narrow = _printed(recorded(), 100), _printed(recorded(), width)
    assert max(map(len, narrow.splitlines())) <= width and "…" not in narrow
    assert set(re.findall(r"\d[\d,]*\.\d+", wide)) <= set(re.findall(r"\d[\d,]*\.\d+", narrow))


def test_the_first_round_is_left_out_of_medians() -> None:
    survey = made(rounds=4)
    slow = [
        replace(s, metrics={**s.metrics, "sys_ns": 9e9}) if s.round == 0 else s
        for s in survey.samples
    ]
    store = examine(replace(survey, samples=tuple(slow))).touch("store")
    assert store and store.busy
    assert (store.busy.median, len(store.busy.samples)) == (500, 3)
