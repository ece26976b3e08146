# SPDX-License-Identifier: GPL-2.0
"""A matrix: each case in all settings, and which of them move what changed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from firsttouch.analysis.changes import Matrix, changes, matrix_of
from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.tried import tried_arm
from firsttouch.views.changes import print_matrix
from tests.support.golden import Golden
from tests.support.results import POPULATE, make_profiled, make_result

_CATALOG = load_catalog(["populate"], ["neoverse-n1"], ["stock", "again"]).adding(
    [tried_arm("mine", 0, "my.patch")]
)
# Kernel instructions of the arm, of 2,500,000 on stock, by access and setting.
_COUNTS: Mapping[str, Mapping[str, int]] = {
    "store": {"": 2_550_000, "kpti-off": 2_550_000, "memcg-off": 2_900_000, "cpus-4": 2_550_000},
    "swp": {"": 2_500_000, "kpti-off": 2_600_000, "memcg-off": 2_400_000, "cpus-4": 2_500_000},
    "ldadd": {"": 2_500_000, "kpti-off": 2_500_000, "memcg-off": 2_510_000, "cpus-4": 2_500_000},
}


def _matrix() -> Matrix:
    results = []
    for by, settings in _COUNTS.items():
        for setting, tried in settings.items():
            for arm, count in (("stock", 2_500_000), ("again", 2_500_000), ("mine", tried)):
                metrics = {"page_faults": 1000, "instructions_kernel": count}
                result = make_result(metrics, arm, params={**POPULATE, "by": by})
                results.append(replace(result, cell=replace(result.cell, setting=setting)))
    (changed,) = changes(make_dataset(results, _CATALOG))
    return matrix_of(changed)


def test_a_case_stands_with_the_setting_that_moves_it_most() -> None:
    matrix = _matrix()
    store, swp = matrix.worse
    assert store.most.case.platform.setting == "memcg-off"
    assert (store.example.case.platform.setting, len(store.cells), store.of) == ("", 4, 4)
    # It loses in a setting that its author did not try, and gains in another.
    assert (set(swp.cells), set(matrix.better[0].cells)) == ({"kpti-off"}, {"memcg-off"})
    assert swp.example.case.platform.setting == "kpti-off"
    assert [case.params["by"] for case in matrix.still] == ["ldadd"]


def test_what_got_worse_is_the_first_line(golden: Golden) -> None:
    profiled = [make_profiled([100, 200, 300, more], arm)
                for arm, more in (("stock", 400), ("mine", 700))]  # fmt: skip
    (case,) = make_dataset(profiled, _CATALOG).cases
    (same, *_) = _matrix().worse
    case = replace(case, params=same.example.case.params)
    console = Console(file=io.StringIO(), width=100)
    print_matrix(_matrix(), [case], console)
    assert isinstance(console.file, io.StringIO)
    golden("\n".join(line.rstrip() for line in console.file.getvalue().splitlines()))


def test_a_case_whose_instructions_did_not_move_stands_with_the_count_that_did() -> None:
    results = []
    for arm, instructions, tlbi in (
        ("stock", 2_500_000, 4), ("again", 2_500_000, 4), ("mine", 2_499_000, 6)
    ):  # fmt: skip
        metrics = {"page_faults": 1000, "instructions_kernel": instructions, "tlbi": tlbi}
        results.append(make_result(metrics, arm, params={**POPULATE, "by": "store"}))
    (changed,) = changes(make_dataset(results, _CATALOG))
    console = Console(file=io.StringIO(), width=100)
    print_matrix(matrix_of(changed), [], console)
    assert isinstance(console.file, io.StringIO)
    worse = next(line for line in console.file.getvalue().splitlines() if line.startswith("Worse"))
    assert worse.endswith("TLBI per fault (+50.00 %).")
    assert "store 4k 1 GiB, TLBI" in console.file.getvalue()
