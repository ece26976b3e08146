# SPDX-License-Identifier: GPL-2.0
"""Profiles of real kernels: to the last instruction, and without a change of what is measured."""

import dataclasses
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import UNKNOWN, USER, Profile, profiles_of
from firsttouch.lab.guests import make_jobs
from firsttouch.lab.plan import Request, make_plan
from firsttouch.progress import Reporter
from tests.conftest import Firsttouch
from tests.lab.conftest import FakeLab, measured
from tests.support.contract import real_contract

_SMALL = Request(
    experiments=("populate",), settings={"by": ("store",), "page": ("4k",)}, arms=("stock", "on"),
    size=16 << 20,
)  # fmt: skip
_PAGES = (16 << 20) >> 12


@pytest.fixture(scope="module")
def run(
    images: Callable[[str, bool], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Request], Case]:
    """Return a function that measures the one case of a request."""
    for changed in (False, True):
        images("6.12", changed)

    def measure(request: Request) -> Case:
        out = tmp_path_factory.mktemp("out")
        (case,) = measured(dataclasses.replace(request, out=out)).cases
        return case

    return measure


@pytest.fixture(scope="module")
def plain(run: Callable[[Request], Case]) -> Case:
    return run(_SMALL)


@pytest.fixture(scope="module")
def profiled(run: Callable[[Request], Case]) -> Case:
    return run(dataclasses.replace(_SMALL, profile=True))


@pytest.fixture(params=["stock", "on"])
def arm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def profile(profiled: Case, arm: str) -> Profile:
    return profiles_of(profiled)[arm]


@pytest.mark.kernel
def test_functions_sum_up_to_the_instructions_counted_without_them(
    plain: Case, profile: Profile, arm: str
) -> None:
    kernel = plain.value(arm, "instructions_kernel")
    assert kernel is not None and kernel > 1000 * _PAGES
    assert profile.total() == kernel
    assert profile.functions[USER]["instructions"] == plain.value(arm, "instructions_user")
    # All functions have names: none is "other".
    unknown = profile.functions.get(UNKNOWN, {}).get("instructions", 0)
    assert unknown <= kernel / 1000
    assert all(
        re.fullmatch(r"[\w.$]+", name) for name in profile.functions.keys() - {USER, UNKNOWN}
    )


@pytest.mark.kernel
def test_calls_sum_up_to_the_same_function_by_function(profile: Profile) -> None:
    by_call: dict[str, int] = {}
    for stack, counts in profile.stacks.items():
        name = stack[-1].function
        by_call[name] = by_call.get(name, 0) + counts.get("instructions", 0)
    assert {name: count for name, count in by_call.items() if count} == {
        name: counts["instructions"] for name, counts in profile.functions.items()
    }


@pytest.mark.kernel
@pytest.mark.parametrize(("count", "metric"), [("tlbi", "tlbi"), ("dsb", "dsb"), ("isb", "isb")])
def test_other_counts_sum_up_to_the_kernels(
    plain: Case, profile: Profile, arm: str, count: str, metric: str
) -> None:
    # ftbench itself executes none of these.
    assert profile.total(count) == plain.value(arm, metric)


@pytest.mark.kernel
def test_each_page_is_cleared_once_below_the_fault(profile: Profile) -> None:
    """The stacks are those of the source: a fault clears a page, and enters by an exception."""
    faults = [
        stack for stack in profile.stacks
        if any(frame.function == "do_anonymous_page" for frame in stack)
    ]  # fmt: skip
    assert faults
    for stack in faults:
        functions = [frame.function for frame in stack]
        assert stack[0].function == USER and stack[1].entered == "exception"
        assert functions.index("handle_mm_fault") < functions.index("do_anonymous_page")
    # A jump between functions is rare in a kernel: the compiler makes none, entry code does.
    jumps = {
        (jumped.function, reached.function)
        for stack in profile.stacks
        for jumped, reached in itertools.pairwise(stack)
        if reached.entered == "tail_call"
    }
    assert ("el0t_64_sync", "ret_to_user") in jumps
    assert len(jumps) < 20


@pytest.mark.kernel
def test_the_command_prints_functions_draws_calls_and_keeps_both(
    run: Callable[[Request], Case], firsttouch: Firsttouch
) -> None:
    words = ("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "16M")
    done = firsttouch("profile", *words, "--arm", "stock", "--arm", "on", "--table")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["function", "stock", "on", "change"] in lines
    values = {line[0]: line[1:] for line in lines if len(line) == 4}
    assert len(values["do_anonymous_page"]) == 3
    picture = done.stdout.rpartition("Flame graph: ")[2].strip()
    assert "handle_mm_fault" in (firsttouch.directory / picture).read_text()
    stacks = firsttouch("export", "--format", "folded", "out/profile").stdout
    assert "stock;user code;" in stacks and "on;user code;" in stacks


def test_a_profile_is_another_cell_with_the_kernels_symbols(fake_lab: FakeLab) -> None:
    profiled = dataclasses.replace(_SMALL, arms=("stock",), profile=True)
    contract, reporter = real_contract(), Reporter()
    plan = make_plan(profiled, "6.12", contract)
    parts = fake_lab.build_parts(fake_lab.source, plan, reporter)
    symbols = fake_lab.parts / "System.map"
    symbols.write_text("ffff800080000000 T __primary_switched\n")
    (job,) = make_jobs(plan, fake_lab.source, parts)
    assert job.guest.pmu and job.guest.pmu.symbols == symbols and job.guest.pmu.caches
    plain = make_plan(dataclasses.replace(profiled, profile=False), "6.12", contract)
    (other,) = make_jobs(plain, fake_lab.source, parts)
    assert other.guest.pmu and other.guest.pmu.symbols is None
    assert plain.cells[0].identity != plan.cells[0].identity
    assert other.key != job.key


@pytest.mark.kernel
def test_debians_image_is_profiled_by_the_symbols_that_it_holds(
    run: Callable[[Request], Case],
) -> None:
    asked = dataclasses.replace(_SMALL, arms=("stock", "debian"))
    counted = run(asked)
    profiles = profiles_of(run(dataclasses.replace(asked, profile=True)))
    assert profiles["debian"].total() == counted.value("debian", "instructions_kernel")
    unknown = profiles["debian"].functions.get(UNKNOWN, {}).get("instructions", 0)
    assert unknown <= profiles["debian"].total() / 1000
    for function in ("do_anonymous_page", "clear_page"):
        ours, theirs = (profiles[arm].functions[function] for arm in ("stock", "debian"))
        assert ours["instructions"] == pytest.approx(theirs["instructions"], rel=0.01)
