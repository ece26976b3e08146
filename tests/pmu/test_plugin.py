# SPDX-License-Identifier: GPL-2.0
"""The plugin in QEMU, on guests so small that every count is known by reading them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.conftest import CACHES, DATA, GUESTS, ICOUNT, Ran

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def counts_guest(build_guest: Callable[..., Path]) -> Path:
    return build_guest(GUESTS / "counts.S")


def regions(ran: Ran) -> dict[str, Any]:
    return dict(zip(DATA["counts"], ran.counts["regions"], strict=True))


def check(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """All that is expected was found; what is named `by_kind` is complete."""
    for name, value in expected.items():
        if isinstance(value, dict) and name != "by_kind":
            check(value, found[name])
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("mode", ["counting", "caches", "caches, icount"])
def test_counts_are_those_of_the_text(
    run_guest: Callable[..., Ran], counts_guest: Path, mode: str
) -> None:
    ran = run_guest(
        counts_guest,
        *(CACHES if "caches" in mode else ()),
        qemu=ICOUNT if "icount" in mode else (),
    )
    counted = regions(ran)
    check(DATA["counts"], counted)
    for name, region in counted.items():
        if name != "calls":
            assert (region["user"]["instructions"], region["user"]["loads"]) == (0, 0)
        assert region["kernel"]["ipi"] == DATA["counts"][name].get("kernel", {}).get("ipi", 0)
    if "caches" in mode:
        check(DATA["caches"], counted)


def test_zva_lines_are_modelled_or_said_not_to_be(
    run_guest: Callable[..., Ran], counts_guest: Path
) -> None:
    ran = run_guest(counts_guest, *CACHES)
    zva = regions(ran)["zva"]["kernel"]
    if ran.counts["api"]["plugin"] < 2:
        assert "dc_zva_lines" in ran.counts["not_modelled"]
        assert zva["l1d"]["accesses"] == 0
    else:
        assert "dc_zva_lines" not in ran.counts["not_modelled"]
        # 64-byte blocks of a page that was touched: four accesses of one line
        assert zva["l1d"]["accesses"] == 4
        assert zva["dc_zva_unplaced"] == 0


def test_fetches_are_placed(run_guest: Callable[..., Ran], counts_guest: Path) -> None:
    ran = run_guest(counts_guest, *CACHES)
    counted = regions(ran)
    # 102 instructions are 408 bytes: the line of the marker and 6 or 7 after it
    assert 6 <= counted["plain"]["kernel"]["l1i"]["accesses"] <= 7
    assert 6 <= counted["plain"]["kernel"]["l1i"]["misses"] <= 7
    # A loop of three instructions is in one line, which is fetched in each round.
    assert counted["loop"]["kernel"]["l1i"]["accesses"] >= 1000
    assert counted["loop"]["kernel"]["l1i"]["misses"] <= 1
    assert all(region["kernel"]["fetches_unplaced"] == 0 for region in counted.values())


@pytest.mark.parametrize("policy", ["lru", "plru", "random"])
def test_two_runs_agree_to_the_last_count(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], policy: str
) -> None:
    guest = build_guest(GUESTS / "patterns.S")
    caches = (f"l1d=8K:4:64:{policy}", f"l1i=8K:4:64:{policy}", f"l2=64K:8:64:{policy}")
    first, second = (
        run_guest(guest, *caches, "histogram=l1d+l2", qemu=ICOUNT).counts for _ in range(2)
    )
    assert first["whole_run"]["kernel"]["l1d"]["misses"] > 10_000
    assert first == second


@pytest.mark.parametrize("cpus", [1, 2])
def test_translations_agree_with_qemu(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], counts_guest: Path, cpus: int
) -> None:
    """With check=on each access's address is compared with QEMU's; one difference ends the run."""
    smp = ("-smp", str(cpus), "-accel", "tcg,thread=single")
    for guest in (counts_guest, build_guest(GUESTS / "patterns.S")):
        checked = run_guest(guest, *CACHES, "check=on", qemu=smp).counts
        unchecked = run_guest(guest, *CACHES, qemu=smp).counts
        assert checked["whole_run"]["kernel"]["l1d"]["accesses"] > 1000
        assert checked == unchecked


@pytest.mark.parametrize("case", DATA["pattern"], ids=lambda case: case["what"])
def test_a_pattern_misses_where_it_should(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], case: dict[str, Any]
) -> None:
    guest = build_guest(GUESTS / "patterns.S")
    region = run_guest(guest, case["cache"], "histogram=l1d").counts["regions"][case["region"]]
    assert region["kernel"]["l1d"] == case["l1d"]
    (sets,) = region["set_misses"]["l1d"]
    worst = case.get("worst_sets", [])
    assert sorted(sets)[len(sets) - len(worst) :] == worst


@pytest.mark.parametrize("thread", ["single", "multi"])
def test_two_cpus_share_lines(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], thread: str
) -> None:
    """two_cpus.S: a word goes to and fro 200 times; each CPU reads it after the other wrote it."""
    guest = build_guest(GUESTS / "two_cpus.S")
    counts = run_guest(
        *(guest, "l1d=32K:4:64:lru", "l2=256K:8:64:lru", "l3=1M:16:64:lru"),
        qemu=("-smp", "2", "-accel", f"tcg,thread={thread}"),
    ).counts
    (region,) = counts["regions"]
    first, second = (cpu["kernel"] for cpu in region["cpus"])
    for event in ("instructions", "loads", "stores"):
        assert first[event] + second[event] == region["kernel"][event]
    for cpu in (first, second):
        assert cpu["stores"] == 100
        # The other's write took the line away: each turn begins with a miss, in the
        # CPU's own L2 too, and is served by the L3. Each CPU's first may be from memory.
        # With threads a CPU may see a write before the model is told of it.
        least = 100 if thread == "single" else 1
        assert least <= cpu["l1d"]["misses"] <= 102
        assert cpu["l2"]["misses"] == cpu["l1d"]["misses"]
        assert cpu["l3"]["misses"] <= 3


@pytest.mark.parametrize("flag", DATA["unbalanced"])
def test_unbalanced_markers_fail(
    run_guest: Callable[..., Ran], build_guest: Callable[..., Path], flag: str
) -> None:
    ran = run_guest(build_guest(GUESTS / "markers.S", flag))
    ran.refused(DATA["unbalanced"][flag])
    assert (ran.finished.returncode, ran.finished.stderr.count("\n")) == (1, 1)
