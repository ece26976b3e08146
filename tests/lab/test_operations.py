# SPDX-License-Identifier: GPL-2.0
"""Operations on memory, counted in guests: what has less to do costs less."""

from pathlib import Path

import pytest

from firsttouch.analysis.dataset import make_dataset
from firsttouch.lab.plan import Request
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from tests.support.contract import real_contract
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

# By operation: kinds of memory, from the one with the least to do.
ORDERS = {
    ("unmap", "at-once"): ("untouched", "2m", "64k", "4k"),
    ("heap", "down"): ("untouched", "2m", "64k", "4k"),
    ("protect", "write-to-read"): ("untouched", "2m", "4k"),
}


def _kernel(request: Request, reporter: Reporter) -> dict[str, dict[str, float]]:
    """Return kernel instructions by kind of memory and arm."""
    outcome = run_lab(request, real_contract(), reporter)
    assert not outcome.failures
    rows = make_dataset(outcome.results, outcome.catalog).rows
    return {
        str(row.case.params["memory"]): {arm: count for arm, count in row.arms.items() if count}
        for row in rows
        if row.metric == "instructions_kernel"
    }


@pytest.mark.parametrize("release", releases_with_stock())
@pytest.mark.parametrize(("experiment", "operation"), ORDERS)
def test_what_has_less_to_do_costs_less(
    experiment: str, operation: str, release: str, reporter: Reporter, tmp_path: Path
) -> None:
    kinds = ORDERS[experiment, operation]
    request = Request(
        release=release,
        experiments=(experiment,),
        arms=("stock",),
        settings={"operation": (operation,), "memory": kinds},
        out=tmp_path,
    )
    counts = {kind: of_arms["stock"] for kind, of_arms in _kernel(request, reporter).items()}
    assert sorted(kinds, key=counts.__getitem__) == list(kinds)
    # A base page costs several times what a page of a larger folio does.
    assert counts["4k"] > 4 * counts["2m"]
    # A system call of a kernel whose random numbers have no seed costs 10,000 by itself.
    if experiment == "protect":
        assert counts["untouched"] < 5_000


@pytest.mark.parametrize("release", releases_with_stock())
def test_folios_that_are_given_back_stay_on_the_lists_of_the_cpu(
    release: str, reporter: Reporter, tmp_path: Path
) -> None:
    """Stock gives the CPU's lists back to the zone at each folio; linux/ from high_min on."""
    request = Request(
        release=release,
        experiments=("advise",),
        arms=("stock", "off"),
        settings={"operation": ("dontneed",), "memory": ("16k",)},
        size=4 << 20,
        out=tmp_path,
    )
    counts = _kernel(request, reporter)
    assert counts["16k"]["off"] < 0.95 * counts["16k"]["stock"]
