# SPDX-License-Identifier: GPL-2.0
"""The suites can fail: each mistake of tests/linux/mistakes is found by the test named here.

One kernel has all of them. Each guest is booted with only the feature that has
the mistake in question.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.overlay import apply, patches_of
from firsttouch.building.patches import apply_patch, read_diff
from firsttouch.building.source import KernelSource
from firsttouch.progress import Reporter
from tests.linux.conftest import MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.kernels import mistakes
from tests.support.ktap import parse
from tests.support.selftests import build_selftests

pytestmark = pytest.mark.kernel

# The arm, the suite, and what tests of it that find the mistake are called.
_FOUND_BY = {
    "forgotten-color": ("color", "mm/zero_page_mapping", r"\d+ consecutive pages are zero pages"),
    "loads-are-writes": ("rmw", "arm64/write_intent/behaviour", r"LDAPR is a load"),
}


def test_each_mistake_has_its_test() -> None:
    assert _FOUND_BY.keys() == mistakes().keys()


def test_each_mistake_applies_to_the_code_as_it_is(
    sources: Callable[[str], KernelSource], tmp_path: Path
) -> None:
    source = sources("6.12")
    series = patches_of(source.release)
    hooks = [hook for patch in series if (hook := patch.hook(source.release))]
    for name in {
        name for patch in (*hooks, *mistakes().values()) for name in read_diff(patch).names
    }:
        if (source.tree() / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.tree() / name, tmp_path / name)
    for patch in series:
        apply(patch, source.release, tmp_path)
    for mistake in mistakes().values():
        apply_patch(mistake, source.version, tmp_path)


@pytest.mark.regress
@pytest.mark.parametrize("mistake", _FOUND_BY)
def test_is_found(
    make_guest: MakeGuest, outcomes: Outcomes, sources: Callable[[str], KernelSource],
    reporter: Reporter, mistake: str,
) -> None:  # fmt: skip
    arm, suite, name = _FOUND_BY[mistake]
    guest = replace(
        make_guest("6.12", None, arm=arm, mistakes=True),
        commands=(f"/{suite}",),
        files={f"/{suite}": build_selftests(sources("6.12"), reporter)[suite]},
    )
    (done,) = outcomes.of(guest, f"6.12 mistakes {mistake}", splats=True).commands
    failed = [case.name for case in parse(done.lines) if case.outcome == "failed"]
    assert done.status == 1
    assert any(re.fullmatch(name, case) for case in failed), failed
