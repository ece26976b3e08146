# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab --time`: what is timed, in which order, and what the answer says.

Here a simulated machine stands for KVM, whose times are known;
tests/linux/test_architectures.py boots guests.
"""

import json
import math
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import pytest

from firsttouch.analysis.figures import Times, read_times
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.contract import Contract
from firsttouch.cli.main import main
from firsttouch.errors import HostError
from firsttouch.files import digest, digest_file
from firsttouch.lab import guests, timed
from firsttouch.lab.guests import Places, parts_of
from firsttouch.lab.plan import Plan, Request
from firsttouch.lab.results import FILE_NAME
from firsttouch.progress import Reporter
from firsttouch.views.times import sentences
from firsttouch.vm.guest import Guest
from firsttouch.vm.host import Condition
from firsttouch.vm.qemu import Inputs
from firsttouch.vm.supervision import Done, GuestOutput
from tests.conftest import TRIED
from tests.support.contract import real_contract
from tests.support.sources import fake_source

# The time of an arm of the simulated machine against stock.
_SPEED = {"stock": 1.0, "again": 1.0, "on": 0.4, "tried": 0.8}


@dataclass
class _Machine:
    """A machine on which guests take known times; `before` is called at the begin of each."""

    before: Callable[[int], None] = lambda boot: None
    slower_from: int = 1 << 30
    booted: list[Guest] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def run(self, guest: Guest, log: Path, **_: object) -> GuestOutput:
        self.before(len(self.booted))
        self.booted.append(guest)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        slower = 1.5 if len(self.booted) > self.slower_from else 1.0
        level = _SPEED[self.arm(guest)] * slower * math.exp(self.chance.gauss(0, 0.01))
        return GuestOutput(tuple(self._done(command, level) for command in guest.commands), None)

    def arm(self, guest: Guest) -> str:
        if "again" in " ".join(guest.boot):
            return "again"
        return {"changed": "on"}.get(guest.image.name, guest.image.name)

    def _done(self, command: str, level: float) -> Done:
        repeats = re.search(r"--repeat (\d+)", command)
        assert repeats
        # The first warms up.
        times = [3 if number == 0 else 1 for number in range(int(repeats[1]))]
        return Done(0, tuple(
            json.dumps({
                "metrics": {
                    "page_faults": 2048,
                    "elapsed_ns": int(2e6 * level * time), "sys_ns": int(1e6 * level * time),
                },
                "unavailable": {"cycles_kernel": "this CPU has no such counter"},
            })
            for time in times
        ))  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[_Machine]:
    """A simulated machine in place of KVM; what guests boot are files without contents."""
    simulated = _Machine()

    def parts(source: KernelSource, plan: Plan, reporter: Reporter) -> Places:
        places = {}
        for part in parts_of(plan):
            name = "tried" if getattr(part, "label", "") else getattr(part, "kind", "")
            if not isinstance(part, Kernel):
                name = getattr(part, "product", "disk")
            place = tmp_path / "parts" / name
            place.parent.mkdir(exist_ok=True)
            place.write_text(place.name)
            places[part] = place
        return places

    def source(_request: Request, release: object, _reporter: Reporter) -> KernelSource:
        return fake_source()

    def key(guest: Guest) -> str:
        return digest([str(guest.image), list(guest.boot), list(guest.commands), guest.memory])

    monkeypatch.setattr(timed, "check_kvm", lambda _architecture: None)
    monkeypatch.setattr(timed, "build_parts", parts)
    monkeypatch.setattr(timed, "source_of", source)
    for module in (timed, guests):
        monkeypatch.setattr(module, "guest_key", key)
    # Without KVM, QEMU makes no device tree of the host's CPU.
    monkeypatch.setattr(
        guests, "inputs", lambda guest: Inputs({"init": guest.init}, {}, "qemu-system-aarch64")
    )
    monkeypatch.setattr(timed, "run_guest", lambda *args, **more: simulated.run(*args, **more))
    quiet = Condition(0.0, 2_400_000, "performance")
    monkeypatch.setattr(timed, "condition", lambda _cpus: quiet)
    monkeypatch.chdir(tmp_path)
    yield simulated


@pytest.fixture(scope="module")
def contract() -> Contract:
    return real_contract()


_REQUEST = Request(experiments=("populate",), settings={"page": ("4k",)}, quick=True)


def _measure(contract: Contract, rounds: int, request: Request = _REQUEST) -> Times:
    return timed.time_cells(request, contract, rounds, Reporter())


def test_arms_boot_in_turn_forwards_and_backwards_each_in_another_layout(
    machine: _Machine, contract: Contract
) -> None:
    times = _measure(contract, 3)
    arms = [machine.arm(guest) for guest in machine.booted]
    assert arms == ["stock", "again", "on", "on", "again", "stock", "stock", "again", "on"]
    seeds = {guest.kaslr_seed for guest in machine.booted}
    assert len(seeds) == len(arms)
    assert {int(boot.kaslr_seed, 16) for result in times for boot in result.boots} == seeds
    assert {guest.timing for guest in machine.booted} == {"hardware"}
    # Every repetition is there, the warm-up too.
    assert all(len(result.lines) == 5 * len(result.boots) == 15 for result in times)


def test_an_interrupted_run_keeps_its_whole_rounds(machine: _Machine, contract: Contract) -> None:
    def kill(boot: int) -> None:
        if boot == 7:
            raise KeyboardInterrupt

    machine.before = kill
    with pytest.raises(KeyboardInterrupt):
        _measure(contract, 4)
    assert len(read_times(Path("out"))[0].boots) == 2


def test_guests_have_the_huge_zero_page_as_those_of_emulation(
    machine: _Machine, contract: Contract
) -> None:
    # What Linux finds, without its image and what it reserves, must be 512 MiB.
    _measure(contract, 1, replace(_REQUEST, size=4 << 20))
    assert {guest.memory > 600 << 20 for guest in machine.booted} == {True}


def test_the_default_plan_has_touches_of_several_cpus(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(timed, "choose_cpus", lambda _allowed: [1, 2, 3, 0])
    assert main(["lab", "--time", "--boots", "6"]) == 0
    assert {guest.cpus for guest in machine.booted} == {1, 2, 4}
    assert [guest.pinned for guest in machine.booted[:3]] == [(1,), (1, 2), (1, 2, 3, 0)]
    capsys.readouterr()
    assert main(["lab", "--time", "--dry-run"]) == 0
    assert "Without cells of " in (said := capsys.readouterr().out) and "several-cpus" in said
    assert main(["lab", "--time", "--quick", "--dry-run"]) == 0
    assert "several-cpus" not in capsys.readouterr().out


_LAB = ["lab", "--time", "--experiment", "populate", "--set", "page=4k", "--quick"]


def test_the_answer_has_changes_with_intervals(
    machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*_LAB, "--boots", "8"]) == 0
    said = capsys.readouterr().out
    assert "again against stock: 0 of 3 cells take less time, 0 more." in said
    assert "on against stock: 3 of 3 cells take less time, 0 more" in said
    assert re.search(r"populate ldadd .*2\.\d+ ms .* none +-\d+\.\d % \(-\d", said)
    assert main(["report", "out"]) == 0
    assert "on against stock: 3 of 3" in capsys.readouterr().out
    assert main(["compare", "out", "out"]) == 2
    assert "measure both kernels in one run" in capsys.readouterr().err
    assert main([*_LAB, "--boots", "8", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["timing"] == "kvm"
    assert {row["metric"] for row in answer["rows"]} >= {"elapsed_ns", "sys_ns"}


def test_what_may_have_disturbed_times_is_said(machine: _Machine, contract: Contract) -> None:
    first, *others = _measure(contract, 3)
    assert first.provenance.host
    busy = Condition(1.25, 1_500_000, "ondemand")
    host = replace(first.provenance.host, cpus=("2",), before=busy)
    boots = (replace(first.boots[0], host=busy), *first.boots[1:])
    first = replace(first, boots=boots, provenance=replace(first.provenance, host=host))
    said = " ".join(sentences((first, *others), []))
    for words in (
        "governor of CPU 2 is ondemand", "a load of 1.25", "below its 2,400,000 kHz at 1 of 9",
    ):  # fmt: skip
        assert words in said


def test_few_boots_have_no_interval(machine: _Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*_LAB, "--boots", "2"]) == 0
    said = "Too few for a confidence interval: 2 boots of each arm; use --boots 6."
    assert said in capsys.readouterr().out


def test_the_file_names_no_host_and_no_user(machine: _Machine, contract: Contract) -> None:
    _measure(contract, 1)
    text = (Path("out") / FILE_NAME).read_text()
    assert f'"{os.uname().nodename}"' not in text
    assert str(Path("out").absolute()) not in text


_PATCH = TRIED / "0001-mm-synchronize-each-first-touch.patch"
_TRY = ["try", str(_PATCH), "--experiment", "populate", "--set", "page=4k", "--quick"]


def test_a_patch_is_timed_against_stock_in_turn(
    machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*_TRY, "--time", "--boots", "6"]) == 0
    said = capsys.readouterr().out
    arms = [machine.arm(guest) for guest in machine.booted]
    assert arms[:6] == ["stock", "again", "tried", "tried", "again", "stock"]
    assert "tried against stock: 3 of 3 cells take less time, 0 more" in said
    times = read_times(Path("out/try"))
    assert times[-1].provenance.digests[f"patch {_PATCH.name}"] == digest_file(_PATCH)
    assert main(["report", "out/try"]) == 0
    assert "tried against stock: 3 of 3" in capsys.readouterr().out


def test_a_dry_run_tells_the_time_by_arithmetic(
    machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*_LAB, "--boots", "10", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "3 cells on each of stock, again and on: 10 rounds, 30 boots." in said
    assert not machine.booted
    # A plan that this host cannot carry out is none.
    with mock.patch.object(timed, "check_kvm", side_effect=HostError("no KVM")):
        assert main([*_LAB, "--dry-run"]) == 2
