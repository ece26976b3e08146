# SPDX-License-Identifier: GPL-2.0
"""Debian's own binary kernel as the oracle of the lab's kernels."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import read_dataset
from firsttouch.analysis.measurement import Case
from firsttouch.building.kernel import obtain_image
from firsttouch.building.programs import INIT, build_ftbench
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.machines import load_machine
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.supervision import run_guest
from tests.conftest import Firsttouch
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

# Per cent by which a count may differ. Source and configuration of a fault's path are the
# same; of 7.3, the compiler is another: Debian's gcc 14, and the lab's that of the host.
_APART = {"6.12": 2.0, "7.3": 2.0}
# What the page allocator's lists hold at the start is up to 500,000 instructions: 1 % of these.
_SIZE, _PAGES = "64M", (64 << 20) / 4096
# What the kernel says at boot of what stands in the path of a fault.
_ACTIVE = (
    "KASLR enabled",
    "detected: Kernel page table isolation (KPTI)",
    "mem auto-init: stack:all(zero), heap alloc:on, heap free:off",
    "detected: Hardware dirty bit management",
)
_TLBI_TWICE = "detected: Broken broadcast TLBI completion"

Measure = Callable[..., Case]
Boot = Callable[..., str]


@pytest.fixture(scope="session")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """What kernels count for 4 KiB pages that are touched by an access, or read if it is None."""

    @functools.cache
    def run(release: str, by: str | None, *arms: str, machine: str = "neoverse-n1") -> Case:
        firsttouch = Firsttouch(tmp_path_factory.mktemp("distribution"))
        named = [word for arm in arms for word in ("--arm", arm)]
        what = ["populate", "--set", "page=4k", "--set", f"by={by}"] if by else ["read-fault"]
        done = firsttouch(
            "lab", "--release", release, "--machine", machine, *named,
            "--size", _SIZE, "--experiment", *what,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (case,) = read_dataset(firsttouch.directory / "out").cases
        return case

    return run


@pytest.fixture(scope="session")
def boot(
    sources: Callable[[str], KernelSource], reporter: Reporter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Boot:  # fmt: skip
    """The kernel log of an arm's guest, 6.12."""

    @functools.cache
    def run(arm: str, machine: str = "neoverse-n1") -> str:
        kernel = load_arm(arm).kernel
        guest = Guest(
            obtain_image(kernel, sources("6.12"), reporter),
            INIT.obtain(reporter),
            load_machine(machine),
            (),
            ("/ftbench --list",),
            {"/ftbench": build_ftbench(reporter)},
            port=port_for(kernel),
        )
        log = Path(tmp_path_factory.mktemp("boot"), "log")
        run_guest(guest, log)
        return log.read_text()

    return run


@pytest.mark.parametrize("by", ["store", "ldadd", "load-store", None])
@pytest.mark.parametrize("release", releases_with_stock())
def test_the_labs_kernel_counts_what_debians_counts(
    measure: Measure, release: str, by: str | None
) -> None:
    """The floor of a store, the double fault, and the read fault."""
    case = measure(release, by, "stock", "debian")
    for metric in ("page_faults", "instructions_kernel", "tlbi", "dsb", "isb"):
        if by is None and metric == "isb":
            continue
        ours, theirs = case.value("stock", metric), case.value("debian", metric)
        assert ours is not None and theirs is not None, metric
        if metric in ("page_faults", "tlbi"):
            assert ours == theirs, metric
        # A timer tick more or less is some hundred instructions and a few barriers.
        assert abs(ours - theirs) <= theirs * _APART[release] / 100 + 500, metric


@pytest.mark.parametrize("arm", ["stock", "debian"])
def test_what_protects_debians_kernel_is_active(boot: Boot, arm: str) -> None:
    log = boot(arm)
    for words in (*_ACTIVE, _TLBI_TWICE):
        assert words in log, words


def test_the_cpu_decides_which_workarounds_are_active(measure: Measure, boot: Boot) -> None:
    """The MIDR alone makes the difference: one TLBI more for each copy of a zero page."""
    unaffected = "neoverse-n1-unaffected"
    assert _TLBI_TWICE not in boot("debian", unaffected)
    assert measure("6.12", "ldadd", "stock", "debian").value("debian", "tlbi") == 3 * _PAGES
    other = measure("6.12", "ldadd", "debian", machine=unaffected)
    assert other.value("debian", "tlbi") == 2 * _PAGES
