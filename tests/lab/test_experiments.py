# SPDX-License-Identifier: GPL-2.0
"""Experiments in guests with the modelled PMU: knees of caches, and what has less to do."""

from itertools import pairwise
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import spreads
from firsttouch.lab.plan import Request
from tests.lab.conftest import measured
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize(("machine", "ways"), [("thunderx2", 8), ("neoverse-n1", 4)])
def test_set_conflict_has_its_knee_at_the_ways(tmp_path: Path, machine: str, ways: int) -> None:
    request = Request(machines=(machine,), experiments=("set-conflict",), out=tmp_path)
    per_read = {
        case.number("n"): (case.value("stock", "l1d_misses") or 0)
        / (case.number("n") * case.number("rounds"))
        for case in measured(request).cases
    }
    assert sorted(per_read) == list(range(1, 2 * ways + 3))
    assert max(n for n, misses in per_read.items() if misses <= 0.01) == ways
    assert per_read[ways + 1] == pytest.approx(1.0, abs=0.005)


def test_zero_conflict_loses_its_worst_case_and_keeps_its_mean(tmp_path: Path) -> None:
    request = Request(machines=("thunderx2",), experiments=("zero-conflict",), out=tmp_path)
    dataset = measured(request)
    found = {(each.level, each.arm): each for each in spreads(dataset, *dataset.platforms())}
    stock, several = found["L2", "stock"], found["L2", "color-l2"]
    assert stock.worst == pytest.approx(9, rel=0.01)
    assert several.worst <= 1.05 * several.mean
    assert several.mean == pytest.approx(9 / 8, rel=0.05)
    # Colours do not change the mean.
    assert several.mean == pytest.approx(stock.mean, rel=0.05)
    checked = [row for row in dataset.rows if row.metric == "hot_lines_checked"]
    assert checked
    assert all(value == 8 for row in checked for value in row.arms.values())


# By operation: kinds of memory, from the one with the least to do.
ORDERS = {
    ("unmap", "at-once"): ("untouched", "2m", "64k", "4k"),
    ("heap", "down"): ("untouched", "2m", "64k", "4k"),
    ("protect", "write-to-read"): ("untouched", "2m", "4k"),
}


def _kernel(request: Request) -> dict[str, dict[str, float]]:
    """Return kernel instructions by kind of memory and arm."""
    return {
        str(row.case.params["memory"]): {arm: count for arm, count in row.arms.items() if count}
        for row in measured(request).rows
        if row.metric == "instructions_kernel"
    }


@pytest.mark.parametrize("release", releases_with_stock())
@pytest.mark.parametrize(("experiment", "operation"), ORDERS)
def test_what_has_less_to_do_costs_less(
    experiment: str, operation: str, release: str, tmp_path: Path
) -> None:
    kinds = ORDERS[experiment, operation]
    request = Request(
        release=release, experiments=(experiment,), arms=("stock",),
        settings={"operation": (operation,), "memory": kinds}, out=tmp_path,
    )  # fmt: skip
    counts = {kind: of_arms["stock"] for kind, of_arms in _kernel(request).items()}
    # One call in many refills the random offsets of the stack, by 2,820 instructions.
    slack = 300 if experiment == "protect" else 0
    assert all(counts[less] < counts[more] + slack for less, more in pairwise(kinds))
    # A base page costs several times what a page of a larger folio does.
    assert counts["4k"] > 4 * counts["2m"]
    # A system call of a kernel whose random numbers have no seed costs 10,000 by itself.
    if experiment == "protect":
        assert counts["untouched"] < 5_500


@pytest.mark.parametrize("release", releases_with_stock())
def test_folios_that_are_given_back_stay_on_the_lists_of_the_cpu(
    release: str, tmp_path: Path
) -> None:
    """Stock gives the CPU's lists back to the zone at each folio; linux/ from high_min on."""
    request = Request(
        release=release, experiments=("advise",), arms=("stock", "off"),
        settings={"operation": ("dontneed",), "memory": ("16k",)}, size=4 << 20, out=tmp_path,
    )  # fmt: skip
    counts = _kernel(request)
    assert counts["16k"]["off"] < 0.95 * counts["16k"]["stock"]


@pytest.mark.parametrize(("page", "most"), [("4k", 0.4), ("64k", 1.02)])
def test_fault_around_leaves_large_folios_alone(page: str, most: float, tmp_path: Path) -> None:
    """Each look at an entry of a contiguous range reads all 16."""
    fixed = {"processes": "1", "by": "store", "memory": "memfd", "page": page, "part": "touch"}
    wanted = {name: (value,) for name, value in fixed.items()}
    request = Request(experiments=("shared",), arms=("stock", "off"), settings=wanted, out=tmp_path)
    (counts,) = _kernel(request).values()
    assert counts["off"] <= most * counts["stock"]


def test_reclaim_pays_for_each_process_that_has_mapped_a_page(tmp_path: Path) -> None:
    only = {"by": ("store",), "order": ("up",)}
    request = Request(experiments=("shared-reclaim",), arms=("stock",), settings=only, out=tmp_path)
    rows = measured(request).rows
    alone, all_16 = (row.arms["stock"] for row in rows if row.metric == "instructions_kernel")
    # Of each page, every process but the first has an entry more to take away: 300 at least.
    assert alone and all_16 and all_16 > alone + 300 * 15 * 512
