# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab --time --arch x86-64` to its end; emulation stands for KVM: times mean nothing.

With Debian's own image in place of stock and changed, this builds no kernel.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.figures import Times, host_of, read_times, results_by_arm
from firsttouch.building.kernel import KernelImage, kernel_of
from firsttouch.building.source import DebianKernel, KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.machines import Machine
from firsttouch.lab import guests, timed
from firsttouch.lab.plan import Request
from firsttouch.progress import Reporter
from firsttouch.tables import Fields
from firsttouch.vm import qemu
from firsttouch.vm.host import host_machine
from tests.support.contract import real_contract

pytestmark = pytest.mark.kernel

# On a thread for each CPU, QEMU 7.2 runs into instructions that the kernel is patching: int3.
_TCG = ("-accel", "tcg,thread=single", "-name", "firsttouch,debug-threads=on")
_PAGES = 256
_REQUEST = Request(
    experiments=("populate", "several-cpus"), size=_PAGES * 4096, settings={"page": ("4k",)},
    architecture="x86-64",
)  # fmt: skip


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU's emulation in place of KVM, and of the host's CPU the one that it has."""

    def machine(cpu: int, *, architecture: str) -> Machine:
        return replace(host_machine(cpu, architecture=architecture), cpu="max")

    monkeypatch.setattr(timed, "check_kvm", lambda _architecture: None)
    monkeypatch.setattr(timed, "host_machine", machine)
    monkeypatch.setitem(qemu._TIMINGS, "hardware", _TCG)


def _faults(times: Times, arm: str, experiment: str, **params: object) -> set[float]:
    """The page faults of a cell, of each boot of an arm and each repetition."""
    return {
        Fields("", line).table("metrics").take("page_faults", float)
        for result in times
        if result.cell.arm == arm
        and result.cell.experiment == experiment
        and params.items() <= result.cell.params.items()
        for line in result.lines
    }


def _check(times: Times) -> None:
    assert host_of(times).architecture == "x86-64"
    touches = {result.cell.params.get("by") for result in times}
    assert not touches & {"ldadd", "swp", "cas", "ldxr"}
    for by, faults in (("store", _PAGES), ("load-store", 2 * _PAGES)):
        assert _faults(times, "stock", "populate", by=by) == {faults}
    assert _faults(times, "stock", "several-cpus", by="store", cpus=2) == {_PAGES}


@pytest.mark.parametrize("release", ["6.12", pytest.param("7.3", marks=pytest.mark.regress)])
def test_lab_time_runs_to_its_end_with_debians_image(
    emulated: None, release: str, sources: Callable[[str], KernelSource], reporter: Reporter,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    def debians(kernel: Kernel, _: object) -> KernelImage | DebianKernel:
        debian = replace(kernel, kind="debian", patches=(), fragments=())
        return kernel_of(debian, sources(release))

    monkeypatch.setattr(guests, "kernel_of", debians)
    monkeypatch.setattr(guests, "port_for", lambda _kernel: "pci")
    request = replace(_REQUEST, release=release, out=tmp_path)
    times = timed.time_cells(request, real_contract(), 1, reporter)
    assert list(results_by_arm(times)) == ["stock", "again", "on"]
    assert read_times(tmp_path) == times
    # The kernel's seed is the CPU's secret.
    assert {boot.kaslr_seed for result in times for boot in result.boots} == {""}
    _check(times)
