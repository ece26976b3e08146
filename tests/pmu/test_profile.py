# SPDX-License-Identifier: GPL-2.0
"""Counts by function and by call, on a guest whose functions can be counted by reading them."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.conftest import HERE, Ran, must_run

pytestmark = pytest.mark.long

CACHES = ("l1i=32K:4:64:lru", "l1d=32K:4:64:lru", "l2=256K:8:64:lru")
REGIONS = ("calls", "exceptions", "falling", "system", "stack", "tasks", "interrupts")
# The stack that all regions stand on; start.S sets the stack pointer before it calls main().
BASE = "user code/__primary_switched(tail_call)/main(stack_switch)"
ICOUNT = ("-icount", "shift=0,sleep=off")


@pytest.fixture
def run_guest(run_guest: Callable[..., Ran]) -> Callable[..., Ran]:
    """Run guests with a GICv2, whose registers profile.S writes."""
    return functools.partial(run_guest, board="virt")


@pytest.fixture(scope="session")
def guest(build_guest: Callable[..., Path]) -> Path:
    return build_guest(HERE / "guests/profile.S")


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


def test_calls_and_tail_calls(profiled: dict[str, Any]) -> None:
    assert functions(profiled["calls"]) == {"main": 400, "leaf": 400, "outer": 400, "tail": 200}
    assert calls(profiled["calls"]) == {
        "main": 400,
        "main/leaf": 200,
        "main/outer": 400,
        "main/outer/leaf": 200,
        "main/outer/tail(tail_call)": 200,
    }


def test_exceptions_return_to_where_they_came_from(profiled: dict[str, Any]) -> None:
    assert calls(profiled["exceptions"]) == {
        "main": 1,
        "main/excepting": 5,
        "main/excepting/vectors(exception)": 1,
        "main/excepting/vectors(exception)/el1_sync(tail_call)": 4,
        "main/excepting/vectors(exception)/el1_sync(tail_call)/leaf": 2,
    }


@pytest.mark.parametrize(
    ("count", "number"), [("tlbi", 1), ("dsb", 1), ("isb", 1), ("msr", 2), ("atomics", 2)]
)
def test_system_instructions_by_function(profiled: dict[str, Any], count: str, number: int) -> None:
    assert functions(profiled["system"], count) == {"system": number}
    assert functions(profiled["system"]) == {"main": 1, "system": 9}
    assert all(functions(profiled[name], "tlbi") == {} for name in REGIONS if name != "system")


def test_a_call_on_another_stack_is_named(profiled: dict[str, Any]) -> None:
    assert calls(profiled["stack"]) == {
        "main": 1, "main/moves": 8, "main/moves/leaf(stack_switch)": 2,
    }  # fmt: skip


def test_each_task_has_its_own_stack(profiled: dict[str, Any]) -> None:
    assert calls(profiled["tasks"]) == {
        "main": 6,
        "main/cpu_switch_to": 10,
        "another task/task": 1 + 4 + 1 + 4,
        "another task/task/leaf": 4,
        "another task/task/cpu_switch_to": 10,
    }


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not have __primary_switched"),
        ("0 T _text\nhello\n", "not ADDRESS TYPE NAME"),
        ("2 T a\n1 T b\n", "in the order of addresses"),
        ("40200123 T __primary_switched\n", "of another kernel"),
    ],
)
def test_a_file_that_is_not_the_kernels_is_refused(
    run_guest: Callable[..., Ran], guest: Path, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "map").write_text(text)
    ran = run_guest(guest, f"profile={tmp_path / 'map'}")
    assert ran.finished.returncode != 0
    assert words in ran.finished.stderr
    assert not ran.out.exists()
