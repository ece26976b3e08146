# SPDX-License-Identifier: GPL-2.0
"""Counts by function and by call, on a guest whose functions can be counted by reading them."""

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.conftest import CACHES, DATA, GUESTS, ICOUNT, Ran, must_run

pytestmark = pytest.mark.long

REGIONS = ("calls", "exceptions", "falling", "system", "stack", "tasks", "interrupts")
# The stack that all regions stand on; start.S sets the stack pointer before it calls main().
BASE = "user code/__primary_switched(tail_call)/main(stack_switch)"


@pytest.fixture
def run_guest(run_guest: Callable[..., Ran]) -> Callable[..., Ran]:
    """Run guests with a GICv2, whose registers profile.S writes."""
    return functools.partial(run_guest, board="virt")


@pytest.fixture(scope="session")
def guest(build_guest: Callable[..., Path]) -> Path:
    return build_guest(GUESTS / "profile.S")


@pytest.fixture(scope="session")
def system_map(guest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest's symbols, by the name that a kernel has for its first code in the upper half."""
    symbols = must_run("aarch64-linux-gnu-nm", "-n", guest)
    file = tmp_path_factory.mktemp("symbols") / "System.map"
    file.write_text(symbols.replace(" upper\n", " __primary_switched\n"))
    return file


@pytest.fixture(params=["counting", "caches, icount"])
def profiled(
    request: pytest.FixtureRequest, run_guest: Callable[..., Ran], guest: Path, system_map: Path
) -> dict[str, Any]:
    options = CACHES if "caches" in request.param else ()
    qemu = ICOUNT if "icount" in request.param else ()
    counts = run_guest(guest, f"profile={system_map}", *options, qemu=qemu).counts
    return dict(zip(REGIONS, counts["regions"], strict=True))


def functions(region: dict[str, Any], count: str = "instructions") -> dict[str, int]:
    """Return the functions that have `count`, with it."""
    profile = region["profile"]
    place = 1 + profile["function_counts"].index(count)
    return {row[0]: row[place] for row in profile["functions"] if row[place]}


def calls(region: dict[str, Any], count: str = "instructions") -> dict[str, int]:
    """Return what each stack executed itself: its functions from BASE on, and how entered."""
    profile = region["profile"]
    place = 3 + profile["call_counts"].index(count)
    stacks: list[str] = []
    calls_of = {}
    for row in profile["calls"]:
        name, entered = profile["functions"][row[1]][0], profile["entered_by"][row[2]]
        label = name if entered == "call" else f"{name}({entered})"
        stacks.append(f"{stacks[row[0]]}/{label}" if row[0] < len(stacks) else label)
        if row[place]:
            calls_of[stacks[-1].replace(BASE, "main")] = row[place]
    return calls_of


@pytest.mark.parametrize("region", DATA["stacks"])
def test_stacks_and_functions_execute_what_is_written(
    profiled: dict[str, Any], region: str
) -> None:
    expected = DATA["stacks"][region]
    assert calls(profiled[region]) == expected
    of_functions: Counter[str] = Counter()
    for stack, count in expected.items():
        of_functions[stack.split("/")[-1].partition("(")[0]] += count
    assert functions(profiled[region]) == of_functions


def test_system_instructions_by_function(profiled: dict[str, Any]) -> None:
    for count, number in (("tlbi", 1), ("dsb", 1), ("isb", 1), ("msr", 2), ("atomics", 2)):
        assert functions(profiled["system"], count) == {"system": number}
    assert all(functions(profiled[name], "tlbi") == {} for name in REGIONS if name != "system")


def test_interrupts_hide_no_call_and_no_return(
    run_guest: Callable[..., Ran], guest: Path, system_map: Path
) -> None:
    """A call or a return that is interrupted before it arrives is one all the same."""
    region = run_guest(guest, f"profile={system_map}", qemu=ICOUNT).counts["regions"][-1]
    stacks = calls(region)
    handled = {stack: n for stack, n in stacks.items() if stack.endswith("/el1_irq(tail_call)")}
    assert stacks.items() - handled.items() >= {
        ("main", 8001),
        ("main/leaf", 4000),
        ("main/outer", 8000),
        ("main/outer/leaf", 4000),
        ("main/outer/tail(tail_call)", 4000),
    }
    assert sum(stacks.values()) == sum(handled.values()) // 9 * 10 + 28_001
    interrupts = region["kernel"]["exceptions_taken_irq"]
    assert sum(handled.values()) == 9 * interrupts > 9 * 100
    # Those outside, those in each function, and none that seems to be elsewhere
    assert len(handled) == 5


def test_functions_and_calls_sum_up_to_the_region(profiled: dict[str, Any]) -> None:
    for region in profiled.values():
        whole = region["kernel"]["instructions"]
        assert sum(functions(region).values()) == sum(calls(region).values()) == whole > 0
        assert sum(functions(region, "loads").values()) == region["kernel"]["loads"]
        assert region["profile"]["lost_arrivals"] == 0
        for level in ("l1d", "l2"):
            misses = region["kernel"].get(level, {"misses": 0})["misses"]
            assert sum(calls(region, f"{level}_misses").values()) == misses


def test_a_profile_changes_no_other_count(
    run_guest: Callable[..., Ran], guest: Path, system_map: Path
) -> None:
    plain = run_guest(guest, *CACHES, qemu=ICOUNT).counts
    profiled = run_guest(guest, *CACHES, f"profile={system_map}", qemu=ICOUNT).counts
    for region in profiled["regions"]:
        assert region.pop("profile")
    assert profiled == plain


@pytest.mark.parametrize("text", DATA["no_map"])
def test_a_file_that_is_not_the_kernels_is_refused(
    run_guest: Callable[..., Ran], guest: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "map").write_text(text)
    run_guest(guest, f"profile={tmp_path / 'map'}").refused(DATA["no_map"][text])
