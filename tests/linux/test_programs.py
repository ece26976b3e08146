# SPDX-License-Identifier: GPL-2.0
"""Programs of Debian's on the changed kernels: no stressor fails."""

from dataclasses import replace

import pytest

from firsttouch.building.programs import BENCH, RootDisk
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.kernels import release_names
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Clock
from tests.linux.conftest import MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.ktap import Case, show

pytestmark = pytest.mark.kernel

_PROGRAMS = load_experiment("programs")
_STRESSORS = [
    name for name in _PROGRAMS.parameters["program"] if str(name).startswith("stress-ng-")
]


@pytest.mark.regress
@pytest.mark.parametrize("timing", ["identical", "parallel"])
@pytest.mark.parametrize(
    ("variant", "arm"),
    # A guest fails if its kernel reports a problem. No changed kernel does, so the larger
    # configurations need no stock kernel for comparison.
    [(None, "stock"), (None, "on"), ("debug", "on"), ("server", "on")],
    ids=lambda name: name or "lab",
)
@pytest.mark.parametrize("release", release_names())
def test_stressors_end_well(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter, release: str,
    variant: str | None, arm: str, timing: Clock,
) -> None:  # fmt: skip
    """Every stressor of stress-ng for memory management; on two CPUs in parallel, too."""
    # numa wants two nodes.
    stressors = [*_STRESSORS, *(["stress-ng-numa"] if variant == "server" else [])]
    assert _PROGRAMS.root
    root = RootDisk(_PROGRAMS.root)
    guest = replace(
        make_guest(release, variant, arm=arm),
        commands=tuple(
            f"/ftbench programs {root.arguments} --program {name}" for name in stressors
        ),
        files={"/ftbench": BENCH.obtain(reporter)},
        disk=root.obtain(reporter),
        timing=timing,
        cpus=2 if timing == "parallel" else 1,
        nodes=2 if variant == "server" else 1,
    )
    done = outcomes.of(guest, f"{release} {variant or 'lab'} stress-ng {arm} {timing}").commands
    cases = [
        Case(str(name), "failed" if ended.status else "passed", f"status {ended.status}")
        for name, ended in zip(stressors, done, strict=True)
    ]
    show(cases)
    assert not [case.name for case in cases if case.outcome == "failed"]
