# SPDX-License-Identifier: GPL-2.0
"""What an arm changes: equal is equal, chance is what the control shows, or addresses explain."""

import io
from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.console import Console

from firsttouch.analysis.changes import PATH, Changes, _order, changes
from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.arms import tried_arm
from firsttouch.catalog.experiments import load_catalog
from firsttouch.tables import Json
from firsttouch.views.changes import compared_arms
from firsttouch.views.comparison import print_comparison
from tests.support.golden import Golden
from tests.support.results import POPULATE, make_region, make_result

_STOCK: Mapping[str, float] = {
    "page_faults": 1000, "instructions_kernel": 2_500_000, "tlbi": 0, "dsb": 40, "isb": 50,
    "l1d_misses": 7000, "l2_misses": 300,
}  # fmt: skip


def _changes(
    tried: Mapping[str, float],
    again: Mapping[str, float] | None = None,
    by: str = "store",
    stock: Mapping[str, float] | None = None,
) -> Changes:
    """Return the changes of one case; `tried` and `again` have what differs from stock.

    Misses are those of the modelled caches, which do not see `dc_zva` accesses.
    """
    arms = {"stock": stock or {}, "again": again or {}, "mine": tried}
    results = []
    for arm, changed in arms.items():
        metrics = {**_STOCK, **changed}
        region = _region(*(metrics.pop(name, 0) for name in ("l1d_misses", "l2_misses", "dc_zva")))
        results.append(
            make_result(
                metrics, arm, params={**POPULATE, "by": by}, regions=[region],
                not_modelled=["dc_zva_lines"],
            )
        )  # fmt: skip
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock", "again"])
    # Every cell of the second arm failed.
    both = catalog.adding([tried_arm("mine", 0, "my.patch"), tried_arm("failed", 1, "x.patch")])
    (result,) = changes(make_dataset(results, both))
    return result


def _region(l1d: float, l2: float, dc_zva: float) -> Mapping[str, Json]:
    """Return a region whose kernel has these misses."""
    zero = dict.fromkeys(("instructions", "dsb", "isb", "exceptions_taken_sync", "svc"), 0)
    none, many = ({"accesses": 30_000, "misses": misses, "writebacks": 0} for misses in (0, l1d))
    return make_region(
        {**zero, "l1d": none, "l2": none},
        kernel={**zero, "l1d": many, "l2": {**many, "misses": l2}, "dc_zva": dc_zva},
    )


def _printed(result: Changes, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_comparison(compared_arms(result, 1), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("tried", "again", "kind"),
    [
        ({}, {}, "equal"),
        # Code that moved: other misses, the same path.
        ({"l1d_misses": 7900, "l2_misses": 200}, {}, "equal"),
        ({"l1d_misses": 11_000}, {}, "changed"),
        ({"l2_misses": 4300}, {}, "changed"),
        ({"l1d_misses": 11_000}, {"l1d_misses": 3500}, "equal"),
        # What QEMU hides of either kernel may be misses, too.
        ({"l1d_misses": 11_000, "dc_zva": 1900}, {}, "equal"),
        ({"instructions_kernel": 2_502_300, "dsb": 41, "isb": 51}, {}, "chance"),
        ({"instructions_kernel": 2_522_000}, {}, "changed"),
        # Stock itself changes as much, when it runs later.
        ({"instructions_kernel": 2_522_000}, {"instructions_kernel": 2_496_000}, "chance"),
        ({"instructions_kernel": 2_780_000}, {"instructions_kernel": 2_218_000}, "chance"),
        ({"isb": 1050}, {}, "changed"),
        ({"isb": 1050}, {"isb": 51}, "changed"),
        # Ticks take no faults and invalidate nothing.
        ({"page_faults": 1001}, {}, "changed"),
        ({"tlbi": 1}, {}, "changed"),
    ],
)
def test_a_change_is_told_from_chance(
    tried: Mapping[str, float], again: Mapping[str, float], kind: str
) -> None:
    (cell,) = _changes(tried, again).cells
    assert cell.kind == kind


@pytest.mark.parametrize(("more", "kind"), [(2_000, "changed"), (900, "chance")])
def test_in_a_small_cell_a_change_of_two_per_cent_is_no_chance(more: int, kind: str) -> None:
    stock = {"instructions_kernel": 100_000, "page_faults": 40, "dsb": 0, "isb": 0}
    tried = {**stock, "instructions_kernel": 100_000 + more}
    (cell,) = _changes(tried, stock, stock=stock).cells
    assert cell.kind == kind


def _all(*results: Changes) -> Changes:
    """Return the changes of several cases as those of one dataset."""
    cells = sorted((cell for each in results for cell in each.cells), key=_order)
    return replace(results[0], cells=tuple(cells))


def test_what_costs_more_and_less_has_a_table_for_each_unit(golden: Golden) -> None:
    operations, none, few = {"operations": 4000}, {"page_faults": 0}, {"page_faults": 1}
    more = {"instructions_kernel": 3_500_000}
    (bare,) = _changes({}, by="ldxr").cells
    others = {name: both for name, both in bare.figures.items() if name != "instructions_kernel"}
    result = _all(
        _changes({"instructions_kernel": 2_800_000}, by="load-store"),
        # A small part of the whole, in few faults.
        _changes({**few, "instructions_kernel": 2_550_000}, few, stock=few),
        _changes({"page_faults": 500, "instructions_kernel": 2_000_000}, by="ldadd"),
        # Stock itself changes as much, but other counts of the cell changed.
        _changes({"instructions_kernel": 36_300_000, "tlbi": 1},
                 {"instructions_kernel": 41_200_000}, "swp", {"instructions_kernel": 25_000_000}),
        _changes({**operations, **more}, operations, "cas", operations),
        # A cold cache line for each operation.
        _changes({**operations, "l1d_misses": 11_000}, operations, "casp", operations),
        _changes({**none, **more}, none, "madvise", none),
        _changes({"instructions_kernel": 2_502_300, "l1d_misses": 7900}, by="read"),
        replace(_changes({}), cells=(replace(bare, figures=others),)),
    )  # fmt: skip
    golden("\n".join([_printed(result), _printed(result, 40)]))
    (cell,) = (cell for cell in result.cells if cell.case.params["by"] == "casp")
    assert (cell.decisive, cell.change("l1d_misses"), cell.unit) == ("l1d_misses", 1, "operation")
    assert {side: cell.case.params["by"] for side, cell in result.examples().items()} == {
        "more": "cas", "less": "ldadd"
    }  # fmt: skip


def test_a_cell_that_no_profile_follows_is_no_example() -> None:
    """The function of several CPUs would be refused, after all cells were measured."""
    result = _changes({"instructions_kernel": 2_600_000})
    (cell,) = result.cells
    for cpus, examples in ((1, {"more"}), (2, set())):
        case = replace(cell.case, params={**cell.case.params, "cpus": cpus})
        assert set(replace(result, cells=(replace(cell, case=case),)).examples()) == examples
    platform = replace(cell.case.platform, setting="cpus-2")
    case = replace(cell.case, platform=platform)
    assert replace(result, cells=(replace(cell, case=case),)).examples() == {}


@pytest.mark.parametrize(
    "counted",
    [{"tlbi_broadcast": 5}, {"ipi": 1}, {"aborts": 1001}, {"pages_allocated": 1513}],
)
def test_what_instructions_do_not_show_is_judged(counted: Mapping[str, float]) -> None:
    also = {"tlbi_broadcast": 0, "ipi": 0, "aborts": 1000, "pages_allocated": 1001}
    result = _changes({**also, **counted}, also, stock=also)
    (cell,) = result.cells
    assert cell.kind == "changed" and cell.costs_more
    (metric,) = counted
    head = next(line for line in _printed(result).splitlines() if line.startswith("costs more"))
    assert head.rstrip().endswith(PATH[metric])


_CATALOG = load_catalog(["populate"], ["neoverse-n1"], ["stock", "again"]).adding(
    [tried_arm("mine", 0, "my.patch")]
)
# Kernel instructions of the arm, of 2,500,000 on stock, by access and setting.
_COUNTS: Mapping[str, Mapping[str, int]] = {
    "store": {"": 2_550_000, "kpti-off": 2_550_000, "memcg-off": 2_900_000, "cpus-4": 2_550_000},
    "swp": {"": 2_500_000, "kpti-off": 2_600_000, "memcg-off": 2_400_000, "cpus-4": 2_500_000},
    "ldadd": {"": 2_500_000, "kpti-off": 2_500_000, "memcg-off": 2_510_000, "cpus-4": 2_500_000},
}


def _in_settings() -> Changes:
    results = []
    for by, settings in _COUNTS.items():
        for setting, tried in settings.items():
            for arm, count in (("stock", 2_500_000), ("again", 2_500_000), ("mine", tried)):
                metrics = {"page_faults": 1000, "instructions_kernel": count}
                result = make_result(metrics, arm, params={**POPULATE, "by": by})
                results.append(replace(result, cell=replace(result.cell, setting=setting)))
    (changed,) = changes(make_dataset(results, _CATALOG))
    return changed


def test_a_cell_stands_once_with_the_setting_that_moves_it_most(golden: Golden) -> None:
    golden(_printed(_in_settings()))
