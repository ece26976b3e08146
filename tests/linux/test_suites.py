# SPDX-License-Identifier: GPL-2.0
"""The kernel code's own tests, KUnit and kselftests, in guests of both releases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.build.disks import FileDisk
from firsttouch.errors import GuestError
from firsttouch.vm.guest import Guest
from firsttouch.build.images import variant_names
from tests.support.ktap import Case, parse
from firsttouch.build.programs import SELFTESTS, build_selftests
from firsttouch.progress import Reporter
from firsttouch.build.sources import LINUX, KernelSource, releases
from tests.linux.conftest import Begin, MakeGuest
from tests.linux.outcomes import Outcomes

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
# What variants are for, and guests must have.
_MACHINES: dict[str, Callable[[Guest], Guest]] = {
    "server": lambda guest: replace(guest, nodes=2, board=(*guest.board, "virtualization=on")),
}
# A variant that has a test of its own below.
_BIG_ENDIAN = "big-endian"
# The lab's configuration, and the variants for which `make regress` has time.
_VARIANTS = [
    pytest.param(None, id="lab"),
    *(
        pytest.param(name, marks=pytest.mark.regress)
        for name in variant_names()
        if name != _BIG_ENDIAN
    ),
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


def _check(cases: list[Case]) -> None:
    """Fail with the names of the tests that failed; a suite without tests fails too."""
    assert cases, "no test was reported"
    failed = [case.name for case in cases if case.outcome == "failed"]
    assert not failed, failed


@pytest.mark.parametrize("variant", _VARIANTS)
@pytest.mark.parametrize("release", sorted(releases()))
def test_kunit(
    make_guest: MakeGuest, outcomes: Outcomes, record: Begin, release: str, variant: str | None
) -> None:
    recorded = record(release, variant, "KUnit")
    guest = make_guest(release, variant, "kunit.enable=1")
    cases = parse(outcomes.of(guest, f"{release} {variant or 'lab'} kunit").log)
    recorded(cases)
    _check(cases)


@pytest.mark.parametrize(("variant", "suite", "change"), _RUNS)
@pytest.mark.parametrize("release", sorted(releases()))
def test_kselftest(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    record: Begin,
    sources: Sources,
    reporter: Reporter,
    release: str,
    variant: str | None,
    suite: str,
    change: Change | None,
) -> None:
    recorded = record(release, variant, "kselftests of the features")
    binaries = {path.name: path for path in build_selftests(sources(release), reporter)}
    guest = replace(
        make_guest(release, variant), commands=(f"/{suite}",), files={f"/{suite}": binaries[suite]}
    )
    if change:
        guest = change(guest, reporter)
    if machine := _MACHINES.get(variant or ""):
        guest = machine(guest)
    name = f"{release} {variant or 'lab'} {suite}{change.__name__ if change else ''}"
    (done,) = outcomes.of(guest, name).commands
    cases = parse(done.lines)
    recorded(cases)
    if variant == "no-intent" and suite.startswith("write_intent"):
        assert not any(case.outcome == "passed" for case in cases)
        return
    _check(cases)
    assert done.status == 0
    assert any(case.outcome == "passed" for case in cases), "every test was skipped"


@pytest.mark.regress
def test_kunit_on_a_big_endian_kernel(make_guest: MakeGuest, record: Begin, tmp_path: Path) -> None:
    """Without programs: there is no compiler for them. 7.3 marks the option as broken."""
    recorded = record("6.12", _BIG_ENDIAN, "KUnit")
    log = tmp_path / "log"
    with pytest.raises(GuestError, match="No working init found"):
        make_guest("6.12", _BIG_ENDIAN, "kunit.enable=1").execute(log)
    cases = parse(log.read_text(errors="replace").splitlines())
    recorded(cases)
    _check(cases)
