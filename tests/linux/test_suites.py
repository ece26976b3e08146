# SPDX-License-Identifier: GPL-2.0
"""The kernel code's own tests, KUnit and kselftests, in guests of both releases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.arms import ARMS
from firsttouch.disks import FileDisk
from firsttouch.guest import Guest
from firsttouch.images import KernelImage, variant_names
from firsttouch.ktap import Case, parse
from firsttouch.machines import load_machine
from firsttouch.programs import SELFTESTS, build_program, build_selftests
from firsttouch.progress import Reporter
from firsttouch.sources import LINUX, KernelSource, releases

pytestmark = pytest.mark.kernel

Sources = Callable[[str], KernelSource]

Change = Callable[[Guest, Reporter], Guest]


def _with_tags(guest: Guest, _: Reporter) -> Guest:
    return replace(guest, cpu="max", board=("mte=on",))


def _with_disk(guest: Guest, reporter: Reporter) -> Guest:
    """Persistent memory with an ext4 on it, for the suite itself to mount with DAX."""
    return replace(guest, disk=FileDisk(1 << 20).obtain(reporter), mounted=False)


def _interleaved(guest: Guest, _: Reporter) -> Guest:
    """Two CPUs by turns: the first touch of an atomic is a read, as on hardware."""
    return replace(guest, cpus=2, timing="interleaved")


def _in_parallel(guest: Guest, _: Reporter) -> Guest:
    """Two CPUs at the same time: real concurrency."""
    return replace(guest, cpus=2, timing="parallel")


# What suites need of their guests beyond the lab's, which have the lab's CPU.
# What one guest lacks, a suite skips.
_GUESTS: dict[str, tuple[Change, ...]] = {
    "zero_page_mte_test": (_with_tags,),
    "zero_page_io_test": (_with_disk,),
    "write_intent_matrix_test": (_with_disk, _with_tags),
    "write_intent_race_test": (_interleaved, _in_parallel),
}
_SUITES = sorted(
    re.findall(r"^TEST_GEN_PROGS \+= (\w+)$", (LINUX / SELFTESTS / "Makefile").read_text(), re.M)
)
# What suites need of their kernel beyond the lab's configuration.
_ONLY_ON = {"write_intent_injection_test": "debug"}
# The lab's configuration, and the variants for which `make regress` has time.
_VARIANTS = [
    pytest.param(None, id="lab"),
    *(pytest.param(name, marks=pytest.mark.regress) for name in variant_names()),
]
_RUNS = [
    pytest.param(
        variant.values[0],
        suite,
        change,
        id=f"{variant.values[0] or 'lab'}-{suite}{change.__name__ if change else ''}",
        marks=variant.marks,
    )
    for variant in _VARIANTS
    for suite in _SUITES
    for change in _GUESTS.get(suite, (None,))
    if _ONLY_ON.get(suite, variant.values[0]) == variant.values[0]
]


def _report(cases: list[Case]) -> None:
    """Fail with the names of the tests that failed; a suite without tests fails too."""
    for case in cases:
        print(f"{case.outcome:8}{case.name} {case.why}")
    assert cases, "no test was reported"
    failed = [case.name for case in cases if case.outcome == "failed"]
    assert not failed, failed


@pytest.fixture
def guest(sources: Sources, reporter: Reporter) -> Callable[..., Guest]:
    def make(release: str, variant: str | None, *boot: str) -> Guest:
        image = KernelImage(sources(release), True, variant).obtain(reporter)
        return Guest(
            image / "Image",
            build_program("guest", reporter),
            load_machine("neoverse-n1"),
            (*ARMS["on"].boot, *boot),
            (),
        )

    return make


@pytest.mark.parametrize("variant", _VARIANTS)
@pytest.mark.parametrize("release", sorted(releases()))
def test_kunit(
    guest: Callable[..., Guest], tmp_path: Path, release: str, variant: str | None
) -> None:
    log = tmp_path / "log"
    guest(release, variant, "kunit.enable=1").execute(log)
    _report(parse(log.read_text(errors="replace").splitlines()))


@pytest.mark.parametrize(("variant", "suite", "change"), _RUNS)
@pytest.mark.parametrize("release", sorted(releases()))
def test_kselftest(
    guest: Callable[..., Guest],
    sources: Sources,
    reporter: Reporter,
    tmp_path: Path,
    release: str,
    variant: str | None,
    suite: str,
    change: Change | None,
) -> None:
    binaries = {path.name: path for path in build_selftests(sources(release), reporter)}
    machine = replace(
        guest(release, variant), commands=(f"/{suite}",), files={f"/{suite}": binaries[suite]}
    )
    if change:
        machine = change(machine, reporter)
    (done,) = machine.execute(tmp_path / "log", silence=600)
    cases = parse(done.lines)
    if variant == "no-intent" and suite.startswith("write_intent"):
        assert not any(case.outcome == "passed" for case in cases)
        return
    _report(cases)
    assert done.status == 0
    assert any(case.outcome == "passed" for case in cases), "every test was skipped"
