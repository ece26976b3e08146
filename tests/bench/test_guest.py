# SPDX-License-Identifier: GPL-2.0
"""ftbench on a stock arm64 kernel: the effects that the features remove are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.building.programs import INIT, build_ftbench
from firsttouch.catalog.machines import load_machine
from firsttouch.catalog.releases import release_names
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import run_guest
from tests.bench.conftest import Line
from tests.support.kernels import releases_with_stock

MIB = 1 << 20
PAGES = 16 * MIB // 4096
KINDS = ("store", "load-store", "ldadd", "swp", "cas", "casp", "ldxr", "madvise")
# Faults for each page on a stock kernel.
TWICE = {"load-store", "ldadd", "swp", "cas", "casp", "ldxr"}
POPULATE = f"/ftbench populate --size {16 * MIB}"
HUGETLB = "--memory hugetlb --size 16M --set-thp"
# Faults of each page of 2 MiB that the hugeTLB pool gives: an atomic reads first.
HUGETLB_FAULTS = {
    f"{POPULATE} --by store --page hugetlb --set-thp": 1,
    f"{POPULATE} --by ldadd --page hugetlb --set-thp": 2,
    f"{POPULATE} --by madvise --page hugetlb --set-thp": 1,
    f"/ftbench unmap --operation at-once {HUGETLB}": 0,
    f"/ftbench protect --operation stores-after {HUGETLB}": 1,
    f"/ftbench remap --operation moved {HUGETLB}": 0,
    f"/ftbench advise --operation populate-write {HUGETLB}": 1,
    f"/ftbench fork --operation stores-copied {HUGETLB}": 1,
}
# What has no meaning for such memory, and why.
HUGETLB_REFUSED = {
    f"{POPULATE} --by store --page hugetlb": "no huge pages of 2 MiB in the hugeTLB pool",
    f"/ftbench unmap --operation pieces {HUGETLB}": "this kernel refuses pieces",
    f"/ftbench remap --operation moved-pieces {HUGETLB}": "mremap moves whole pages of hugeTLB",
    f"/ftbench userfault --operation missing {HUGETLB}": "faults are answered in base pages",
}
HOT = "--level l2 --ways 8 --way_size 32K --rounds 100 --set-pool"

COMMANDS = (
    *(f"{POPULATE} --by {kind}" for kind in KINDS),
    # Each command sets the policy that it needs; the policy then stays.
    f"{POPULATE} --by ldadd --page 2m --set-thp",
    f"{POPULATE} --by store --page 2m --set-thp",
    f"{POPULATE} --by store --page 64k --set-thp",
    f"{POPULATE} --by store --page 2m",
    f"{POPULATE} --by store --page 4k",
    f"/ftbench read-fault --size {16 * MIB}",
    f"/ftbench fork-exit --size {64 * MIB}",
    "/ftbench populate --by ldadd --size 64K --timeline",
    "/ftbench populate --by ldadd --size 2M --page 2m --set-thp --timeline",
    "/ftbench set-conflict --n 9 --rounds 100 --set-pool",
    *(f"/ftbench zero-conflict {HOT} --hot_color {color}" for color in (0, 7)),
    f"{POPULATE} --by store --counters cache",
    *HUGETLB_REFUSED,
    *HUGETLB_FAULTS,
)

pytestmark = pytest.mark.kernel


@dataclass(frozen=True)
class Ran:
    """What one guest's commands printed, by command."""

    release: str
    lines: dict[str, Line]


Boot = Callable[..., Ran]


@pytest.fixture(scope="module")
def boot(
    images: Callable[[str, bool], Path],
    reporter: Reporter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Boot:
    """Return a function that runs commands in a guest of its own."""

    def run(
        release: str,
        commands: tuple[str, ...],
        machine: str = "neoverse-n1",
        parameters: tuple[str, ...] | None = None,
    ) -> Ran:
        """Run `commands`; on a changed kernel if there are boot `parameters` for it."""
        guest = Guest(
            images(release, parameters is not None),
            INIT.obtain(reporter),
            load_machine(machine),
            parameters or (),
            commands,
            {"/ftbench": build_ftbench(reporter)},
        )
        ended = run_guest(guest, tmp_path_factory.mktemp("guest") / "log").commands
        assert all(done.status == 0 for done in ended)
        lines = {}
        for command, done in zip(commands, ended, strict=True):
            (line,) = done.objects()
            lines[command] = dict(line)
        return Ran(release, lines)

    return run


@pytest.fixture(scope="module", params=releases_with_stock())
def ran(request: pytest.FixtureRequest, boot: Boot) -> Ran:
    return boot(request.param, COMMANDS)


def metric(ran: Ran, command: str, name: str = "page_faults") -> int:
    return int(ran.lines[command]["metrics"][name])


@pytest.mark.parametrize("kind", KINDS)
def test_faults_of_each_kind(ran: Ran, kind: str) -> None:
    assert metric(ran, f"{POPULATE} --by {kind}") == PAGES * (2 if kind in TWICE else 1)


def test_kernel_counts_the_same_faults(ran: Ran) -> None:
    """Nothing else runs in the guest: the system's count is the process's."""
    for kind in KINDS:
        command = f"{POPULATE} --by {kind}"
        assert metric(ran, command, "pgfault") == metric(ran, command)


def test_huge_pages(ran: Ran) -> None:
    atomic = f"{POPULATE} --by ldadd --page 2m --set-thp"
    # 6.12 splits the huge zero page; 7.3 replaces it by a huge page.
    each = 513 if ran.release == "6.12" else 2
    assert metric(ran, atomic) == 8 * each
    store = f"{POPULATE} --by store --page 2m --set-thp"
    assert metric(ran, store) == 8
    assert metric(ran, store, "thp_fault_alloc") == 8
    assert metric(ran, store, "anon_huge_bytes") == 16 * MIB


def test_pages_of_64k(ran: Ran) -> None:
    command = f"{POPULATE} --by store --page 64k --set-thp"
    assert metric(ran, command) == 16 * MIB // 65536
    assert metric(ran, command, "folio_fault_alloc") == 16 * MIB // 65536
    assert metric(ran, command, "anon_huge_bytes") == 0


def test_policy_of_64k_gives_no_huge_pages(ran: Ran) -> None:
    line = ran.lines[f"{POPULATE} --by store --page 2m"]
    assert line["metrics"] == {}
    assert "echo madvise > " in line["unavailable"]["page_faults"]


def test_4k_is_4k_whatever_the_policy(ran: Ran) -> None:
    assert metric(ran, f"{POPULATE} --by store --page 4k") == PAGES


def test_read_fault(ran: Ran) -> None:
    assert metric(ran, f"/ftbench read-fault --size {16 * MIB}") == PAGES


def test_fork_copies_the_page_tables(ran: Ran) -> None:
    """There is one page table for each 2 MiB, for fork to copy."""
    line = ran.lines[f"/ftbench fork-exit --size {64 * MIB}"]
    allocated = [name for name in line["metrics"] if name.startswith("pgalloc_")]
    assert sum(line["metrics"][name] for name in allocated) >= 32


def test_timeline_shows_the_double_fault(ran: Ran) -> None:
    samples = ran.lines["/ftbench populate --by ldadd --size 64K --timeline"]["timeline"]
    assert [sample[1:] for sample in samples] == [
        [page, write] for page in range(16) for write in (0, 1)
    ]


def test_timeline_of_a_huge_page(ran: Ran) -> None:
    samples = ran.lines["/ftbench populate --by ldadd --size 2M --page 2m --set-thp --timeline"][
        "timeline"
    ]
    writes = range(512) if ran.release == "6.12" else range(1)
    assert [sample[1:] for sample in samples] == [[0, 0], *([page, 1] for page in writes)]


def test_hot_lines_have_the_colour(ran: Ran) -> None:
    for color in (0, 7):
        line = ran.lines[f"/ftbench zero-conflict {HOT} --hot_color {color}"]
        assert line["backing"] == "hugeTLB"
        assert line["metrics"]["hot_lines_checked"] == 8
        assert line["metrics"]["zero_frames"] == 1
        assert line["metrics"]["zero_color"] == line["metrics"]["zero_frame"] % 8
        assert line["metrics"]["page_faults"] == 0


@pytest.mark.parametrize("command", HUGETLB_FAULTS)
def test_memory_of_the_hugetlb_pool(ran: Ran, command: str) -> None:
    assert metric(ran, command) == 8 * HUGETLB_FAULTS[command]
    if "--memory" in command:
        gone = "unmap" in command or "remap" in command
        assert metric(ran, command, "resident_bytes") == (0 if gone else 16 * MIB)


@pytest.mark.parametrize("command", HUGETLB_REFUSED)
def test_what_hugetlb_has_not(ran: Ran, command: str) -> None:
    line = ran.lines[command]
    assert not line["metrics"]
    assert set(line["unavailable"].values()).pop().startswith(HUGETLB_REFUSED[command])


def test_set_conflict(ran: Ran) -> None:
    line = ran.lines["/ftbench set-conflict --n 9 --rounds 100 --set-pool"]
    assert line["backing"] == "hugeTLB"
    assert line["metrics"]["reads"] == 900
    assert line["metrics"]["page_faults"] == 0


def test_counters_that_are_not_there(ran: Ran) -> None:
    line = ran.lines[f"{POPULATE} --by store --counters cache"]
    assert "give the virtual machine a PMU" in line["unavailable"]["l1d_load_misses"]


def test_cpu_without_lse(boot: Boot) -> None:
    """An instruction that the CPU lacks is reported as missing; the others are measured."""
    commands = tuple(f"{POPULATE} --by {kind}" for kind in KINDS)
    lines = boot("6.12", commands, machine="cortex-a72").lines
    for kind in KINDS:
        line = lines[f"{POPULATE} --by {kind}"]
        if kind in ("ldadd", "swp", "cas", "casp"):
            assert line["metrics"] == {}
            assert set(line["unavailable"].values()) == {"this CPU has no LSE atomics"}
        else:
            assert line["metrics"]["page_faults"] == PAGES * (2 if kind in TWICE else 1)


@pytest.mark.parametrize("release", release_names())
def test_changed_kernel_is_seen_to_be_one(boot: Boot, release: str) -> None:
    """One fault for each page, handled as a write; and as many zero pages as colours."""
    timeline = "/ftbench populate --by ldadd --size 64K --timeline"
    conflict = f"/ftbench zero-conflict {HOT} --hot_color 5"
    parameters = ("zero_page_colors=8", "sysctl.vm.write_intent=1")
    lines = boot(release, (timeline, conflict), parameters=parameters).lines
    assert [sample[1:] for sample in lines[timeline]["timeline"]] == [
        [page, 1] for page in range(16)
    ]
    assert lines[conflict]["metrics"]["zero_frames"] == 8
    assert lines[conflict]["metrics"]["zero_color"] == 0
