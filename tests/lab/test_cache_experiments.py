# SPDX-License-Identifier: GPL-2.0
"""The cache experiments, measured in guests with the modelled PMU."""

from collections.abc import Callable

import pytest

from firsttouch.analysis.dataset import Dataset, make_dataset, spreads
from firsttouch.lab.plan import Request
from firsttouch.lab.run import run_lab
from firsttouch.progress import Reporter
from tests.support.contract import real_contract

pytestmark = pytest.mark.kernel

Measure = Callable[[str, str], Dataset]


@pytest.fixture(scope="module")
def measure(reporter: Reporter, tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Return a function that runs one cache experiment on one machine."""

    def run(machine: str, experiment: str) -> Dataset:
        out = tmp_path_factory.mktemp(f"{machine}-{experiment}")
        request = Request(machines=(machine,), experiments=(experiment,), out=out)
        outcome = run_lab(request, real_contract(), reporter)
        assert not outcome.failures
        return make_dataset(outcome.results, outcome.catalog)

    return run


@pytest.mark.parametrize(("machine", "ways"), [("thunderx2", 8), ("neoverse-n1", 4)])
def test_set_conflict_has_its_knee_at_the_ways(measure: Measure, machine: str, ways: int) -> None:
    per_read = {
        case.number("n"): (case.value("stock", "l1d_misses") or 0)
        / (case.number("n") * case.number("rounds"))
        for case in measure(machine, "set-conflict").cases
    }
    assert sorted(per_read) == list(range(1, 2 * ways + 3))
    assert max(n for n, misses in per_read.items() if misses <= 0.01) == ways
    assert per_read[ways + 1] == pytest.approx(1.0, abs=0.005)


def test_zero_conflict_loses_its_worst_case_and_keeps_its_mean(measure: Measure) -> None:
    dataset = measure("thunderx2", "zero-conflict")
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
