# SPDX-License-Identifier: GPL-2.0
"""Profiles read from results, and compared by function."""

from dataclasses import replace

import pytest

from firsttouch.analysis.dataset import make_dataset
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import (
    USER,
    Frame,
    Profile,
    compare_functions,
    profiles_of,
)
from firsttouch.catalog.experiments import load_catalog
from firsttouch.errors import UserError
from firsttouch.lab.results import Result
from firsttouch.tables import Fields, Json
from tests.support.results import make_profiled

STOCK, ON = [100, 200, 300, 400], [100, 200, 360, 390]


def case_of(*results: Result) -> Case:
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock", "on"])
    (case,) = make_dataset(results, catalog).cases
    return case


def profile_of(result: Result) -> Profile:
    (profile,) = profiles_of(case_of(result)).values()
    return profile


def test_functions_have_their_counts_and_those_of_their_calls() -> None:
    profile = profile_of(make_profiled(STOCK))
    assert profile.functions["handle_mm_fault"] == {
        "instructions": 300, "dsb": 1, "l1d_misses": 30, "l2_misses": 0,
    }  # fmt: skip
    assert profile.functions[USER] == {"instructions": 7}
    assert (profile.total(), profile.total("dsb")) == (1000, 4)


def test_a_stack_says_how_each_function_was_entered() -> None:
    profile = profile_of(make_profiled(STOCK))
    deepest = max(profile.stacks, key=len)
    assert deepest == (
        Frame(USER), Frame("vectors", "exception"), Frame("do_page_fault"),
        Frame("handle_mm_fault"), Frame("clear_page", "tail_call"),
    )  # fmt: skip
    assert profile.stacks[deepest] == {"instructions": 400, "l1d_misses": 40, "l2_misses": 0}


def test_the_largest_change_comes_first() -> None:
    case = case_of(make_profiled(STOCK), make_profiled(ON, "on"))
    rows = compare_functions(profiles_of(case), 10)
    assert [(row.function, row.change) for row in rows] == [
        ("handle_mm_fault", 6.0),
        ("clear_page", -1.0),
        ("do_page_fault", 0.0),
        ("vectors", 0.0),
        (USER, 0.0),
    ]
    assert rows[0].values == {"stock": 30.0, "on": 36.0}


@pytest.mark.parametrize("entry", [["vectors"], ["vectors", 1.5, 0], "vectors"])
def test_an_entry_that_the_plugin_did_not_write_is_refused(entry: Json) -> None:
    result = make_profiled(STOCK)
    assert result.counts
    (region,) = result.counts.regions
    profile = {**Fields("a region", region).table("profile").rest(), "functions": [entry]}
    counts = replace(result.counts, regions=({**region, "profile": profile},))
    broken = replace(result, counts=counts)
    with pytest.raises(UserError, match="functions"):
        profile_of(broken)
