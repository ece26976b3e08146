# SPDX-License-Identifier: GPL-2.0
"""What an arm changes: equal is equal, chance is what the control shows, or addresses explain."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.console import Console

from firsttouch.analysis.changes import PATH, Changes, _order, changes
from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.collection import load_catalog
from firsttouch.catalog.tried import tried_arm
from firsttouch.tables import Json
from firsttouch.views.changes import print_changes
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
    (result,) = changes(make_dataset(results, catalog.adding([tried_arm("mine", 0, "my.patch")])))
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
    print_changes(result, console, 1)
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


def test_instructions_that_stock_changes_as_much_lead_no_list() -> None:
    """Other counts of the cell changed, and so it is in the table."""
    noisy = _changes(
        {"instructions_kernel": 36_300_000, "tlbi": 1}, {"instructions_kernel": 41_200_000},
        by="ldadd", stock={"instructions_kernel": 25_000_000},
    )  # fmt: skip
    sure = _changes({"instructions_kernel": 2_625_000})
    cells = sorted([*noisy.cells, *sure.cells], key=_order)
    printed = _printed(replace(sure, cells=tuple(cells)))
    first, second = (line for line in printed.splitlines() if line.startswith("populate "))
    assert first.split()[1] == "store" and "+5.00 %" in first
    assert second.split()[1] == "ldadd" and "noise" in second and "+45" not in printed


def test_changes_are_per_fault_of_stock() -> None:
    result = _changes({"page_faults": 500, "instructions_kernel": 2_000_000})
    (cell,) = result.cells
    assert cell.change("instructions_kernel") == -500
    assert cell.change("page_faults") == -0.5
    assert result.examples() == {"less": cell}
    line = next(line for line in _printed(result).splitlines() if line.startswith("populate"))
    assert line.split()[-4:] == ["-500.00", "-20.00", "%", "-0.50"]


def test_what_costs_more_and_what_costs_less_are_two_lists_by_per_cent() -> None:
    costs = {"store": 2_550_000, "load-store": 2_800_000, "swp": 2_400_000, "ldadd": 2_000_000}
    cells = [
        cell
        for by, instructions in costs.items()
        for cell in _changes({"instructions_kernel": instructions}, by=by).cells
    ]
    # Few faults, and many instructions for each of them: a small part of the whole.
    fault = {"page_faults": 1}
    (few,) = _changes({**fault, "instructions_kernel": 2_550_000}, fault, stock=fault).cells
    result = replace(_changes({}), cells=tuple(sorted([few, *cells[1:]], key=_order)))
    printed = _printed(result).splitlines()
    order = [line.split()[1] for line in printed if line.startswith("populate ")]
    assert order == ["load-store", "store", "ldadd", "swp"]
    heads = [line.split(",")[0] for line in printed if line.startswith("costs ")]
    assert heads == ["costs more", "costs less"]
    assert {side: cell.case.params["by"] for side, cell in result.examples().items()} == {
        "more": "load-store", "less": "ldadd"
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


def test_a_cold_cache_line_for_each_operation_is_told_as_that() -> None:
    also = {"operations": 4000}
    result = _changes({**also, "l1d_misses": 11_000}, also, stock=also)
    (cell,) = result.changed(more=True)
    assert (cell.decisive, cell.change("l1d_misses")) == ("l1d_misses", 1)
    printed = _printed(result)
    head, line = printed.splitlines()[1:3]
    assert head.rstrip().endswith("L1D misses") and line.rstrip().endswith("+1.00")
    assert "Nothing changed" not in printed and "Cache misses within" not in printed


def test_a_case_without_instructions_is_not_judged() -> None:
    result = _changes({})
    (cell,) = result.cells
    bare = replace(result, cells=(replace(cell, counts={"page_faults": (1, 2)}),))
    assert not bare.of_kind("changed")
    assert "Not judged, because they count no instructions: 1 cell of populate" in _printed(bare)


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


def test_a_cell_of_operations_is_counted_by_them() -> None:
    also = {"operations": 4000, "page_faults": 3}
    result = _changes({**also, "instructions_kernel": 3_500_000}, also, stock=also)
    (cell,) = result.cells
    assert (cell.unit, cell.change("instructions_kernel")) == ("operation", 250)
    printed = _printed(result).splitlines()
    assert printed[1].startswith("costs more, per operation")
    assert printed[2].startswith("populate store 4k 1 GiB  ")


def test_each_unit_has_a_table() -> None:
    also, none = {"operations": 4000}, {"page_faults": 0}
    more = {"instructions_kernel": 3_500_000}
    made = (
        _changes(more),
        _changes({**also, **more}, also, "load-store", also),
        _changes({**none, **more}, none, "swp", none),
    )
    result = replace(made[0], cells=tuple(cell for each in made for cell in each.cells))
    # As lines too, where the terminal is narrow.
    for width in (100, 40):
        heads = [
            line.split("  ")[0].strip()
            for line in _printed(result, width).splitlines()
            if line.startswith("costs more")
        ]
        assert heads == [
            "costs more, per fault", "costs more, per operation", "costs more, in the whole cell"
        ]  # fmt: skip
