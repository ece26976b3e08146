# SPDX-License-Identifier: GPL-2.0
"""Verdicts on what suites report, and stored outcomes: the basis of the kernel's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.catalog.machines import load_machine
from firsttouch.vm.guest import Guest
from firsttouch.vm.protocol import Done
from firsttouch.vm.supervision import GuestOutput
from tests.linux import outcomes
from tests.linux.outcomes import Outcomes
from tests.support.ktap import Case, parse
from tests.support.objections import names
from tests.support.verdicts import complaints, silent, worse

_PASSED, _FAILED, _SKIPPED = (
    Case("a", "passed"),
    Case("b", "failed", "why"),
    Case("c", "skipped"),
)


def test_a_suite_that_passes_is_good() -> None:
    assert not complaints([_PASSED, _SKIPPED])


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([], "no test was reported"),
        (parse(["TAP version 13", "1..0 # SKIP no feature"]), "no test was reported"),
        ([_SKIPPED], "every test was skipped"),
        ([_PASSED, _FAILED], "b: why"),
        (parse(["TAP version 13", "1..2", "ok 1 first"]), "1 of 2 results are missing"),
    ],
)
def test_a_suite_is_not_good_by_saying_nothing(cases: list[Case], said: str) -> None:
    assert any(said in complaint for complaint in complaints(cases))


def test_an_answer_must_be_reported_as_passed() -> None:
    assert not complaints([_PASSED], {"a"})
    assert complaints([_PASSED, _SKIPPED], {"c"})


def test_an_answer_names_tests_by_whole_words() -> None:
    assert names("read, r", "kind/read, r")
    assert not names("read, r", "kind/read, rw")


def test_two_broken_guests_are_not_alike_but_broken() -> None:
    broken = {("program", 0): _FAILED}
    assert silent(broken)
    assert silent({})
    assert not silent({**broken, ("program", 1): _SKIPPED})


def test_what_passed_before_must_pass_now() -> None:
    before = {("program", 0): _PASSED, ("program", 1): _FAILED}
    assert not worse(before, before)
    assert worse(before, {("program", 0): _FAILED}) == ["a"]
    assert worse(before, {}) == ["a"]


@pytest.fixture
def guest() -> Guest:
    return Guest(Path("Image"), Path("init"), load_machine("neoverse-n1"), (), ())


@pytest.fixture
def boots(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Guest]:
    """The guests that were run; none of them needs QEMU."""
    ran: list[Guest] = []

    def run_guest(guest: Guest, log: Path, *, silence: float, splats: bool) -> GuestOutput:
        ran.append(guest)
        log.write_text(f"boot {len(ran)}\n")
        return GuestOutput((Done(0, ("ok 1 first",)),), None)

    monkeypatch.setattr(outcomes, "run_guest", run_guest)
    monkeypatch.setattr(outcomes, "guest_key", lambda guest: str(guest.image))
    monkeypatch.setattr(outcomes, "KTAP", tmp_path / "ktap")
    return ran


def test_make_test_boots_every_guest(guest: Guest, boots: list[Guest], tmp_path: Path) -> None:
    Outcomes(tmp_path, lasting=True).of(guest, "one")
    for boot in (2, 3):
        assert Outcomes(tmp_path, lasting=False).of(guest, "one").log == (f"boot {boot}",)


def test_make_regress_goes_on_after_a_new_clone(
    guest: Guest, boots: list[Guest], tmp_path: Path
) -> None:
    first = Outcomes(tmp_path, lasting=True).of(guest, "6.12 lab: one")
    ktap = tmp_path / "ktap/6.12_lab_one.ktap"
    ktap.unlink()
    assert Outcomes(tmp_path, lasting=True).of(guest, "6.12 lab: one") == first
    assert ktap.read_text() == "ok 1 first\n"
    assert len(boots) == 1
    # A guest that may have splats and one that must not have different outcomes.
    Outcomes(tmp_path, lasting=True).of(guest, "6.12 lab: one", splats=True)
    assert len(boots) == 2
