# SPDX-License-Identifier: GPL-2.0
"""The kernel code's own tests, KUnit and kselftests, in guests of both releases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.arms import ARMS
from firsttouch.guest import Guest
from firsttouch.ktap import Case, parse
from firsttouch.machines import load_machine
from firsttouch.programs import SELFTESTS, build_program, build_selftests
from firsttouch.progress import Reporter
from firsttouch.sources import LINUX, KernelSource, releases

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]
Sources = Callable[[str], KernelSource]

# What a suite needs of its guest beyond the lab's; the others run on the
# lab's CPU, one at a time.
_SETTINGS: dict[str, Callable[[Guest], Guest]] = {
    "zero_page_mte_test": lambda guest: replace(guest, cpu="max", board=("mte=on",)),
}
_SUITES = sorted(
    re.findall(r"^TEST_GEN_PROGS \+= (\w+)$", (LINUX / SELFTESTS / "Makefile").read_text(), re.M)
)


def _report(cases: list[Case]) -> None:
    """Fail with the names of the tests that failed; a suite without tests fails too."""
    for case in cases:
        print(f"{case.outcome:8}{case.name} {case.why}")
    assert cases, "no test was reported"
    failed = [case.name for case in cases if case.outcome == "failed"]
    assert not failed, failed


@pytest.fixture
def guest(images: Images, reporter: Reporter) -> Callable[..., Guest]:
    def make(release: str, *boot: str) -> Guest:
        return Guest(
            images(release, True),
            build_program("guest", reporter),
            load_machine("neoverse-n1"),
            (*ARMS["on"].boot, *boot),
            (),
        )

    return make


@pytest.mark.parametrize("release", sorted(releases()))
def test_kunit(guest: Callable[..., Guest], tmp_path: Path, release: str) -> None:
    log = tmp_path / "log"
    guest(release, "kunit.enable=1").execute(log)
    _report(parse(log.read_text(errors="replace").splitlines()))


@pytest.mark.parametrize("suite", _SUITES)
@pytest.mark.parametrize("release", sorted(releases()))
def test_kselftest(
    guest: Callable[..., Guest],
    sources: Sources,
    reporter: Reporter,
    tmp_path: Path,
    release: str,
    suite: str,
) -> None:
    binaries = {path.name: path for path in build_selftests(sources(release), reporter)}
    machine = replace(guest(release), commands=(f"/{suite}",), files={f"/{suite}": binaries[suite]})
    if suite in _SETTINGS:
        machine = _SETTINGS[suite](machine)
    (done,) = machine.execute(tmp_path / "log", silence=600)
    cases = parse(done.lines)
    _report(cases)
    assert done.status == 0
    assert any(case.outcome == "passed" for case in cases), "every test was skipped"
